package validate

import (
	"slices"
	"strings"
	"testing"
	"time"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// sent makes a send of a term, that many milliseconds after noon.
func sent(term int64, ms int) Send {
	return Send{Event: Event{"a", int64(ms)}, Term: term, Enqueued: noon.Add(time.Duration(ms) * time.Millisecond)}
}

func TestTerms_OverlappingTerms(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		sends  []Send
		want   int
		sample string
	}{
		{name: "one term is clean", sends: []Send{sent(1, 0), sent(1, 10)}},
		{name: "a term after another is clean", sends: []Send{sent(1, 0), sent(1, 10), sent(2, 20), sent(2, 30)}},
		{name: "the same millisecond is no overlap", sends: []Send{sent(1, 20), sent(2, 20)}},
		{
			name: "a stale leader that sends after its successor is found", want: 1,
			sends: []Send{sent(1, 0), sent(2, 20), sent(1, 25), sent(2, 30)}, sample: "5ms after a higher term",
		},
		{
			name: "an overlap with the term after next is found", want: 2,
			sends: []Send{sent(1, 0), sent(3, 20), sent(1, 30), sent(2, 40)},
		},
		{
			name: "the order of the list says nothing", want: 1,
			sends: []Send{sent(1, 25), sent(2, 20), sent(1, 0)},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := OverlappingTerms(tt.sends)
			if f.Count != tt.want {
				t.Errorf("overlaps: got %d %q, want %d", f.Count, f.Samples, tt.want)
			}
			if got := strings.Join(f.Samples, "\n"); !strings.Contains(got, tt.sample) {
				t.Errorf("samples: got %q, want one with %q", got, tt.sample)
			}
		})
	}
}

// of puts a send on a stream.
func of(s Send, stream string) Send {
	s.Stream = stream
	return s
}

// Partitions count terms of their own, so that one may be behind the other for good.
func TestTerms_StreamsHaveTermsOfTheirOwn(t *testing.T) {
	t.Parallel()
	history := []Checkpoint{{Stream: "s-0of2", Term: 1}, {Stream: "s-1of2", Term: 1}, {Stream: "s-1of2", Term: 2}}
	clean := []Send{of(sent(2, 0), "s-1of2"), of(sent(1, 10), "s-0of2")}
	if f := OverlappingTerms(clean); f.Count != 0 {
		t.Errorf("overlaps of streams: got %q, want none", f.Samples)
	}
	if f := TermsUnclaimed(clean, history); f.Count != 0 {
		t.Errorf("unclaimed by streams: got %q, want none", f.Samples)
	}
	unclaimed := append(slices.Clone(clean), of(sent(2, 20), "s-0of2")) // which the other stream has claimed
	if f := TermsUnclaimed(unclaimed, history); f.Count != 1 {
		t.Errorf("unclaimed: got %d %q, want the one of the first stream", f.Count, f.Samples)
	}
	if f := TermsUnclaimed([]Send{sent(2, 20)}, history); f.Count != 0 {
		t.Errorf("unclaimed on a stream that is not known: got %q, want none", f.Samples)
	}
	stale := append(slices.Clone(clean), of(sent(1, 20), "s-1of2"))
	if f := OverlappingTerms(stale); f.Count != 1 {
		t.Errorf("overlaps: got %d %q, want the one of the second stream", f.Count, f.Samples)
	}
}

func TestInStreams_GoesByTheHashOfTheAggregate(t *testing.T) {
	t.Parallel()
	partitions := []Checkpoint{{Stream: "s-0of3"}, {Stream: "s-1of3"}, {Stream: "s-2of3"}}
	for name, tt := range map[string]struct {
		history []Checkpoint
		want    string
	}{
		"the whole":                       {[]Checkpoint{{Stream: "s"}, {Stream: "s"}}, "s"},
		"one of several partitions":       {partitions, "s-1of3"},
		"partitions of two numbers":       {append(partitions, Checkpoint{Stream: "s-0of2"}), ""},
		"nothing that is known":           {nil, ""},
		"none of the partitions that are": {partitions[:1], ""},
	} {
		got := InStreams([]Send{{Event: Event{Aggregate: "a"}}}, tt.history)
		if got[0].Stream != tt.want {
			t.Errorf("%s: got stream %q, want %q", name, got[0].Stream, tt.want)
		}
	}
}

