package source

import (
	"slices"
	"testing"

	"changerelay/services/e2e/internal/harness/orders"
)

func TestSplit_AnAggregateIsInOneCollection(t *testing.T) {
	t.Parallel()
	client := connect(t)
	s := Split{
		Of: func(aggregate string) string { return "of_" + aggregate[:1] },
		To: func(collection string) *Writer { return NewWriter(client, "split", collection) },
	}
	events := []orders.Event{{Aggregate: "a/1", Version: 1}, {Aggregate: "b", Version: 1}, {Aggregate: "a/1", Version: 2}}
	if err := s.Insert(t.Context(), events); err != nil {
		t.Fatal(err)
	}
	var in []string
	for _, collection := range []string{"of_a", "of_b"} {
		err := Each(t.Context(), client, "split", collection, func(e Stored) error {
			in = append(in, collection+" "+e.ID())
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if want := []string{"of_a " + events[0].ID(), "of_a " + events[2].ID(), "of_b " + events[1].ID()}; !slices.Equal(in, want) {
		t.Errorf("got %q, want %q", in, want)
	}
	taken, err := s.Take(t.Context(), []string{events[0].ID(), events[1].ID(), events[2].ID()})
	if err != nil || len(taken) != 3 {
		t.Errorf("taken: got %v and %v, want all three", taken, err)
	}
}
