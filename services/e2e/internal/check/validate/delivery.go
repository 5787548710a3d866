package validate

import (
	"iter"
	"maps"
	"slices"
)

// Lost finds events of the source that were never seen.
func Lost(source Source, seen iter.Seq[Event]) Findings {
	arrived := make(map[Event]struct{})
	for e := range seen {
		arrived[e] = struct{}{}
	}
	var f Findings
	for _, aggregate := range slices.Sorted(maps.Keys(source)) {
		for _, version := range source[aggregate] {
			if _, found := arrived[Event{aggregate, version}]; !found {
				f.Add("%s version %d was never seen", aggregate, version)
			}
		}
	}
	return f
}

// Unknown finds seen events that the source does not hold: a relay that sends
// what was never committed.
func Unknown(source Source, seen iter.Seq[Event]) Findings {
	held := make(map[Event]struct{}, source.Len())
	for aggregate, versions := range source {
		for _, version := range versions {
			held[Event{aggregate, version}] = struct{}{}
		}
	}
	var f Findings
	for e := range seen {
		if _, found := held[e]; !found {
			f.Add("%s version %d is not in the source", e.Aggregate, e.Version)
		}
	}
	return f
}

// Duplicated finds events seen more than once; each further sight counts.
func Duplicated(seen iter.Seq[Event]) Findings {
	arrived := make(map[Event]struct{})
	var f Findings
	for e := range seen {
		if _, found := arrived[e]; found {
			f.Add("%s version %d was seen again", e.Aggregate, e.Version)
		}
		arrived[e] = struct{}{}
	}
	return f
}

// Reordered finds events first seen after a later event of their aggregate.
// Repeats are no fault here: an event counts where it was first seen.
func Reordered(seen iter.Seq[Event]) Findings {
	arrived := make(map[Event]struct{})
	highest := make(map[string]int64)
	var f Findings
	for e := range seen {
		if _, again := arrived[e]; again {
			continue
		}
		arrived[e] = struct{}{}
		if top, found := highest[e.Aggregate]; found && e.Version < top {
			f.Add("%s version %d was first seen after version %d", e.Aggregate, e.Version, top)
			continue
		}
		highest[e.Aggregate] = e.Version
	}
	return f
}

// IDsShared finds message ids that name two different events, which a broker
// that detects duplicates would take for a repeat and drop.
func IDsShared(sends []Send) Findings {
	named := make(map[string]Event, len(sends))
	var f Findings
	for _, s := range sends {
		if first, found := named[s.MessageID]; found && first != s.Event {
			f.Add("id %s names both %s version %d and %s version %d", s.MessageID, first.Aggregate, first.Version, s.Aggregate, s.Version)
			continue
		}
		named[s.MessageID] = s.Event
	}
	return f
}

// Counted compares how many events of each aggregate the source holds with how
// many of them a read model counts: missing ones were lost on the way, extra
// ones applied twice.
func Counted(source Source, counts map[string]int64) (missing, extra Findings) {
	for _, aggregate := range slices.Sorted(maps.Keys(source)) {
		held, counted := int64(len(source[aggregate])), counts[aggregate]
		missing.addMany(held-counted, "%s: %d of %d events are counted", aggregate, counted, held)
		extra.addMany(counted-held, "%s: %d events are counted, of %d", aggregate, counted, held)
	}
	return missing, extra
}
