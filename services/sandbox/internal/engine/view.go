package engine

import (
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"changerelay/services/sandbox/internal/bsonkit"
	"changerelay/services/sandbox/internal/query"
)

// View is what one collection held at one moment. It stays as it is whatever is
// written, and may be read by one goroutine at a time.
type View struct{ table *table }

// View takes a view of a collection, as a transaction sees it if txn is not
// nil. A collection that is not there is empty.
func (e *Engine) View(txn *Txn, ns Namespace) *View {
	e.mu.Lock()
	defer e.mu.Unlock()
	if txn != nil {
		return &View{table: txn.view(ns)}
	}
	if coll := e.collections[ns]; coll != nil {
		return &View{table: coll.snapshot()}
	}
	return &View{}
}

// Exists reports whether there is a collection.
func (v *View) Exists() bool { return v.table != nil }

// Count is the number of documents.
func (v *View) Count() int {
	if v.table == nil {
		return 0
	}
	return v.table.records.Len()
}

// Bytes is the size of all documents.
func (v *View) Bytes() int64 {
	if v.table == nil {
		return 0
	}
	return v.table.bytes
}

// Documents are those that match the filter. They come in the order of the
// sort where an index has it, which Sorted tells; else in no given order.
func (v *View) Documents(f *query.Filter, sort *query.Sort, hint Hint) (*Documents, error) {
	if v.table == nil {
		return &Documents{Sorted: true}, nil
	}
	a, err := chooseAccess(v.table, f, sort, hint)
	if err != nil {
		return nil, err
	}
	return &Documents{scan: newScan(v.table, a), filter: f, Sorted: sort == nil || a.sorted}, nil
}

// Record is the number of the document that Next has given last.
func (d *Documents) Record() int64 { return d.record }

// IndexKey is what the index that is read through holds of a document: {field:
// value, …}, empty without an index.
func (d *Documents) IndexKey(doc bson.Raw) bson.Raw {
	at, key := bsoncore.AppendDocumentStart(nil)
	if d.scan != nil && d.scan.access.index != nil {
		for _, field := range d.scan.access.index.spec.Fields {
			if v, there := bsonkit.Lookup(doc, field.Path); there {
				key = bsoncore.AppendHeader(key, bsoncore.Type(v.Type), field.Path)
				key = append(key, v.Value...)
			}
		}
	}
	return closeDocument(key, at)
}

// Documents walks over the documents of a view.
type Documents struct {
	scan   *scan
	filter *query.Filter
	// Sorted tells that the documents have the order that was asked for.
	Sorted bool
	record int64
}

// Next gives the next document, nil at the end.
func (d *Documents) Next() (bson.Raw, error) {
	if d.scan == nil {
		return nil, nil
	}
	for {
		id, rec, ok := d.scan.step()
		if !ok {
			return nil, nil
		}
		d.record = id
		if d.filter == nil {
			return rec.doc, nil
		}
		matches, err := d.filter.Match(rec.doc)
		if err != nil {
			return nil, err
		}
		if matches {
			return rec.doc, nil
		}
	}
}
