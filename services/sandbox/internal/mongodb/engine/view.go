package engine

import (
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/engine/oplog"
	"changerelay/services/sandbox/internal/mongodb/engine/storage"
	"changerelay/services/sandbox/internal/mongodb/query"
	"changerelay/services/sandbox/internal/mongodb/query/match"
)

// View is what one collection held at one moment. It stays as it is whatever is
// written, and may be read by one goroutine at a time.
type View struct{ table *storage.Table }

// View takes a view of a collection, as a transaction sees it if txn is not
// nil: it fails when that has ended. A collection that is not there is empty.
func (e *Engine) View(txn *Txn, ns oplog.Namespace) (*View, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := txn.goesOn(); err != nil {
		return nil, err
	}
	if txn != nil {
		return &View{table: txn.view(ns)}, nil
	}
	if coll := e.collections[ns]; coll != nil {
		return &View{table: coll.snapshot()}, nil
	}
	return &View{}, nil
}

// Exists reports whether there is a collection.
func (v *View) Exists() bool { return v.table != nil }

// Count is the number of documents.
func (v *View) Count() int {
	if v.table == nil {
		return 0
	}
	return v.table.Records.Len()
}

// Bytes is the size of all documents.
func (v *View) Bytes() int64 {
	if v.table == nil {
		return 0
	}
	return v.table.Bytes
}

// Documents are those that match the filter. They come in the order of the
// sort where an index has it, which Sorted tells; else in no given order.
func (v *View) Documents(f *match.Filter, sort *query.Sort, hint storage.Hint) (*Documents, error) {
	if v.table == nil {
		return &Documents{Sorted: true}, nil
	}
	a, err := storage.Choose(v.table, f, sort, hint)
	if err != nil {
		return nil, err
	}
	return &Documents{scan: storage.NewScan(v.table, a), filter: f, Sorted: sort == nil || a.Sorted}, nil
}

// Record is the number of the document that Next has given last.
func (d *Documents) Record() int64 { return d.record }

// IndexKey is what the index that is read through holds of a document: {field:
// value, …}, empty without an index.
func (d *Documents) IndexKey(doc bson.Raw) bson.Raw {
	at, key := bsoncore.AppendDocumentStart(nil)
	if d.scan != nil && d.scan.Access.Index != nil {
		for _, field := range d.scan.Access.Index.Spec.Fields {
			if v, there := bsonkit.Lookup(doc, field.Path); there {
				key = bsoncore.AppendHeader(key, bsoncore.Type(v.Type), field.Path)
				key = append(key, v.Value...)
			}
		}
	}
	return bsonkit.CloseDocument(key, at)
}

// Documents walks over the documents of a view.
type Documents struct {
	scan   *storage.Scan
	filter *match.Filter
	// Sorted tells that the documents have the order that was asked for.
	Sorted bool
	// Interrupted, if not nil, is asked before each; an error ends the walk.
	Interrupted func() error
	record      int64
	// keys and values tell that no document is needed: KeysOnly, Distinct.
	keys, values bool
}

// Distinct gives a document for each value of a field in the documents that match,
// where an index has them; ok is false otherwise.
func (v *View) Distinct(f *match.Filter, path string) (d *Documents, ok bool) {
	if v.table == nil {
		return nil, false
	}
	a, ok := storage.ChooseDistinct(v.table, f, path)
	if !ok {
		return nil, false
	}
	return &Documents{scan: storage.NewScan(v.table, a), Sorted: true, values: true}, true
}

// KeysOnly has Next give an empty document for each that is found, where the index
// tells them by itself, and reports whether it does. It comes before the first.
func (d *Documents) KeysOnly() bool {
	d.keys = d.scan != nil && !d.Plan().ByID && d.scan.Access.Covers(d.filter)
	return d.keys
}

// Next gives the next document, nil at the end.
func (d *Documents) Next() (bson.Raw, error) {
	if d.scan == nil {
		return nil, nil
	}
	for {
		// A filter may take long for each of them.
		if d.Interrupted != nil {
			if err := d.Interrupted(); err != nil {
				return nil, err
			}
		}
		id, rec, ok := d.step()
		if !ok {
			return nil, nil
		}
		d.record = id
		if d.filter == nil || d.keys {
			return rec.Doc, nil
		}
		matches, err := d.filter.Match(rec.Doc)
		if err != nil {
			return nil, err
		}
		if matches {
			return rec.Doc, nil
		}
	}
}

func (d *Documents) step() (id int64, rec storage.Record, ok bool) {
	switch {
	case d.keys:
		id, ok = d.scan.StepKey()
		return id, storage.Record{Doc: bsonkit.Empty}, ok
	case d.values:
		return d.scan.StepValue()
	}
	return d.scan.Step()
}

// Plan says how the documents are read.
func (d *Documents) Plan() storage.Plan {
	if d.scan == nil {
		return storage.Plan{}
	}
	return d.scan.Plan()
}