func TestTerms_TermsShared(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		history []Checkpoint
		want    int
	}{
		{name: "one owner after another is clean", history: []Checkpoint{{Stream: "s", Owner: "p", Term: 1}, {Stream: "s", Owner: "p", Term: 1, Position: "a"}, {Stream: "s", Owner: "q", Term: 2}, {Stream: "s", Owner: "p", Term: 3}}},
		{name: "streams have terms of their own", history: []Checkpoint{{Stream: "s", Owner: "p", Term: 1}, {Stream: "r", Owner: "q", Term: 1}}},
		{name: "a term with two owners is found", history: []Checkpoint{{Stream: "s", Owner: "p", Term: 1}, {Stream: "s", Owner: "q", Term: 1}}, want: 1},
		{name: "so is one that an earlier owner comes back to", history: []Checkpoint{{Stream: "s", Owner: "p", Term: 1}, {Stream: "s", Owner: "q", Term: 2}, {Stream: "s", Owner: "q", Term: 1}}, want: 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if f := TermsShared(tt.history); f.Count != tt.want {
				t.Errorf("got %d %q, want %d", f.Count, f.Samples, tt.want)
			}
		})
	}
}

func TestTerms_Handovers(t *testing.T) {
	t.Parallel()
	got := Handovers([]Send{sent(1, 0), sent(1, 10), sent(4, 510), sent(4, 600), sent(1, 550), sent(5, 640)})
	want := []struct {
		from, to int64
		gap      time.Duration
	}{
		{from: 1, to: 4, gap: 500 * time.Millisecond},
		{from: 4, to: 5, gap: 40 * time.Millisecond},
	}
	if len(got) != len(want) {
		t.Fatalf("handovers: got %v, want %v", got, want)
	}
	for i, w := range want {
		if h := got[i]; h.From != w.from || h.To != w.to || h.Gap() != w.gap {
			t.Errorf("handover %d: got %d to %d after %v, want %d to %d after %v", i, h.From, h.To, h.Gap(), w.from, w.to, w.gap)
		}
	}
	if got := Handovers(nil); len(got) != 0 {
		t.Errorf("handovers of nothing: got %v, want none", got)
	}
}

func TestTerms_LeaseOverlaps(t *testing.T) {
	t.Parallel()
	held := func(by string, from, until int) Holding {
		at := func(ms int) time.Time { return noon.Add(time.Duration(ms) * time.Millisecond) }
		h := Holding{Lease: "l", From: at(from), Until: at(until)}
		if by != "" {
			h.Leader, h.Incarnation = by[:1], by
		}
		return h
	}
	tests := []struct {
		name    string
		history []Holding
		want    int
	}{
		{name: "renewals are clean", history: []Holding{held("a1", 0, 10), held("a1", 5, 15), held("a1", 10, 20)}},
		{name: "a takeover when the time is over is clean", history: []Holding{held("a1", 0, 10), held("b1", 10, 20)}},
		{name: "a takeover after a release is clean", history: []Holding{held("a1", 0, 10), held("", 3, 3), held("b1", 4, 14)}},
		{name: "a takeover of a live lease is found", history: []Holding{held("a1", 0, 10), held("b1", 9, 19)}, want: 1},
		{name: "a takeover of a lease that was renewed is found", history: []Holding{held("a1", 0, 10), held("a1", 8, 18), held("b1", 12, 22)}, want: 1},
		{name: "another process of the same name is another holder", history: []Holding{held("a1", 0, 10), held("a2", 5, 15)}, want: 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if f := LeaseOverlaps(tt.history); f.Count != tt.want {
				t.Errorf("overlaps: got %d %q, want %d", f.Count, f.Samples, tt.want)
			}
		})
	}
}
