package contract_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"changerelay/pkg/contract"
)

// Keys and tokens as a server writes them: the BSON of {_id: ObjectId(…)}, and
// the resume token of the insert of that document.
var (
	orderKey   = append([]byte{22, 0, 0, 0, 7, '_', 'i', 'd', 0}, "gAa\x11\x22\x33\x44\x55\x66\x77\x88\x99\x00"...)
	orderToken = "826921D1E1000000012B022C0100296E5A1004D0C1B0B6E7C94A1F8C5B3A0E8E1F2A3B46645F69640064674161112233445566778899000004"
)

// newEvent returns a valid event of a source that numbers its events: the
// insert of version 42 of order-000123.
func newEvent() contract.Event {
	return build(contract.Event{
		Source:      contract.Source("shop", "events"),
		Type:        "OrderPlaced",
		AggregateID: "order-000123",
		Time:        time.Date(2025, 11, 22, 15, 8, 17, 123_000_000, time.UTC),
		Operation:   contract.Insert,
		Position:    contract.StreamPosition(0x6921d1e1, 1, orderToken),
		Version:     contract.VersionOf(42),
		Term:        7,
		ContentType: contract.ContentTypeJSON,
		Data:        []byte(`{"customer":"c-17","total":129.5,"lines":[{"sku":"A-1","count":2}]}`),
	})
}

// build gives an event the id and the sequence that follow from the rest.
func build(e contract.Event) contract.Event {
	e.Sequence = contract.SequenceOf(e.Version, e.Position)
	e.ID = contract.Identity{
		Database: "shop", Collection: "events", DocumentKey: orderKey,
		Operation: e.Operation, Version: e.Version, Position: e.Position,
	}.MessageID()
	return e
}

// sample is an event with the options it is written with.
type sample struct {
	name    string // also its file under testdata/messages
	event   contract.Event
	options contract.EncodeOptions
	sender  contract.TraceContext
}

// message is the sample as it is sent.
func (s *sample) message(tb testing.TB) contract.Message {
	tb.Helper()
	m := mustEncode(tb, s.event, s.options)
	m.SetTraceContext(s.sender)
	return m
}

// samples has every operation, with and without each optional part.
func samples() []sample {
	change := func(edit func(*contract.Event)) contract.Event {
		e := newEvent()
		edit(&e)
		return build(e)
	}
	return []sample{
		{name: "insert", event: newEvent()},
		{name: "insert-traced", event: change(func(e *contract.Event) {
			e.TraceParent = originParent
		})},
		{name: "insert-sender-traced", event: change(func(e *contract.Event) {
			e.TraceParent = originParent
		}), sender: contract.TraceContext{Parent: senderParent, State: "vendor=00f067aa0ba902b7"}},
		{name: "snapshot-resent", event: change(func(e *contract.Event) {
			e.Operation = contract.Snapshot
			e.Position = contract.SnapshotPosition(0x6921d1e1, 1, 3)
			e.Resend = contract.Resend{ID: "k3v9q2mx", Group: "orders-2"}
		})},
		{name: "insert-compressed", event: change(func(e *contract.Event) {
			e.Data = []byte(`{"note":"` + strings.Repeat("again and ", 50) + `"}`)
		}), options: contract.EncodeOptions{CompressAbove: 256}},
		{name: "insert-highest-version", event: change(func(e *contract.Event) {
			e.AggregateID, e.Version = "Bestellung Nº 7 ☕", contract.VersionOf(math.MaxInt64)
		})},
		{name: "snapshot-versioned", event: change(func(e *contract.Event) {
			e.Operation, e.Position = contract.Snapshot, contract.SnapshotPosition(0x6921d1e1, 1, 9)
		})},
		{name: "snapshot-unversioned", event: change(func(e *contract.Event) {
			e.Operation, e.Position = contract.Snapshot, contract.SnapshotPosition(0x6921d1e1, 1, 9)
			e.Version = contract.Version{}
		})},
		{name: "update-unversioned", event: change(func(e *contract.Event) {
			e.Operation, e.Version, e.Time, e.Type = contract.Update, contract.Version{}, time.Time{}, "update"
		})},
		{name: "insert-types", event: change(func(e *contract.Event) {
			e.Data = []byte(`{"int":5,"long":{"$numberLong":"5"},"double":5.0,"negativeZero":-0.0,"nan":{"$numberDouble":"NaN"},` +
				`"decimal":{"$numberDecimal":"129.50"},"date":{"$date":"2025-11-22T15:08:17.123Z"},"early":{"$date":{"$numberLong":"-1"}},` +
				`"id":{"$oid":"6740b7c1a1b2c3d4e5f60718"},"binary":{"$binary":{"base64":"AQI=","subType":"00"}},"timestamp":{"$timestamp":{"t":1,"i":2}},` +
				`"pattern":{"$regularExpression":{"pattern":"a","options":"i"}},"least":{"$minKey":1},"greatest":{"$maxKey":1},"nothing":null}`)
		})},
		{name: "insert-reserved-name-bson", event: change(func(e *contract.Event) {
			e.ContentType = contract.ContentTypeBSON
			e.Data = []byte("\x14\x00\x00\x00\x02$oid\x00\x05\x00\x00\x00text\x00\x00")
		})},
		{name: "replace-bson", event: change(func(e *contract.Event) {
			e.Operation, e.Type, e.ContentType = contract.Replace, "replace", contract.ContentTypeBSON
			e.Data = []byte{12, 0, 0, 0, 0x10, 'n', 0, 1, 0, 0, 0, 0}
		})},
		{name: "update-document", event: change(func(e *contract.Event) {
			e.Operation, e.Version, e.Type, e.DataSchema = contract.Update, contract.Version{}, "orders.update", contract.DocumentChange
			e.Data = []byte(`{"document":{"_id":7,"status":"paid","total":129.5},"changed":{"status":"paid"},"removed":["due"],"before":{"_id":7,"status":"open","total":129.5,"due":1}}`)
		})},
		{name: "delete-document", event: change(func(e *contract.Event) {
			e.Operation, e.Version, e.Type, e.DataSchema = contract.Delete, contract.Version{}, "orders.delete", contract.DocumentChange
			e.Data = []byte(`{"before":{"_id":7,"status":"paid","total":129.5}}`)
		})},
		{name: "delete", event: change(func(e *contract.Event) {
			e.Operation, e.Type, e.ContentType, e.Data = contract.Delete, "delete", "", nil
			e.Version = contract.Version{}
		})},
	}
}

// mustEncode writes an event that keeps the contract.
func mustEncode(tb testing.TB, e contract.Event, o contract.EncodeOptions) contract.Message {
	tb.Helper()
	m, err := contract.Encode(e, o)
	if err != nil {
		tb.Fatalf("Encode: %v", err)
	}
	return m
}

// checkProblems compares the fields that an error names, with their problems.
func checkProblems(t *testing.T, err error, want ...string) {
	t.Helper()
	got := ""
	if err != nil {
		got = err.Error()
	}
	if got != strings.Join(want, "\n") {
		t.Errorf("got problems:\n%s\nwant:\n%s", got, strings.Join(want, "\n"))
	}
}
