package amqp_test

import (
	"bytes"
	"reflect"
	"testing"
	"time"

	goamqp "github.com/Azure/go-amqp"

	"changerelay/services/sandbox/internal/servicebus/amqp"
)

// official encodes a message with the official library.
func official(tb testing.TB, m *goamqp.Message) []byte {
	tb.Helper()
	b, err := m.MarshalBinary()
	if err != nil {
		tb.Fatalf("unexpected error: %v", err)
	}
	return b
}

func fullMessage() *goamqp.Message {
	text := func(s string) *string { return &s }
	at := time.UnixMilli(1_700_000_000_000)
	return &goamqp.Message{
		Header:              &goamqp.MessageHeader{Durable: true, Priority: 7, TTL: time.Minute, FirstAcquirer: true, DeliveryCount: 3},
		DeliveryAnnotations: goamqp.Annotations{"d": int64(1)},
		Annotations:         goamqp.Annotations{"a": "b"},
		Properties: &goamqp.MessageProperties{
			MessageID: "id", UserID: []byte("u"), To: text("to"), Subject: text("s"), ReplyTo: text("r"), CorrelationID: uint64(5),
			ContentType: text("ct"), ContentEncoding: text("gzip"), AbsoluteExpiryTime: &at, CreationTime: &at,
			GroupID: text(""), GroupSequence: new(uint32), ReplyToGroupID: text("rg"),
		},
		ApplicationProperties: map[string]any{"k": int32(1)},
		Data:                  [][]byte{[]byte("one"), []byte("two")},
		Footer:                goamqp.Annotations{"f": true},
	}
}

func TestMessage_AMessageOfTheOfficialLibraryIsTakenApart(t *testing.T) {
	t.Parallel()
	raw := official(t, fullMessage())
	m, err := amqp.ReadMessage(raw)
	if err != nil {
		t.Fatalf("unexpected error: %v", err)
	}
	empty := ""
	at := time.UnixMilli(1_700_000_000_000).UTC()
	wantProperties := amqp.Properties{
		MessageID: "id", UserID: []byte("u"), To: "to", Subject: "s", ReplyTo: "r", CorrelationID: uint64(5), ContentType: "ct",
		ContentEncoding: "gzip", AbsoluteExpiry: at, Creation: at, GroupID: &empty, GroupSequence: amqp.Some(0), ReplyToGroupID: "rg",
	}
	if !reflect.DeepEqual(m.Properties, wantProperties) {
		t.Errorf("got properties %#v, want %#v", m.Properties, wantProperties)
	}
	wantHeader := amqp.Header{Durable: true, Priority: 7, TTL: amqp.Some(60_000), FirstAcquirer: true, DeliveryCount: 3}
	if m.Header != wantHeader {
		t.Errorf("got header %#v, want %#v", m.Header, wantHeader)
	}
	if m.Annotations.String("a") != "b" || m.DeliveryAnnotations.Get("d") != any(int64(1)) || m.ApplicationProperties.Get("k") != any(int32(1)) {
		t.Errorf("got maps %v, %v, %v, want what was sent", m.Annotations, m.DeliveryAnnotations, m.ApplicationProperties)
	}
	data, err := m.Data()
	if err != nil || len(data) != 2 || string(data[0]) != "one" || string(data[1]) != "two" {
		t.Errorf("got data %q, error %v, want one and two", data, err)
	}
	if !bytes.HasSuffix(raw, m.Bare) || !bytes.Contains(m.Bare, m.Body) {
		t.Error("got a bare message that is not the end of the input, want the bytes as they came")
	}
}

func TestMessage_TheOfficialLibraryReadsWhatIsPutInFront(t *testing.T) {
	t.Parallel()
	m, err := amqp.ReadMessage(official(t, fullMessage()))
	if err != nil {
		t.Fatalf("unexpected error: %v", err)
	}
	b := amqp.AppendHeader(nil, amqp.Header{Durable: true, TTL: amqp.Some(5000), DeliveryCount: 2})
	b = amqp.AppendDeliveryAnnotations(b, amqp.Map{{Key: amqp.Symbol("x-opt-lock-token"), Value: amqp.UUID{9}}})
	b = amqp.AppendAnnotations(b, amqp.Map{{Key: amqp.Symbol("x-opt-sequence-number"), Value: int64(1)}})
	b, err = amqp.OverlayApplicationProperties(b, m.Bare, amqp.Map{{Key: "k", Value: "new"}, {Key: "l", Value: true}})
	if err != nil {
		t.Fatalf("unexpected error: %v", err)
	}
	var got goamqp.Message
	if err := got.UnmarshalBinary(b); err != nil {
		t.Fatalf("unexpected error: %v", err)
	}
	want := fullMessage()
	want.Header = &goamqp.MessageHeader{Durable: true, Priority: 4, TTL: 5 * time.Second, DeliveryCount: 2}
	want.DeliveryAnnotations = goamqp.Annotations{"x-opt-lock-token": goamqp.UUID{9}}
	want.Annotations = goamqp.Annotations{"x-opt-sequence-number": int64(1)}
	want.ApplicationProperties = map[string]any{"k": "new", "l": true}
	if !reflect.DeepEqual(got.Header, want.Header) {
		t.Errorf("got header %#v, want %#v", got.Header, want.Header)
	}
	if !reflect.DeepEqual(got.Properties, want.Properties) {
		t.Errorf("got properties %#v, want %#v", got.Properties, want.Properties)
	}
	got.Header, got.Properties, want.Header, want.Properties = nil, nil, nil, nil
	if !reflect.DeepEqual(&got, want) {
		t.Errorf("got  %#v\nwant %#v", &got, want)
	}
}

