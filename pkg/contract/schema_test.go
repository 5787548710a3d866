package contract_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"changerelay/pkg/contract"
)

const schemaFile = "schema/event.schema.json"

func TestSchema_EveryGoldenMessageFitsTheSchema(t *testing.T) {
	t.Parallel()
	schema := readSchema(t)
	files, err := filepath.Glob("testdata/messages/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("got %d golden messages, %v", len(files), err)
	}
	for _, file := range files {
		if err := schema.Validate(readDocument(t, file)); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}

// What Decode refuses, the schema refuses, as far as a schema can tell.
func TestSchema_TheSchemaRefusesWhatDecodeRefuses(t *testing.T) {
	t.Parallel()
	attribute := func(name string, value any) func(map[string]any) {
		return func(message map[string]any) {
			message["applicationProperties"].(map[string]any)["cloudEvents_"+name] = value
		}
	}
	part := func(name string, value any) func(map[string]any) {
		return func(message map[string]any) { message[name] = value }
	}
	tests := []struct {
		name string
		edit func(map[string]any)
	}{
		{"another CloudEvents version", attribute("specversion", "0.3")},
		{"another contract", attribute("contractversion", "2")},
		{"an empty id", attribute("id", "")},
		{"an id that is too long", attribute("id", strings.Repeat("x", 129))},
		{"an id with a line break", attribute("id", "a\nb")},
		{"an empty aggregate id", attribute("subject", "")},
		{"an aggregate id that is too long", attribute("subject", strings.Repeat("x", 129))},
		{"an empty source", attribute("source", "")},
		{"an empty type", attribute("type", "")},
		{"a type that is no text", attribute("type", 5)},
		{"a time that is none", attribute("time", "yesterday")},
		{"an unknown operation", attribute("operation", "upsert")},
		{"a position that is none", attribute("position", "0000000000000000042")},
		{"a position for a sequence where there is a version", attribute("sequence", "6921d1e100000001.82")},
		{"a version below 0", attribute("aggregateversion", -1)},
		{"a version that is a fraction", attribute("aggregateversion", 4.5)},
		{"a term that is text", attribute("term", "seven")},
		{"an empty session", part("sessionId", "")},
		{"an empty message id", part("messageId", "")},
		{"an unknown content type", part("contentType", "text/plain")},
		{"an unknown content encoding", part("contentEncoding", "br")},
	}
	schema := readSchema(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			message := readDocument(t, "testdata/messages/insert.json").(map[string]any)
			tt.edit(message)
			if err := schema.Validate(message); err == nil {
				t.Error("got no error of the schema, want one")
			}
			file := filepath.Join(t.TempDir(), "message.json")
			text, err := json.Marshal(message)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, text, 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := contract.Decode(readGolden(t, file), contract.DecodeOptions{}); err == nil {
				t.Error("got no error of Decode, want one")
			}
		})
	}
}

func TestSchema_TheSchemaNeedsEveryPart(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, file string
		edit       func(map[string]any)
	}{
		{"a message id", "insert", func(m map[string]any) { delete(m, "messageId") }},
		{"a session id", "insert", func(m map[string]any) { delete(m, "sessionId") }},
		{"a partition key", "insert", func(m map[string]any) { delete(m, "partitionKey") }},
		{"a subject", "insert", func(m map[string]any) { delete(m, "subject") }},
		{"application properties", "insert", func(m map[string]any) { delete(m, "applicationProperties") }},
		{"no part that it does not know", "insert", func(m map[string]any) { m["label"] = "x" }},
		{"data of JSON", "insert", func(m map[string]any) { delete(m, "body") }},
		{"data of BSON", "replace-bson", func(m map[string]any) { delete(m, "bodyBase64") }},
		{"compressed data in base64", "insert-compressed", func(m map[string]any) { m["body"] = "x" }},
		{"no data without a content type", "delete", func(m map[string]any) { m["body"] = "x" }},
	}
	schema := readSchema(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			message := readDocument(t, filepath.Join("testdata/messages", tt.file+".json")).(map[string]any)
			tt.edit(message)
			if err := schema.Validate(message); err == nil {
				t.Error("got no error, want one")
			}
		})
	}
	for _, name := range stringsOf(t, schema.Schema().Properties["applicationProperties"].Required) {
		t.Run("the property "+name, func(t *testing.T) {
			t.Parallel()
			message := readDocument(t, "testdata/messages/insert.json").(map[string]any)
			delete(message["applicationProperties"].(map[string]any), name)
			if err := schema.Validate(message); err == nil {
				t.Error("got no error, want one")
			}
		})
	}
}

// stringsOf returns a list that must not be empty.
func stringsOf(t *testing.T, list []string) []string {
	t.Helper()
	if len(list) == 0 {
		t.Fatal("got an empty list")
	}
	return list
}

func readSchema(t *testing.T) *jsonschema.Resolved {
	t.Helper()
	text, err := os.ReadFile(schemaFile)
	if err != nil {
		t.Fatal(err)
	}
	var schema jsonschema.Schema
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatalf("%s: %v", schemaFile, err)
	}
	resolved, err := schema.Resolve(nil)
	if err != nil {
		t.Fatalf("%s: %v", schemaFile, err)
	}
	return resolved
}

func readDocument(t *testing.T, file string) any {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var document any
	if err := json.Unmarshal(text, &document); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return document
}
