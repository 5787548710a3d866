package witness

import (
	"changerelay/services/e2e/internal/orders"
	"changerelay/services/e2e/internal/readmodel"
	"changerelay/services/e2e/internal/validate"
)

// record is what the source held, and the read model computed from it.
type record struct {
	projection Projection
	events     validate.Source
	erased     map[string][]int64 // versions that erased the document, rising
	orders     orders.Model
	latest     orders.Latest
}

func newRecord(p Projection) *record {
	return &record{projection: p, events: validate.Source{}, erased: map[string][]int64{}, orders: orders.Model{}, latest: orders.Latest{}}
}

// add takes one event in. Those of one aggregate must come in the order of
// their versions.
func (r *record) add(e orders.Event) {
	r.events[e.Aggregate] = append(r.events[e.Aggregate], e.Version)
	if !r.projection.Counts {
		r.latest.Apply(e)
		return
	}
	r.orders.Apply(e)
	if e.Type == orders.Erased {
		r.erased[e.Aggregate] = append(r.erased[e.Aggregate], e.Version)
	}
}

// documents are the read documents as they should be.
func (r *record) documents() map[string]map[string]any {
	want := make(map[string]map[string]any, len(r.orders)+len(r.latest))
	for id, doc := range r.orders {
		orders.SortSets(doc)
		want[id] = doc
	}
	for id, data := range r.latest {
		want[id] = map[string]any{"data": data}
	}
	return want
}

// counts returns how many events of each aggregate are in the read model. A
// document may count them itself, since it was last erased; else only its
// version is known, and that all up to it were applied.
func (r *record) counts(m readmodel.Model) map[string]int64 {
	counts := make(map[string]int64, len(r.events))
	for aggregate, versions := range r.events {
		reached, found := m.Versions[aggregate]
		switch {
		case !found:
		case r.projection.Counts:
			counted, _ := m.Documents[aggregate]["events"].(int64)
			counts[aggregate] = upTo(versions, r.lastErasure(aggregate, reached)) + counted
		default:
			counts[aggregate] = upTo(versions, reached)
		}
	}
	return counts
}

// lastErasure is the version that last erased the document when it had come to
// reached; 0 where none had, for versions count from 1.
func (r *record) lastErasure(aggregate string, reached int64) int64 {
	erased := r.erased[aggregate]
	n := upTo(erased, reached)
	if n == 0 {
		return 0
	}
	return erased[n-1]
}

// upTo counts the versions that are not above one.
func upTo(versions []int64, highest int64) int64 {
	n := int64(0)
	for _, v := range versions {
		if v <= highest {
			n++
		}
	}
	return n
}
