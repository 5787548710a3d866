package engine

import (
	"encoding/binary"
	"errors"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/engine/oplog"
)

// encoder writes the parts of journal records.
type encoder struct{ buf []byte }

func (w *encoder) uint(n uint64) { w.buf = binary.AppendUvarint(w.buf, n) }

func (w *encoder) bytes(b []byte) {
	w.uint(uint64(len(b)))
	w.buf = append(w.buf, b...)
}

func (w *encoder) text(s string) {
	w.uint(uint64(len(s)))
	w.buf = append(w.buf, s...)
}

func (w *encoder) namespace(ns oplog.Namespace) {
	w.text(ns.DB)
	w.text(ns.Collection)
}

func (w *encoder) id(id uuid.UUID) { w.buf = append(w.buf, id[:]...) }

func (w *encoder) flag(b bool) {
	if b {
		w.uint(1)
	} else {
		w.uint(0)
	}
}

func (w *encoder) documents(docs []bson.Raw) {
	w.uint(uint64(len(docs)))
	for _, doc := range docs {
		w.bytes(doc)
	}
}

func (w *encoder) texts(all []string) {
	w.uint(uint64(len(all)))
	for _, s := range all {
		w.text(s)
	}
}

// errRecord is what a record is refused with that encoder has not written.
var errRecord = errors.New("malformed journal record")

// decoder reads what encoder writes. After the first error everything is zero.
type decoder struct {
	rest []byte
	err  error
}

func (r *decoder) uint() uint64 {
	n, size := binary.Uvarint(r.rest)
	if size <= 0 {
		r.err, r.rest = errRecord, nil
		return 0
	}
	r.rest = r.rest[size:]
	return n
}

// raw gives the next n bytes; they are the record's own.
func (r *decoder) raw(n uint64) []byte {
	if n > uint64(len(r.rest)) {
		r.err, r.rest = errRecord, nil
		return nil
	}
	b := r.rest[:n]
	r.rest = r.rest[n:]
	return b
}

// document copies; an absent document is nil.
func (r *decoder) document() bson.Raw {
	b := r.raw(r.uint())
	if len(b) == 0 {
		return nil
	}
	return append(make(bson.Raw, 0, len(b)), b...)
}

func (r *decoder) text() string { return string(r.raw(r.uint())) }

func (r *decoder) namespace() oplog.Namespace {
	db := r.text()
	return oplog.Namespace{DB: db, Collection: r.text()}
}

func (r *decoder) id() uuid.UUID {
	var id uuid.UUID
	copy(id[:], r.raw(uint64(len(id))))
	return id
}

func (r *decoder) flag() bool { return r.uint() != 0 }

func (r *decoder) documents() []bson.Raw {
	var docs []bson.Raw
	for n := r.uint(); n > 0 && r.err == nil; n-- {
		docs = append(docs, r.document())
	}
	return docs
}

func (r *decoder) texts() []string {
	var all []string
	for n := r.uint(); n > 0 && r.err == nil; n-- {
		all = append(all, r.text())
	}
	return all
}
