package witness

import (
	"reflect"
	"testing"

	"changerelay/services/e2e/internal/orders"
	"changerelay/services/e2e/internal/readmodel"
	"changerelay/services/e2e/internal/validate"
)

// lives is a record of one order that is placed and erased, twice, and placed a
// third time.
func lives() *record {
	r := newRecord(Orders)
	for i, what := range []string{orders.Placed, orders.Erased, orders.Placed, orders.Cancelled, orders.Erased, orders.Placed} {
		r.add(orders.Event{Aggregate: "o", Version: int64(i + 1), Type: what, Data: orders.Data{}})
	}
	return r
}

func TestEventsAreCountedSinceADocumentWasLastErased(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name           string
		reached        int64
		doc            map[string]any
		missing, extra int
	}{
		{name: "all are applied", reached: 6, doc: map[string]any{"events": int64(1)}},
		{name: "the last one is missing", reached: 5, missing: 1},
		{name: "the last erasure and what follows are missing", reached: 4, doc: map[string]any{"events": int64(2)}, missing: 2},
		{name: "one is applied twice after the last erasure", reached: 6, doc: map[string]any{"events": int64(2)}, extra: 1},
		{name: "an erasure left what was before it", reached: 6, doc: map[string]any{"events": int64(3)}, extra: 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			m := readmodel.Model{Versions: map[string]int64{"o": tt.reached}, Documents: map[string]map[string]any{}}
			if tt.doc != nil {
				m.Documents["o"] = tt.doc
			}
			r := lives()
			missing, extra := validate.Counted(r.events, r.counts(m))
			if missing.Count != tt.missing || extra.Count != tt.extra {
				t.Errorf("got %d missing and %d extra, want %d and %d", missing.Count, extra.Count, tt.missing, tt.extra)
			}
		})
	}
}

func TestADocumentBeginsAnewOnceItIsErased(t *testing.T) {
	t.Parallel()
	got := lives().documents()["o"]
	want := map[string]any{"status": "placed", "customer": nil, "channel": nil, "rounds": int64(1), "events": int64(1), "history": []any{orders.Placed}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("document:\ngot  %v\nwant %v", got, want)
	}
}
