package validate

import (
	"hash/fnv"
	"maps"
	"slices"
)

// Tally is what is known of how one aggregate's events were applied, in their
// order. The zero value is none.
type Tally struct {
	// Events is how many were applied, Sum the sum of their versions.
	Events, Sum int64
	// Order is a hash over the versions in the order in which they were applied.
	Order uint64
	// Unseen is how many of them nobody saw being applied, one by one.
	Unseen int64
}

// Add takes the next version in.
func (t *Tally) Add(version int64) {
	t.Events++
	t.Sum += version
	var link [16]byte
	for i := range 8 {
		link[i], link[8+i] = byte(t.Order>>(8*i)), byte(version>>(8*i))
	}
	h := fnv.New64a()
	_, _ = h.Write(link[:])
	t.Order = h.Sum64()
}

// TallyOf is the tally of versions that are applied in order, once each.
func TallyOf(versions []int64) Tally {
	var t Tally
	for _, v := range versions {
		t.Add(v)
	}
	return t
}

// Unordered finds aggregates of which all events were applied, and in which order nobody
// saw, so that Misapplied says nothing of it.
func Unordered(source Source, applied map[string]Tally) Findings {
	var f Findings
	for _, aggregate := range slices.Sorted(maps.Keys(applied)) {
		if got := applied[aggregate]; got.Events == int64(len(source[aggregate])) && got.Unseen > 0 {
			f.Add("%s: of its %d events %d were not seen being applied", aggregate, got.Events, got.Unseen)
		}
	}
	return f
}

// Misapplied finds aggregates whose events were applied in another order than
// the source's, or others in their place. Where as many events were applied as
// there are, but some unseen, the sum alone speaks. A wrong number of events is
// Counted's to find.
func Misapplied(source Source, applied map[string]Tally) Findings {
	var f Findings
	for _, aggregate := range slices.Sorted(maps.Keys(applied)) {
		got, want := applied[aggregate], TallyOf(source[aggregate])
		switch {
		case got.Events != want.Events:
		case got.Sum != want.Sum:
			f.Add("%s: the versions of its %d events add up to %d, not %d", aggregate, got.Events, got.Sum, want.Sum)
		case got.Unseen == 0 && got.Order != want.Order:
			f.Add("%s: its %d events were applied in another order", aggregate, got.Events)
		}
	}
	return f
}
