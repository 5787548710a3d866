package validate

import (
	"slices"
	"strings"
	"testing"
)

// events makes a history of one-letter aggregates: "a1 b1 a2".
func events(t *testing.T, text string) []Event {
	t.Helper()
	var list []Event
	for word := range strings.FieldsSeq(text) {
		list = append(list, Event{Aggregate: word[:1], Version: int64(word[1] - '0')})
	}
	return list
}

func sourceOf(t *testing.T, text string) Source {
	t.Helper()
	s := Source{}
	for _, e := range events(t, text) {
		s[e.Aggregate] = append(s[e.Aggregate], e.Version)
	}
	return s
}

func TestDelivery(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		source string
		seen   string

		lost, unknown, duplicated, reordered int
		sample                               string
	}{
		{name: "everything once and in order is clean", source: "a1 a2 b1", seen: "a1 b1 a2"},
		{name: "nothing at all is clean"},
		{name: "a repeat of the latest is a duplicate and no reordering", source: "a1 a2", seen: "a1 a2 a2", duplicated: 1, sample: "a version 2 was seen again"},
		{name: "a replay from the start is duplicates and no reordering", source: "a1 a2 a3", seen: "a1 a2 a1 a2 a3", duplicated: 2},
		{name: "an event that never comes is lost", source: "a1 a2 b1", seen: "a1 b1", lost: 1, sample: "a version 2 was never seen"},
		{name: "a whole aggregate that never comes is lost", source: "a1 b1 b2", seen: "a1", lost: 2},
		{name: "an event that comes after a later one is out of order and not lost", source: "a1 a2 a3", seen: "a1 a3 a2", reordered: 1, sample: "a version 2 was first seen after version 3"},
		{name: "two late events count twice", source: "a1 a2 a3", seen: "a3 a1 a2", reordered: 2},
		{name: "the first version may be any", source: "a5 a7", seen: "a5 a7"},
		{name: "order across aggregates says nothing", source: "a1 b1", seen: "b1 a1"},
		{name: "an event that was never committed is unknown", source: "a1", seen: "a1 a2", unknown: 1, sample: "a version 2 is not in the source"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			source, seen := sourceOf(t, tt.source), events(t, tt.seen)
			found := map[string]Findings{
				"lost":       Lost(source, slices.Values(seen)),
				"unknown":    Unknown(source, slices.Values(seen)),
				"duplicated": Duplicated(slices.Values(seen)),
				"reordered":  Reordered(slices.Values(seen)),
			}
			want := map[string]int{"lost": tt.lost, "unknown": tt.unknown, "duplicated": tt.duplicated, "reordered": tt.reordered}
			var samples []string
			for kind, f := range found {
				samples = append(samples, f.Samples...)
				if f.Count != want[kind] {
					t.Errorf("%s: got %d %q, want %d", kind, f.Count, f.Samples, want[kind])
				}
			}
			if all := strings.Join(samples, "\n"); !strings.Contains(all, tt.sample) {
				t.Errorf("samples: got %q, want one with %q", all, tt.sample)
			}
		})
	}
}

func TestDelivery_SamplesAreBoundedAndTheCountIsNot(t *testing.T) {
	t.Parallel()
	source := Source{"a": make([]int64, 1000)}
	for i := range source["a"] {
		source["a"][i] = int64(i)
	}
	f := Lost(source, slices.Values([]Event(nil)))
	if got, want := f.Count, 1000; got != want {
		t.Errorf("count: got %d, want %d", got, want)
	}
	if got, want := len(f.Samples), samplesKept; got != want {
		t.Errorf("samples: got %d, want %d", got, want)
	}
}

func TestDelivery_AnIDThatNamesTwoEventsIsFound(t *testing.T) {
	t.Parallel()
	one := Send{Event: Event{"a", 1}, MessageID: "x"}
	two := Send{Event: Event{"a", 2}, MessageID: "y"}
	if f := IDsShared([]Send{one, two, one}); f.Count != 0 {
		t.Errorf("ids of a clean history: got %d %q, want 0", f.Count, f.Samples)
	}
	two.MessageID = "x"
	if f := IDsShared([]Send{one, two}); f.Count != 1 {
		t.Errorf("ids of a history where x names two events: got %d, want 1", f.Count)
	}
}

func TestDelivery_TheBrokersNumberDecidesTheOrder(t *testing.T) {
	t.Parallel()
	sends := []Send{{Event: Event{"a", 2}, Number: 20}, {Event: Event{"a", 1}, Number: 10}}
	if f := Reordered(EventsOf(sends)); f.Count != 1 {
		t.Fatalf("as handed out: got %d reordered, want 1", f.Count)
	}
	InOrderOfAcceptance(sends)
	if f := Reordered(EventsOf(sends)); f.Count != 0 {
		t.Errorf("as accepted: got %d reordered %q, want 0", f.Count, f.Samples)
	}
}

func TestDelivery_Counts(t *testing.T) {
	t.Parallel()
	source := sourceOf(t, "a1 a2 a3 b1 b2 c1")
	tests := []struct {
		name           string
		counts         map[string]int64
		missing, extra int
		sample         string
	}{
		{name: "as many as there are is clean", counts: map[string]int64{"a": 3, "b": 2, "c": 1}},
		{name: "every missing one counts", counts: map[string]int64{"a": 1, "b": 2}, missing: 3, sample: "a: 1 of 3 events are counted"},
		{name: "every extra one counts", counts: map[string]int64{"a": 3, "b": 4, "c": 1}, extra: 2, sample: "b: 4 events are counted, of 2"},
		{name: "one too many does not make up for one missing", counts: map[string]int64{"a": 4, "b": 1, "c": 1}, missing: 1, extra: 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			missing, extra := Counted(source, tt.counts)
			if missing.Count != tt.missing || extra.Count != tt.extra {
				t.Errorf("got %d missing and %d extra, want %d and %d", missing.Count, extra.Count, tt.missing, tt.extra)
			}
			if all := strings.Join(slices.Concat(missing.Samples, extra.Samples), "\n"); !strings.Contains(all, tt.sample) {
				t.Errorf("samples: got %q, want one with %q", all, tt.sample)
			}
		})
	}
}
