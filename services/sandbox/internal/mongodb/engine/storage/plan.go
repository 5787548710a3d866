package storage

import "changerelay/services/sandbox/internal/mongodb/query/match"

// Plan is the way in which documents are read.
type Plan struct {
	// There tells that the collection is there.
	There bool
	// Index is what they are read through; nil for a scan of the collection.
	Index *IndexSpec
	// Multikey tells that the index has several keys of some document.
	Multikey bool
	// ByID tells that one document is read by its _id.
	ByID bool
	// Reverse is the direction.
	Reverse bool
	// Bounds are those of each field of the index, nil where a hint gives them.
	Bounds []FieldBounds
	// Examined counts what has been looked at so far.
	Examined Examined
}

// FieldBounds are the intervals of a field's values that are read, in the order
// they are read in.
type FieldBounds struct {
	Path      string
	Intervals []string
}

// Examined counts what a scan has looked at.
type Examined struct{ Keys, Documents int }

// Plan says how the scan reads.
func (s *Scan) Plan() Plan {
	a := s.Access
	p := Plan{There: true, Reverse: a.reverse, Examined: s.examined}
	if a.Index == nil {
		return p
	}
	p.Index, p.Multikey = &a.Index.Spec, a.Index.multikey
	p.Bounds = a.fieldBounds()
	p.ByID = p.Index.Name == IDIndexName && a.point
	return p
}

func (a Access) fieldBounds() []FieldBounds {
	if a.hinted {
		return nil
	}
	all := make([]FieldBounds, len(a.Index.Spec.Fields))
	for i, field := range a.Index.Spec.Fields {
		bounds := match.Everything()
		if i < len(a.bounds) {
			bounds = a.bounds[i]
		}
		all[i] = FieldBounds{Path: field.Path, Intervals: bounds.Intervals(field.Descending != a.reverse)}
	}
	return all
}
