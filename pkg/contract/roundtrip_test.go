package contract_test

import (
	"bytes"
	"reflect"
	"testing"

	"changerelay/pkg/contract"
)

func TestRoundTrip_EveryEventSurvivesTheJourney(t *testing.T) {
	t.Parallel()
	for _, tt := range samples() {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			m := mustEncode(t, tt.event, tt.options)
			got, err := contract.Decode(m, contract.DecodeOptions{})
			checkProblems(t, err)
			checkEvent(t, got, tt.event)
		})
	}
}

func TestRoundTrip_AMessageGoesToItsAggregatesSession(t *testing.T) {
	t.Parallel()
	e := newEvent()
	m := mustEncode(t, e, contract.EncodeOptions{})
	if m.ID != e.ID || m.SessionID != e.AggregateID || m.PartitionKey != m.SessionID || m.Subject != e.Type {
		t.Errorf("got id %q, session %q, partition key %q, subject %q, want those of %+v", m.ID, m.SessionID, m.PartitionKey, m.Subject, e)
	}
}

func TestRoundTrip_ABodyIsCompressedWhereThatHelps(t *testing.T) {
	t.Parallel()
	text := bytes.Repeat([]byte("again and "), 20)
	noise := []byte("\x8a\x01\x5c\xe3\x77\x90\x2b\xd4\x19\xfe")
	tests := []struct {
		name  string
		data  []byte
		above int
		want  string
	}{
		{"above the size", text, len(text) - 1, "gzip"},
		{"not at the size", text, len(text), ""},
		{"not when switched off", text, 0, ""},
		{"not where it would grow", noise, 1, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			e := newEvent()
			e.Data = tt.data
			m := mustEncode(t, e, contract.EncodeOptions{CompressAbove: tt.above})
			if m.ContentEncoding != tt.want {
				t.Errorf("got content encoding %q for %d bytes, want %q", m.ContentEncoding, len(tt.data), tt.want)
			}
			if len(m.Body) > len(tt.data) {
				t.Errorf("got a body of %d bytes for %d, want no more", len(m.Body), len(tt.data))
			}
		})
	}
}

func TestRoundTrip_OnlyAWellFormedTraceContextTravels(t *testing.T) {
	t.Parallel()
	const good = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	tests := []struct{ name, value, want string }{
		{"a trace context", good, good},
		{"one of a later version, with additions", "cc" + good[2:] + "-what-the-future-brings", "cc" + good[2:] + "-what-the-future-brings"},
		{"version 00 has no additions", good + "-more", ""},
		{"version ff is none", "ff" + good[2:], ""},
		{"upper case is none", "00-0AF7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", ""},
		{"a trace id of zeros is none", "00-00000000000000000000000000000000-b7ad6b7169203331-01", ""},
		{"a parent id of zeros is none", "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01", ""},
		{"dashes stand where they belong", "00_0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", ""},
		{"too short", good[:54], ""},
		{"an addition begins with a dash", "cc" + good[2:] + "x", ""},
		{"an addition is printable", "cc" + good[2:] + "-a\r\nb", ""},
		{"too long", "cc" + good[2:] + "-" + string(bytes.Repeat([]byte("x"), 128)), ""},
		{"none", "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			e := newEvent()
			e.TraceParent = tt.value
			m := mustEncode(t, e, contract.EncodeOptions{})
			got, err := contract.Decode(m, contract.DecodeOptions{})
			checkProblems(t, err)
			if got.TraceParent != tt.want {
				t.Errorf("got %q, want %q", got.TraceParent, tt.want)
			}
			if _, written := m.Properties["cloudEvents_traceparent"]; written != (tt.want != "") {
				t.Errorf("written: %v, want %v", written, tt.want != "")
			}
		})
	}
}

// checkEvent compares two events; no data and empty data are the same.
func checkEvent(t *testing.T, got, want contract.Event) {
	t.Helper()
	if !bytes.Equal(got.Data, want.Data) {
		t.Errorf("got data %q, want %q", got.Data, want.Data)
	}
	if !got.Time.Equal(want.Time) {
		t.Errorf("got time %v, want %v", got.Time, want.Time)
	}
	got.Data, want.Data, got.Time = nil, nil, want.Time
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