func TestMessage_AnOverlayAddsTheSectionWhereThereIsNone(t *testing.T) {
	t.Parallel()
	entries := amqp.Map{{Key: "k", Value: "v"}}
	tests := map[string]*goamqp.Message{
		"a body alone":             {Value: "x"},
		"properties and a body":    {Properties: &goamqp.MessageProperties{MessageID: "1"}, Value: "x"},
		"properties, body, footer": {Properties: &goamqp.MessageProperties{MessageID: "1"}, Value: "x", Footer: goamqp.Annotations{"f": true}},
	}
	for name, m := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, err := amqp.OverlayApplicationProperties(nil, official(t, m), entries)
			if err != nil {
				t.Fatalf("unexpected error: %v", err)
			}
			var got goamqp.Message
			if err := got.UnmarshalBinary(b); err != nil {
				t.Fatalf("unexpected error: %v", err)
			}
			m.ApplicationProperties = map[string]any{"k": "v"}
			if !reflect.DeepEqual(&got, m) {
				t.Errorf("got %#v, want %#v", &got, m)
			}
		})
	}
}

func TestMessage_MessagesInDisorderAreRefused(t *testing.T) {
	t.Parallel()
	value := amqp.AppendBodyValue(nil, "x")
	header := amqp.AppendHeader(nil, amqp.Header{})
	properties := amqp.AppendProperties(nil, &amqp.Properties{})
	tests := map[string][]byte{
		"a header behind the body":  append(append([]byte{}, value...), header...),
		"two headers":               append(append([]byte{}, header...), header...),
		"two values":                append(append([]byte{}, value...), value...),
		"properties behind a body":  append(append([]byte{}, value...), properties...),
		"a section that is unknown": {0, 0x53, 0x79, 0x45},
		"a performative":            {0, 0x53, 0x10, 0x45},
		"a body that is cut":        value[:len(value)-1],
		"bytes behind the last":     append(append([]byte{}, value...), 1),
	}
	for name, input := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if m, err := amqp.ReadMessage(input); err == nil {
				t.Errorf("got %#v, want an error", m)
			}
		})
	}
}

func TestMessage_ABodyOfAnotherKindIsNotMistaken(t *testing.T) {
	t.Parallel()
	value, err := amqp.ReadMessage(amqp.AppendBodyValue(nil, "x"))
	if err != nil {
		t.Fatalf("unexpected error: %v", err)
	}
	if data, err := value.Data(); err == nil {
		t.Errorf("got data %q from a value, want an error", data)
	}
	data, err := amqp.ReadMessage(official(t, goamqp.NewMessage([]byte("x"))))
	if err != nil {
		t.Fatalf("unexpected error: %v", err)
	}
	if v, err := data.Value(); err == nil {
		t.Errorf("got value %v from data, want an error", v)
	}
}

func TestMessage_AnnotationsAreCutFromTheFrontOnly(t *testing.T) {
	t.Parallel()
	own := amqp.Map{{Key: amqp.Symbol("a"), Value: "b"}}
	body := amqp.AppendBodyValue(nil, "x")
	got, rest, err := amqp.CutAnnotations(append(amqp.AppendAnnotations(nil, own), body...))
	if err != nil || !reflect.DeepEqual(got, own) || !bytes.Equal(rest, body) {
		t.Errorf("got %v, rest %x, error %v, want %v and the body", got, rest, err, own)
	}
	got, rest, err = amqp.CutAnnotations(body)
	if err != nil || got != nil || !bytes.Equal(rest, body) {
		t.Errorf("got %v, rest %x, error %v, want the body alone", got, rest, err)
	}
}
