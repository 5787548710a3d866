// Package chromium drives a browser for tests of pages: as somebody does who has a narrow
// window, no mouse, or cannot see.
package chromium

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"testing"
)

// Browser is a Chromium that a test drives by the DevTools protocol, over pipes:
// a message is JSON with a zero byte behind it.
type Browser struct {
	in      io.Writer
	out     *bufio.Reader
	session string
	last    int
	// Complaints are what the console and the page's policy said meanwhile.
	Complaints []string
}

type devTools struct {
	ID     int             `json:"id,omitempty"`
	Method string          `json:"method,omitempty"`
	Params json.RawMessage `json:"params,omitempty"`
	Result json.RawMessage `json:"result,omitempty"`
	Error  json.RawMessage `json:"error,omitempty"`
}

// Open shows a page in a Chromium of its own, until the test ends.
func Open(t *testing.T, url string, width int) *Browser {
	t.Helper()
	program, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("NOT RUN: there is no chromium (apt-get install chromium)")
	}
	theirIn, ourIn, err := os.Pipe()
	must(t, err)
	ourOut, theirOut, err := os.Pipe()
	must(t, err)
	command := exec.CommandContext(context.WithoutCancel(t.Context()), program, // it is asked to close
		"--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--remote-debugging-pipe", "--user-data-dir="+t.TempDir(), "about:blank")
	command.Stderr = &bytes.Buffer{}                   // so that Wait is for all its processes
	command.ExtraFiles = []*os.File{theirIn, theirOut} // 3 and 4
	must(t, command.Start())
	must(t, theirIn.Close())
	must(t, theirOut.Close())
	b := &Browser{in: ourIn, out: bufio.NewReader(ourOut)}
	t.Cleanup(func() {
		b.session = ""
		_, _ = b.try("Browser.close", nil) // it may be gone
		_ = command.Wait()
		_, _ = ourIn.Close(), ourOut.Close()
	})
	target := b.Call(t, "Target.createTarget", map[string]any{"url": "about:blank"})["targetId"]
	b.session, _ = b.Call(t, "Target.attachToTarget", map[string]any{"targetId": target, "flatten": true})["sessionId"].(string)
	b.Call(t, "Runtime.enable", nil)
	b.Call(t, "Log.enable", nil)
	b.Call(t, "Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 500})
	b.Call(t, "Page.navigate", map[string]any{"url": url})
	return b
}

// Call sends a command of the protocol, and returns its result.
func (b *Browser) Call(t *testing.T, method string, params any) map[string]any {
	t.Helper()
	result, err := b.try(method, params)
	if err != nil {
		t.Fatalf("%s: %v", method, err)
	}
	return result
}

// try sends a command and reads up to its answer.
func (b *Browser) try(method string, params any) (map[string]any, error) {
	b.last++
	request := map[string]any{"id": b.last, "method": method}
	if params != nil {
		request["params"] = params
	}
	if b.session != "" {
		request["sessionId"] = b.session
	}
	text, err := json.Marshal(request)
	if err != nil {
		return nil, err
	}
	if _, err := b.in.Write(append(text, 0)); err != nil {
		return nil, err
	}
	for {
		message, err := b.read()
		if err != nil {
			return nil, err
		}
		if message.ID != b.last {
			b.hear(message)
			continue
		}
		if message.Error != nil {
			return nil, fmt.Errorf("the browser refuses: %s", message.Error)
		}
		var result map[string]any
		return result, json.Unmarshal(message.Result, &result)
	}
}

func (b *Browser) read() (devTools, error) {
	var message devTools
	text, err := b.out.ReadBytes(0)
	if err != nil {
		return message, err
	}
	return message, json.Unmarshal(text[:len(text)-1], &message)
}

func (b *Browser) hear(message devTools) {
	switch message.Method {
	case "Log.entryAdded", "Runtime.exceptionThrown", "Runtime.consoleAPICalled":
		b.Complaints = append(b.Complaints, string(message.Params))
	}
}

// Go shows another page.
func (b *Browser) Go(t *testing.T, url string) {
	t.Helper()
	b.Call(t, "Page.navigate", map[string]any{"url": url})
}

// Run evaluates an expression in the page, or waits for the promise that it is.
func (b *Browser) Run(t *testing.T, expression string) any {
	t.Helper()
	value, err := b.Try(expression)
	if err != nil {
		t.Fatalf("%s: %v", expression, err)
	}
	return value
}

// Try is Run for a page that may be on its way to another.
func (b *Browser) Try(expression string) (any, error) {
	answer, err := b.try("Runtime.evaluate", map[string]any{"expression": expression, "awaitPromise": true, "returnByValue": true})
	if err != nil {
		return nil, err
	}
	if thrown := answer["exceptionDetails"]; thrown != nil {
		return nil, fmt.Errorf("it throws %v", thrown)
	}
	return answer["result"].(map[string]any)["value"], nil
}

// Until waits for an expression to be true, as the page changes.
func (b *Browser) Until(t *testing.T, expression string) {
	t.Helper()
	b.Run(t, `new Promise((done) => {
		const look = () => { if (`+expression+`) { watch.disconnect(); done(); } };
		const watch = new MutationObserver(look);
		watch.observe(document, {subtree: true, childList: true, characterData: true, attributes: true});
		look();
	})`)
}

// Text is what an element shows.
func (b *Browser) Text(t *testing.T, selector string) string {
	t.Helper()
	text, _ := b.Run(t, "document.querySelector("+strconv.Quote(selector)+").innerText").(string)
	return text
}

// Press presses a key, with shift where asked.
func (b *Browser) Press(t *testing.T, key string, shift bool) {
	t.Helper()
	codes, modifiers := map[string]int{"Tab": 9, "Enter": 13}, 0
	if shift {
		modifiers = 8
	}
	event := map[string]any{"key": key, "code": key, "windowsVirtualKeyCode": codes[key], "modifiers": modifiers}
	if key == "Enter" {
		event["text"] = "\r"
	}
	for _, kind := range []string{"keyDown", "keyUp"} {
		event["type"] = kind
		b.Call(t, "Input.dispatchKeyEvent", event)
	}
}

// Name is what a screen reader calls the element that has the focus.
func (b *Browser) Name(t *testing.T) string {
	t.Helper()
	object := b.Call(t, "Runtime.evaluate", map[string]any{"expression": "document.activeElement"})["result"].(map[string]any)["objectId"]
	tree := b.Call(t, "Accessibility.getPartialAXTree", map[string]any{"objectId": object, "fetchRelatives": false})["nodes"]
	name, _ := tree.([]any)[0].(map[string]any)["name"].(map[string]any)["value"].(string)
	return name
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
