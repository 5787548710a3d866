package sandbox_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// storedMessage is a golden message of the contract.
type storedMessage struct {
	ContentType     string          `json:"contentType"`
	ContentEncoding string          `json:"contentEncoding"`
	Properties      map[string]any  `json:"applicationProperties"`
	Body            json.RawMessage `json:"body"`
	BodyBase64      []byte          `json:"bodyBase64"`
}

// nodeResult is what testdata/node/decode.mjs prints for a message.
type nodeResult struct {
	Attributes        map[string]any `json:"attributes"`
	Data              any            `json:"data"`
	ForOthers, ForIts bool
	Error             string `json:"error"`
}

func TestNode_TheDecodingOfTheDocumentationReadsTheGoldenMessages(t *testing.T) {
	t.Parallel()
	names, messages := storedMessages(t)
	results := decodeWithNode(t, messages)
	for i, result := range results {
		message := messages[i]
		if message.ContentType == "application/bson" {
			if result.Error != "cannot read application/bson" {
				t.Errorf("%s: got %+v, want it refused by its content type", names[i], result)
			}
			continue
		}
		attributes := map[string]any{}
		for name, value := range message.Properties {
			if attribute, ok := strings.CutPrefix(name, "cloudEvents_"); ok {
				attributes[attribute] = value
			}
		}
		if result.Error != "" || !reflect.DeepEqual(result.Attributes, attributes) {
			t.Errorf("%s: got %q and the attributes\n%v\nwant\n%v", names[i], result.Error, result.Attributes, attributes)
		}
		if want := storedData(t, message); !reflect.DeepEqual(result.Data, want) {
			t.Errorf("%s: got the data\n%v\nwant\n%v", names[i], result.Data, want)
		}
		if _, grouped := attributes["resendgroup"]; result.ForOthers != grouped || !result.ForIts {
			t.Errorf("%s: passed by outside its group: %v, want %v; read within it: %v", names[i], result.ForOthers, grouped, result.ForIts)
		}
	}
}

func TestNode_TheDecodingOfTheDocumentationRefusesAnotherContractVersion(t *testing.T) {
	t.Parallel()
	results := decodeWithNode(t, []storedMessage{{Properties: map[string]any{"cloudEvents_contractversion": "2"}}, {}})
	for _, result := range results {
		if result.Error != "not a message of this contract" {
			t.Errorf("got %+v, want it refused", result)
		}
	}
}

// The packages of the consumer are in none of Debian's: what is left to check is its syntax.
func TestNode_TheConsumerOfTheDocumentationIsValidJavaScript(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "consumer.mjs")
	must(t, os.WriteFile(file, []byte(nodeExamples(t)[1]), 0o600))
	if output, err := exec.CommandContext(t.Context(), node(t), "--check", file).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, output)
	}
}

// node is Node, and skips the test where there is none.
func node(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("node")
	if err != nil {
		t.Skip("NOT RUN: there is no node (apt-get install nodejs)")
	}
	return path
}

// nodeExamples are the two blocks of JavaScript in docs/consumers.md: decoding and consumer.
func nodeExamples(t *testing.T) []string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "consumers.md"))
	must(t, err)
	var blocks []string
	for _, part := range strings.Split(string(page), "```js\n")[1:] {
		code, _, _ := strings.Cut(part, "```\n")
		blocks = append(blocks, code)
	}
	if len(blocks) != 2 {
		t.Fatalf("docs/consumers.md has %d blocks of JavaScript, want 2", len(blocks))
	}
	return blocks
}

func storedMessages(t *testing.T) (names []string, messages []storedMessage) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", "pkg", "contract", "testdata", "messages", "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("found no golden messages: %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		must(t, err)
		var message storedMessage
		must(t, json.Unmarshal(text, &message))
		names, messages = append(names, filepath.Base(file)), append(messages, message)
	}
	return names, messages
}

func decodeWithNode(t *testing.T, messages []storedMessage) []nodeResult {
	t.Helper()
	example := filepath.Join(t.TempDir(), "message.mjs")
	must(t, os.WriteFile(example, []byte(nodeExamples(t)[0]), 0o600))
	var input, problems bytes.Buffer
	for _, message := range messages {
		must(t, json.NewEncoder(&input).Encode(map[string]any{
			"applicationProperties": message.Properties, "contentType": message.ContentType,
			"contentEncoding": message.ContentEncoding, "body": append([]byte(message.Body), message.BodyBase64...),
		}))
	}
	command := exec.CommandContext(t.Context(), node(t), filepath.Join("testdata", "node", "decode.mjs"), example)
	command.Stdin, command.Stderr = &input, &problems
	output, err := command.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, problems.Bytes())
	}
	results := make([]nodeResult, len(messages))
	decoder := json.NewDecoder(bytes.NewReader(output))
	for i := range results {
		must(t, decoder.Decode(&results[i]))
	}
	return results
}

// storedData is a message's data as any reader of JSON gets it.
func storedData(t *testing.T, message storedMessage) (data any) {
	t.Helper()
	text := []byte(message.Body)
	if message.ContentEncoding == "gzip" {
		unpacker, err := gzip.NewReader(bytes.NewReader(message.BodyBase64))
		must(t, err)
		text, err = io.ReadAll(unpacker)
		must(t, err)
	}
	if len(text) > 0 {
		must(t, json.Unmarshal(text, &data))
	}
	return data
}
