package storage

import (
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/query/match"
)

// Covers reports that the keys of the access are those of the documents that match
// and no others, and lie side by side.
func (a Access) Covers(f *match.Filter) bool {
	if a.Index == nil || a.hinted || len(a.ranges) != 1 {
		return false
	}
	paths := make([]string, len(a.bounds))
	for i := range paths {
		paths[i] = a.Index.Spec.Fields[i].Path
	}
	return !slices.ContainsFunc(paths, hasPosition) && f.Covered(paths, a.Index.multikey)
}

// ChooseDistinct gives the access by which the values of a field are read, one key
// for each; ok is false where no index has them.
func ChooseDistinct(t *Table, f *match.Filter, path string) (a Access, ok bool) {
	a, err := Choose(t, f, nil, Hint{})
	if err != nil {
		return a, false
	}
	if a.Index == nil && f.Covered(nil, false) {
		var best *Index
		for _, ix := range t.Indexes {
			if ix.Spec.Fields[0].Path == path && ix.tellsAll() && (best == nil || len(ix.Spec.Fields) < len(best.Spec.Fields)) {
				best = ix
			}
		}
		if best == nil {
			return a, false
		}
		a, _ = accessThrough(best, f, nil)
	}
	ok = a.Index != nil && a.Index.tellsAll() && a.Index.Spec.Fields[0].Path == path && !hasPosition(path) && a.Covers(f)
	a.reverse = false
	return a, ok
}

// tellsAll reports that the index has one key of each document, with the values as
// they are.
func (ix *Index) tellsAll() bool {
	s := ix.Spec
	return !ix.multikey && !s.Sparse && s.Partial == nil && !s.Hidden && s.readable()
}

// StepKey gives the next record by its key alone; ok is false at the end. The key at
// which it ends is one that was looked at.
func (s *Scan) StepKey() (id int64, ok bool) {
	for s.stepKey() {
		id = s.keys.Value()
		s.examined.Keys++
		if s.seen != nil {
			if _, again := s.seen[id]; again {
				continue
			}
			s.seen[id] = struct{}{}
		}
		return id, true
	}
	s.examined.Keys++
	return 0, false
}

// StepValue gives a record for each value of the first field of the index; ok is
// false at the end. A null and no value at all have one key, so records without a
// value are given until one has a null.
func (s *Scan) StepValue() (id int64, rec Record, ok bool) {
	if !s.nextValue() {
		return 0, Record{}, false
	}
	s.examined.Keys++
	id = s.keys.Value()
	rec, ok = s.table.Records.Get(id)
	first := s.Access.Index.Spec.Fields[0]
	v, _ := bsonkit.Lookup(rec.Doc, first.Path)
	if v.Type != bsonkit.Missing && v.Type != bson.TypeUndefined {
		s.skip = string(bsonkit.KeyAfter(first.appendKey(nil, v)))
	}
	return id, rec, ok
}

// nextValue moves behind the keys that have the value given last.
func (s *Scan) nextValue() bool {
	skip := s.skip
	if s.skip = ""; skip != "" && s.started {
		if s.started = s.keys.Seek(skip) && (s.end == "" || s.keys.Key() < s.end); s.started {
			return true
		}
	}
	return s.stepKey()
}
