package engine

import (
	"github.com/tidwall/btree"
)

// scan walks a table along an access. The table must not be written to
// meanwhile; a snapshot is not.
type scan struct {
	table  *table
	access access
	// next is the place of the range to be read after the present one.
	next    int
	keys    btree.MapIter[string, int64]
	records btree.MapIter[int64, record]
	started bool
	end     string
	// seen holds the records given already, where several keys may lead to one.
	seen map[int64]struct{}
}

func newScan(t *table, a access) *scan {
	s := &scan{table: t, access: a}
	if a.index == nil {
		s.records = t.records.Iter()
		return s
	}
	s.keys = a.index.keys.Iter()
	if a.index.multikey {
		s.seen = map[int64]struct{}{}
	}
	return s
}

// step gives the next record; ok is false at the end.
func (s *scan) step() (id int64, rec record, ok bool) {
	if s.access.index == nil {
		return s.stepRecord()
	}
	for s.stepKey() {
		id = s.keys.Value()
		if s.seen != nil {
			if _, again := s.seen[id]; again {
				continue
			}
			s.seen[id] = struct{}{}
		}
		rec, ok = s.table.records.Get(id)
		return id, rec, ok
	}
	return 0, record{}, false
}

func (s *scan) stepRecord() (int64, record, bool) {
	moved := false
	switch {
	case s.started && s.access.reverse:
		moved = s.records.Prev()
	case s.started:
		moved = s.records.Next()
	case s.access.reverse:
		moved = s.records.Last()
	default:
		moved = s.records.First()
	}
	s.started = true
	if !moved {
		return 0, record{}, false
	}
	return s.records.Key(), s.records.Value(), true
}

// stepKey moves to the next key that lies in a range.
func (s *scan) stepKey() bool {
	for {
		if s.started && s.advance() {
			return true
		}
		if s.next == len(s.access.ranges) {
			return false
		}
		r := s.access.ranges[s.next]
		if s.access.reverse {
			r = s.access.ranges[len(s.access.ranges)-1-s.next]
		}
		s.next++
		if s.enter(r) {
			return true
		}
	}
}

// advance moves within the present range.
func (s *scan) advance() bool {
	if s.access.reverse {
		s.started = s.keys.Prev() && s.keys.Key() >= s.end
		return s.started
	}
	s.started = s.keys.Next() && (s.end == "" || s.keys.Key() < s.end)
	return s.started
}

// enter moves to the first key of a range, if it has any.
func (s *scan) enter(r keyRange) bool {
	if !s.access.reverse {
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
