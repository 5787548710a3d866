package engine

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/query"
)

// found are the records that a statement has selected and not dealt with yet.
type found struct {
	ids []int64
	// checked tells that the records are as they were when they were selected.
	checked bool
}

// find selects the records of a statement before any of them is changed, so
// that no document is met twice. A nil target has no records.
func (t *target) find(s Selection) (*found, error) {
	f := &found{checked: true}
	if t == nil {
		return f, nil
	}
	a, err := chooseAccess(t.table, s.Filter, s.Sort, s.Hint)
	if err != nil {
		return nil, err
	}
	if !s.Multi && s.Sort != nil && !a.sorted {
		return f, f.pickFirst(t.table, a, s)
	}
	for sc := newScan(t.table, a); s.Multi || len(f.ids) == 0; {
		id, rec, ok := sc.step()
		if !ok {
			return f, nil
		}
		matches, err := s.Filter.Match(rec.doc)
		if err != nil {
			return nil, err
		}
		if matches {
			f.ids = append(f.ids, id)
		}
	}
	return f, nil
}

// pickFirst selects the least record by the sort.
func (f *found) pickFirst(t *table, a access, s Selection) error {
	var least bson.Raw
	for sc := newScan(t, a); ; {
		id, rec, ok := sc.step()
		if !ok {
			return nil
		}
		matches, err := s.Filter.Match(rec.doc)
		if err != nil {
			return err
		}
		if matches && (least == nil || s.Sort.Compare(rec.doc, least) < 0) {
			least = rec.doc
			f.ids = append(f.ids[:0], id)
		}
	}
}

// each gives the records one by one to act. When act fails the record stays,
// and the next call goes on with it: by then others may have changed the
// records, so each is looked at again.
func (f *found) each(t *target, filter *query.Filter, act func(int64, record) error) error {
	defer func() { f.checked = false }()
	if t == nil {
		return nil // dropped since
	}
	for len(f.ids) > 0 {
		id := f.ids[0]
		rec, ok := t.table.records.Get(id)
		if ok && !f.checked {
			var err error
			if ok, err = filter.Match(rec.doc); err != nil {
				return err
			}
		}
		if ok {
			if err := act(id, rec); err != nil {
				return err
			}
		}
		f.ids = f.ids[1:]
	}
	return nil
}
