package engine

import (
	"bytes"
	"context"

	"changerelay/services/sandbox/internal/mongodb/engine/storage"
	"changerelay/services/sandbox/internal/mongodb/query/match"
)

// found are the records that a statement has selected and not dealt with yet.
type found struct {
	ids []int64
	// checked tells that the records are as they were when they were selected.
	checked bool
}

// find selects the records of a statement before any of them is changed, so
// that no document is met twice. A nil target has no records.
func (t *target) find(ctx context.Context, s Selection) (*found, error) {
	f := &found{checked: true}
	if t == nil {
		return f, nil
	}
	a, err := storage.Choose(t.table, s.Filter, s.Sort, s.Hint)
	if err != nil {
		return nil, err
	}
	if !s.Multi && s.Sort != nil && !a.Sorted {
		return f, f.pickFirst(ctx, t.table, a, s)
	}
	for sc := storage.NewScan(t.table, a); s.Multi || len(f.ids) == 0; {
		id, rec, ok := sc.Step()
		if !ok {
			return f, nil
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		matches, err := s.Filter.Match(rec.Doc)
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
func (f *found) pickFirst(ctx context.Context, t *storage.Table, a storage.Access, s Selection) error {
	var least, key []byte
	for sc := storage.NewScan(t, a); ; {
		id, rec, ok := sc.Step()
		if !ok {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		matches, err := s.Filter.Match(rec.Doc)
		if err != nil {
			return err
		}
		if !matches {
			continue
		}
		if key, err = s.Sort.AppendKey(key[:0], rec.Doc); err != nil {
			return err
		}
		if len(f.ids) == 0 || bytes.Compare(key, least) < 0 {
			least, key = key, least
			f.ids = append(f.ids[:0], id)
		}
	}
}

// each gives the records one by one to act. When act fails the record stays,
// and the next call goes on with it, as with the next when the batch has grown
// large (errDivided): by then others may have changed the records, so each is
// looked at again.
func (f *found) each(ctx context.Context, t *target, filter *match.Filter, act func(int64, storage.Record) error) error {
	defer func() { f.checked = false }()
	if t == nil {
		return nil // dropped since
	}
	for len(f.ids) > 0 {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		id := f.ids[0]
		rec, ok := t.table.Records.Get(id)
		if ok && !f.checked {
			var err error
			if ok, err = filter.Match(rec.Doc); err != nil {
				return err
			}
		}
		if ok {
			if err := act(id, rec); err != nil {
				return err
			}
		}
		f.ids = f.ids[1:]
		if len(f.ids) > 0 && t.engine.bytes >= batchBytes {
			return errDivided
		}
	}
	return nil
}
