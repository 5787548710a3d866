package sandbox_test

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

// browser is a Chromium that a test drives by the DevTools protocol, over pipes:
// a message is JSON with a zero byte behind it.
type browser struct {
	in      io.Writer
	out     *bufio.Reader
	session string
	last    int
	// complaints are what the console and the page's policy said meanwhile.
	complaints []string
}

type devTools struct {
	ID     int             `json:"id,omitempty"`
	Method string          `json:"method,omitempty"`
	Params json.RawMessage `json:"params,omitempty"`
	Result json.RawMessage `json:"result,omitempty"`
	Error  json.RawMessage `json:"error,omitempty"`
}

// openBrowser shows a page in a Chromium of its own, until the test ends.
func openBrowser(t *testing.T, url string, width int) *browser {
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
	b := &browser{in: ourIn, out: bufio.NewReader(ourOut)}
	t.Cleanup(func() {
		b.session = ""
		_, _ = b.try("Browser.close", nil) // it may be gone
		_ = command.Wait()
		_, _ = ourIn.Close(), ourOut.Close()
	})
	target := b.call(t, "Target.createTarget", map[string]any{"url": "about:blank"})["targetId"]
	b.session, _ = b.call(t, "Target.attachToTarget", map[string]any{"targetId": target, "flatten": true})["sessionId"].(string)
	b.call(t, "Log.enable", nil)
	b.call(t, "Runtime.enable", nil)
	b.call(t, "Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 500})
	b.call(t, "Page.navigate", map[string]any{"url": url})
	return b
}

func (b *browser) call(t *testing.T, method string, params any) map[string]any {
	t.Helper()
	result, err := b.try(method, params)
	if err != nil {
		t.Fatalf("%s: %v", method, err)
	}
	return result
}

// try sends a command and reads up to its answer.
func (b *browser) try(method string, params any) (map[string]any, error) {
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

func (b *browser) read() (devTools, error) {
	var message devTools
	text, err := b.out.ReadBytes(0)
	if err != nil {
		return message, err
	}
	return message, json.Unmarshal(text[:len(text)-1], &message)
}

func (b *browser) hear(message devTools) {
	switch message.Method {
	case "Log.entryAdded", "Runtime.exceptionThrown", "Runtime.consoleAPICalled":
		b.complaints = append(b.complaints, string(message.Params))
	}
}

// run evaluates an expression in the page, or waits for the promise that it is.
func (b *browser) run(t *testing.T, expression string) any {
	t.Helper()
	answer := b.call(t, "Runtime.evaluate", map[string]any{"expression": expression, "awaitPromise": true, "returnByValue": true})
	if thrown := answer["exceptionDetails"]; thrown != nil {
		t.Fatalf("%s throws %v", expression, thrown)
	}
	return answer["result"].(map[string]any)["value"]
}

// until waits for an expression to be true, as the page changes.
func (b *browser) until(t *testing.T, expression string) {
	t.Helper()
	b.run(t, `new Promise((done) => {
		const look = () => { if (`+expression+`) { watch.disconnect(); done(); } };
		const watch = new MutationObserver(look);
		watch.observe(document, {subtree: true, childList: true, characterData: true, attributes: true});
		look();
	})`)
}

// text is what an element shows.
func (b *browser) text(t *testing.T, selector string) string {
	t.Helper()
	text, _ := b.run(t, "document.querySelector("+strconv.Quote(selector)+").innerText").(string)
	return text
}
