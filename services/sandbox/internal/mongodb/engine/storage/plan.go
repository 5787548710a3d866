package storage

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
	// Examined counts what has been looked at so far.
	Examined Examined
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
	p.ByID = p.Index.Name == IDIndexName && a.point
	return p
}
