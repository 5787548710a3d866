package contract_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"changerelay/pkg/contract"
)

var update = flag.Bool("update", false, "write the golden messages anew")

// goldenMessage is a message as JSON: testdata/messages, and what
// schema/event.schema.json describes. A body of JSON that is not compressed is
// written as it is, any other in base64.
type goldenMessage struct {
	MessageID             string          `json:"messageId"`
	SessionID             string          `json:"sessionId"`
	PartitionKey          string          `json:"partitionKey"`
	Subject               string          `json:"subject"`
	ContentType           string          `json:"contentType,omitempty"`
	ContentEncoding       string          `json:"contentEncoding,omitempty"`
	ApplicationProperties map[string]any  `json:"applicationProperties"`
	Body                  json.RawMessage `json:"body,omitempty"`
	BodyBase64            []byte          `json:"bodyBase64,omitempty"`
}

// Every message is written as it always was, and what was written is read. A
// changed file is a changed contract: consumers and messages on their way
// know the old one.
func TestGolden_MessagesStayAsTheyAre(t *testing.T) {
	t.Parallel()
	for _, tt := range samples() {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join("testdata", "messages", tt.name+".json")
			if *update {
				writeGolden(t, file, tt.message(t))
			}
			golden := readGolden(t, file)
			event, err := contract.Decode(golden, contract.DecodeOptions{})
			checkProblems(t, err)
			checkEvent(t, event, tt.event)

			m := tt.message(t)
			if m.ContentEncoding == "gzip" {
				// The same data may be packed otherwise by another release of Go.
				m.Body = golden.Body
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if got := marshalGolden(t, m); !bytes.Equal(got, want) {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

func TestGolden_EveryGoldenMessageIsASample(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/messages/*.json")
	if err != nil || len(files) != len(samples()) {
		t.Errorf("got %d files under testdata/messages (%v), want one for each of %d samples", len(files), err, len(samples()))
	}
}

func writeGolden(t *testing.T, file string, m contract.Message) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, marshalGolden(t, m), 0o644); err != nil {
		t.Fatal(err)
	}
}

func marshalGolden(t *testing.T, m contract.Message) []byte {
	t.Helper()
	golden := goldenMessage{
		MessageID: m.ID, SessionID: m.SessionID, PartitionKey: m.PartitionKey, Subject: m.Subject,
		ContentType: m.ContentType, ContentEncoding: m.ContentEncoding, ApplicationProperties: m.Properties,
	}
	if m.ContentType == contract.ContentTypeJSON && m.ContentEncoding == "" {
		golden.Body = m.Body
	} else {
		golden.BodyBase64 = m.Body
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(golden); err != nil {
		t.Fatal(err)
	}
	return text.Bytes()
}

func readGolden(t *testing.T, file string) contract.Message {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var golden goldenMessage
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&golden); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	m := contract.Message{
		ID: golden.MessageID, SessionID: golden.SessionID, PartitionKey: golden.PartitionKey, Subject: golden.Subject,
		ContentType: golden.ContentType, ContentEncoding: golden.ContentEncoding, Properties: golden.ApplicationProperties,
		Body: golden.BodyBase64,
	}
	for name, value := range m.Properties {
		if number, ok := value.(json.Number); ok {
			m.Properties[name] = readNumber(t, number)
		}
	}
	if golden.Body != nil {
		var compact bytes.Buffer
		if err := json.Compact(&compact, golden.Body); err != nil {
			t.Fatalf("%s: body: %v", file, err)
		}
		m.Body = compact.Bytes()
	}
	return m
}

// readNumber reads a number as an AMQP decoder gives it: whole ones as long.
func readNumber(t *testing.T, number json.Number) any {
	t.Helper()
	if whole, err := number.Int64(); err == nil {
		return whole
	}
	fraction, err := number.Float64()
	if err != nil {
		t.Fatal(err)
	}
	return fraction
}
