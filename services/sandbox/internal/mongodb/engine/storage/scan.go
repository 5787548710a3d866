package storage

import (
	"github.com/tidwall/btree"
)

// Scan walks a table along an access. The table must not be written to
// meanwhile; a snapshot is not.
type Scan struct {
	table  *Table
	Access Access
	// next is the place of the range to be read after the present one.
	next    int
	keys    btree.MapIter[string, int64]
	records btree.MapIter[int64, Record]
	started bool
	end     string
	// seen holds the records given already, where several keys may lead to one.
	seen map[int64]struct{}
	// skip is where the keys with another value begin, empty for the next key.
	skip string
	// examined counts what has been looked at.
	examined Examined
}

// NewScan begins to read a table, which must be a snapshot or not be written to
// meanwhile.
func NewScan(t *Table, a Access) *Scan {
	s := &Scan{table: t, Access: a}
	if a.Index == nil {
		s.records = t.Records.Iter()
		return s
	}
	a.Index.Uses.Add(1)
	s.keys = a.Index.Keys.Iter()
	if a.Index.multikey {
		s.seen = map[int64]struct{}{}
	}
	return s
}

// Step gives the next record; ok is false at the end.
func (s *Scan) Step() (id int64, rec Record, ok bool) {
	if s.Access.Index == nil {
		return s.stepRecord()
	}
	for s.stepKey() {
		id = s.keys.Value()
		s.examined.Keys++
		if s.seen != nil {
			if _, again := s.seen[id]; again {
				continue
			}
			s.seen[id] = struct{}{}
		}
		rec, ok = s.table.Records.Get(id)
		s.examined.Documents++
		return id, rec, ok
	}
	return 0, Record{}, false
}

func (s *Scan) stepRecord() (int64, Record, bool) {
	moved := false
	switch {
	case s.started && s.Access.reverse:
		moved = s.records.Prev()
	case s.started:
		moved = s.records.Next()
	case s.Access.reverse:
		moved = s.records.Last()
	default:
		moved = s.records.First()
	}
	s.started = true
	if !moved {
		return 0, Record{}, false
	}
	s.examined.Documents++
	return s.records.Key(), s.records.Value(), true
}

// stepKey moves to the next key that lies in a range.
func (s *Scan) stepKey() bool {
	for {
		if s.started && s.advance() {
			return true
		}
		if s.next == len(s.Access.ranges) {
			return false
		}
		r := s.Access.ranges[s.next]
		if s.Access.reverse {
			r = s.Access.ranges[len(s.Access.ranges)-1-s.next]
		}
		s.next++
		if s.enter(r) {
			return true
		}
	}
}

// advance moves within the present range.
func (s *Scan) advance() bool {
	if s.Access.reverse {
		s.started = s.keys.Prev() && s.keys.Key() >= s.end
		return s.started
	}
	s.started = s.keys.Next() && (s.end == "" || s.keys.Key() < s.end)
	return s.started
}

// enter moves to the first key of a range, if it has any.
func (s *Scan) enter(r keyRange) bool {
	if !s.Access.reverse {
		s.end = r.high
		s.started = s.keys.Seek(r.low) && (r.high == "" || s.keys.Key() < r.high)
		return s.started
	}
	s.end = r.low
	if r.high != "" && s.keys.Seek(r.high) {
		s.started = s.keys.Prev()
	} else {
		s.started = s.keys.Last()
	}
	s.started = s.started && s.keys.Key() >= r.low
	return s.started
}
