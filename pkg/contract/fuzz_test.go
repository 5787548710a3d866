package contract_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"changerelay/pkg/contract"
)

// fuzzBound is the bound for data under fuzzing.
const fuzzBound = 1 << 16

// FuzzDecode shows that whatever a message holds, Decode does not panic and
// keeps its bounds, and that an event which it reads is one that Encode writes
// and Decode reads again as the same.
func FuzzDecode(f *testing.F) {
	for _, tt := range samples() {
		m := mustEncode(f, tt.event, tt.options)
		f.Add(m.ID, m.SessionID, m.ContentType, m.ContentEncoding, m.Body, propertiesText(f, m.Properties))
	}
	f.Fuzz(func(t *testing.T, id, session, contentType, contentEncoding string, body, properties []byte) {
		m := contract.Message{
			ID: id, SessionID: session, ContentType: contentType, ContentEncoding: contentEncoding,
			Properties: readProperties(properties), Body: body,
		}
		event, err := contract.Decode(m, contract.DecodeOptions{MaxDataBytes: fuzzBound})
		place, placed := contract.Place(m)
		if err != nil {
			checkRefusal(t, err)
			return
		}
		if !placed || place.ID != event.ID || place.AggregateID != event.AggregateID || place.Sequence != event.Sequence || place.Version != event.Version {
			t.Errorf("got place %+v and %t, want that of %+v", place, placed, event)
		}
		if len(event.Data) > fuzzBound {
			t.Fatalf("got %d bytes of data, want %d at most", len(event.Data), fuzzBound)
		}
		again, err := contract.Decode(mustEncode(t, event, contract.EncodeOptions{CompressAbove: 64}), contract.DecodeOptions{})
		if err != nil {
			t.Fatalf("what was decoded does not decode again: %v", err)
		}
		if !bytes.Equal(again.Data, event.Data) {
			t.Errorf("got data %q, want %q", again.Data, event.Data)
		}
		again.Data, event.Data = nil, nil
		if !reflect.DeepEqual(again, event) {
			t.Errorf("got %+v, want %+v", again, event)
		}
	})
}

// checkRefusal checks that an error says which fields are wrong, in few words.
func checkRefusal(t *testing.T, err error) {
	t.Helper()
	var field *contract.FieldError
	if !errors.As(err, &field) || field.Field == "" {
		t.Errorf("got error %q, want a field named", err)
	}
	if len(err.Error()) > 16<<10 {
		t.Errorf("got an error of %d bytes, want it short", len(err.Error()))
	}
}

// propertiesText writes properties as lines of name, type and value, which a
// fuzzer can change one by one.
func propertiesText(tb testing.TB, properties map[string]any) []byte {
	tb.Helper()
	var text bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		value, err := json.Marshal(properties[name])
		if err != nil {
			tb.Fatal(err)
		}
		text.WriteString(strings.Join([]string{name, reflect.TypeOf(properties[name]).String(), string(value)}, " ") + "\n")
	}
	return text.Bytes()
}

// readProperties reads such lines, and drops what it cannot read.
func readProperties(text []byte) map[string]any {
	properties := make(map[string]any)
	for line := range bytes.Lines(text) {
		parts := bytes.SplitN(bytes.TrimSuffix(line, []byte("\n")), []byte(" "), 3)
		if len(parts) < 3 {
			continue
		}
		properties[string(parts[0])] = readValue(string(parts[1]), parts[2])
	}
	return properties
}

// readValue reads a value of one of the types that an AMQP decoder makes. A
// type that it does not know takes the text as it stands, UTF-8 or not.
func readValue(kind string, text []byte) any {
	targets := map[string]any{
		"string": new(string), "bool": new(bool), "int64": new(int64), "int32": new(int32), "int16": new(int16), "int8": new(int8),
		"uint64": new(uint64), "uint32": new(uint32), "uint16": new(uint16), "uint8": new(uint8), "float64": new(float64),
		"float32": new(float32), "time": new(time.Time), "map": new(map[string]any), "list": new([]any), "binary": new([]byte),
	}
	target, known := targets[kind]
	if !known {
		return string(text)
	}
	if err := json.Unmarshal(text, target); err != nil {
		return nil
	}
	return reflect.ValueOf(target).Elem().Interface()
}
