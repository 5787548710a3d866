package contract_test

import (
	"testing"

	"changerelay/pkg/contract"
)

func TestPlace_IsKnownOfWhatDecodeRefuses(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		edit func(*contract.Message)
		want bool
	}{
		{"a whole message", func(*contract.Message) {}, true},
		{"a later contract", func(m *contract.Message) { m.Properties["cloudEvents_contractversion"] = "2" }, true},
		{"a body that is cut", func(m *contract.Message) { m.Body = m.Body[:len(m.Body)/2] }, true},
		{"an unknown encoding", func(m *contract.Message) { m.ContentEncoding = "zstd" }, true},
		{"no type, position and operation", func(m *contract.Message) {
			delete(m.Properties, "cloudEvents_type")
			delete(m.Properties, "cloudEvents_position")
			m.Properties["cloudEvents_operation"] = 7
		}, true},
		{"no copy of id and session", func(m *contract.Message) {
			delete(m.Properties, "cloudEvents_id")
			delete(m.Properties, "cloudEvents_subject")
		}, true},
		{"no sequence", func(m *contract.Message) { delete(m.Properties, "cloudEvents_sequence") }, false},
		{"a sequence of another type", func(m *contract.Message) { m.Properties["cloudEvents_sequence"] = int64(1) }, false},
		{"no id", func(m *contract.Message) { m.ID = "" }, false},
		{"no session", func(m *contract.Message) { m.SessionID = "" }, false},
		{"two ids", func(m *contract.Message) { m.Properties["cloudEvents_id"] = "another" }, false},
		{"two sessions", func(m *contract.Message) { m.Properties["cloudEvents_subject"] = []byte("x") }, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for _, sample := range samples() {
				m := mustEncode(t, sample.event, sample.options)
				tt.edit(&m)
				place, placed := contract.Place(m)
				if placed != tt.want {
					t.Fatalf("%s: got %t, want %t", sample.name, placed, tt.want)
				}
				if e := sample.event; placed && (place.ID != e.ID || place.AggregateID != e.AggregateID || place.Sequence != e.Sequence ||
					place.Version != e.Version || !place.Time.Equal(e.Time) || len(place.Data) > 0) {
					t.Errorf("%s: got %+v, want the place of %+v", sample.name, place, e)
				}
			}
		})
	}
}

// The sequence says one place and the version, or the position, another: the
// message stands at the earlier one, so that nothing is applied over it.
func TestPlace_IsTheEarlierOfTwo(t *testing.T) {
	t.Parallel()
	early, late := contract.StreamPosition(1700000000, 1, "82AB"), contract.StreamPosition(1700000000, 2, "82AB")
	numbered := func(n int64) contract.Sequence { return contract.SequenceOf(contract.VersionOf(n), "") }
	tests := []struct {
		name     string
		sequence contract.Sequence
		version  any
		position any
		contract string
		want     contract.Sequence
	}{
		{"a sequence before its version", numbered(2), int64(5), string(early), "1", numbered(2)},
		{"a sequence behind its version", numbered(9), int64(5), string(early), "1", numbered(5)},
		{"a version written as text", numbered(9), "5", string(early), "1", numbered(5)},
		{"a sequence that is no number", "z", int64(5), string(early), "1", numbered(5)},
		{"a sequence before its position", contract.Sequence(early), nil, string(late), "1", contract.Sequence(early)},
		{"a sequence behind its position", contract.Sequence(late), nil, string(early), "1", contract.Sequence(early)},
		{"neither version nor position", numbered(9), nil, nil, "1", numbered(9)},
		{"a version that cannot be read", numbered(9), true, string(early), "1", numbered(9)},
		{"a version below 0", numbered(9), int64(-5), string(early), "1", numbered(9)},
		{"a later contract, which may count otherwise", numbered(9), int64(5), string(early), "2", numbered(9)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			m := mustEncode(t, samples()[0].event, samples()[0].options)
			m.Properties["cloudEvents_sequence"], m.Properties["cloudEvents_contractversion"] = string(tt.sequence), tt.contract
			m.Properties["cloudEvents_aggregateversion"], m.Properties["cloudEvents_position"] = tt.version, tt.position
			if place, placed := contract.Place(m); !placed || place.Sequence != tt.want {
				t.Errorf("got %q and %t, want %q", place.Sequence, placed, tt.want)
			}
			if _, err := contract.Decode(m, contract.DecodeOptions{}); err == nil {
				t.Error("Decode takes it")
			}
		})
	}
}
