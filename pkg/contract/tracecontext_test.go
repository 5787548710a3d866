package contract_test

import (
	"strings"
	"testing"

	"changerelay/pkg/contract"
)

const (
	originParent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	senderParent = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01"
)

func TestTraceContext_AReaderContinuesTheSendersSpanElseTheEventsOwn(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name       string
		properties map[string]any
		want       contract.TraceContext
	}{
		{"nobody traces", map[string]any{}, contract.TraceContext{}},
		{
			"the event alone",
			map[string]any{"cloudEvents_traceparent": originParent},
			contract.TraceContext{Parent: originParent},
		},
		{
			"the event and the sender",
			map[string]any{"cloudEvents_traceparent": originParent, "traceparent": senderParent, "tracestate": "a=1,b=2"},
			contract.TraceContext{Parent: senderParent, State: "a=1,b=2"},
		},
		{
			"a malformed sender",
			map[string]any{"cloudEvents_traceparent": originParent, "traceparent": "00-xyz", "tracestate": "a=1"},
			contract.TraceContext{Parent: originParent},
		},
		{"a sender of another type", map[string]any{"traceparent": 7}, contract.TraceContext{}},
		{
			"a state that is not text",
			map[string]any{"traceparent": senderParent, "tracestate": "a=\r\n"},
			contract.TraceContext{Parent: senderParent},
		},
		{
			"a state that is too long",
			map[string]any{"traceparent": senderParent, "tracestate": strings.Repeat("x", 513)},
			contract.TraceContext{Parent: senderParent},
		},
		{"a state without a parent", map[string]any{"tracestate": "a=1"}, contract.TraceContext{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			m := contract.Message{Properties: tt.properties}
			if got := m.TraceContext(); got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}

func TestTraceContext_ASendersTraceContextLeavesTheEventAsItIs(t *testing.T) {
	t.Parallel()
	e := newEvent()
	e.TraceParent = originParent
	m := mustEncode(t, e, contract.EncodeOptions{})
	m.SetTraceContext(contract.TraceContext{Parent: senderParent, State: "a=1"})
	got, err := contract.Decode(m, contract.DecodeOptions{})
	checkProblems(t, err)
	checkEvent(t, got, e)
	if want := (contract.TraceContext{Parent: senderParent, State: "a=1"}); m.TraceContext() != want {
		t.Errorf("got %+v, want %+v", m.TraceContext(), want)
	}
}

func TestTraceContext_AMalformedTraceContextIsLeftOut(t *testing.T) {
	t.Parallel()
	for _, c := range []contract.TraceContext{{}, {State: "a=1"}, {Parent: "00-xyz", State: "a=1"}} {
		m := mustEncode(t, newEvent(), contract.EncodeOptions{})
		before := len(m.Properties)
		m.SetTraceContext(c)
		if got := len(m.Properties); got != before {
			t.Errorf("%+v: got %d properties, want %d as before", c, got, before)
		}
	}
	m := mustEncode(t, newEvent(), contract.EncodeOptions{})
	m.SetTraceContext(contract.TraceContext{Parent: senderParent, State: "\x00"})
	if _, written := m.Properties["tracestate"]; written {
		t.Error("a malformed state was written")
	}
}

// FuzzTraceContext shows that whatever a message says of its trace, what is read
// of it is nothing, or travels on as it is.
func FuzzTraceContext(f *testing.F) {
	f.Add(originParent, senderParent, "a=1")
	f.Add("", "cc-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01-more", "")
	f.Add("00-00000000000000000000000000000000-b7ad6b7169203331-01", "ff", "\x00")
	f.Fuzz(func(t *testing.T, origin, sender, state string) {
		m := contract.Message{Properties: map[string]any{"cloudEvents_traceparent": origin, "traceparent": sender, "tracestate": state}}
		got := m.TraceContext()
		if len(got.Parent) > 128 || len(got.State) > 512 {
			t.Fatalf("got %d and %d bytes, want them bounded", len(got.Parent), len(got.State))
		}
		if got.Parent != "" && got.Parent != origin && got.Parent != sender {
			t.Fatalf("got %q, which nobody said", got.Parent)
		}
		on := contract.Message{Properties: map[string]any{}}
		on.SetTraceContext(got)
		if again := on.TraceContext(); again != got {
			t.Errorf("got %+v, want %+v", again, got)
		}
	})
}
