package command

import (
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/engine/oplog"
)

// Reply is a reply being written. Documents and arrays in it are opened and
// closed; ok, operationTime and $clusterTime are added at the end.
type Reply struct {
	Doc []byte
	// open are the places where documents and arrays begin that are not closed.
	open []int32
	ok   float64
}

// NewReply begins a reply that says ok: 1.
func NewReply() *Reply {
	r := &Reply{ok: 1}
	r.push(bsoncore.AppendDocumentStart(make([]byte, 0, 512)))
	return r
}

func (r *Reply) push(at int32, doc []byte) {
	r.open = append(r.open, at)
	r.Doc = doc
}

// OpenDocument begins a document, which Close ends.
func (r *Reply) OpenDocument(key string) { r.push(bsoncore.AppendDocumentElementStart(r.Doc, key)) }

// OpenArray begins an array, which Close ends.
func (r *Reply) OpenArray(key string) { r.push(bsoncore.AppendArrayElementStart(r.Doc, key)) }

// Close ends the document or array that was opened last.
func (r *Reply) Close() {
	last := len(r.open) - 1
	doc, err := bsoncore.AppendDocumentEnd(r.Doc, r.open[last])
	if err != nil {
		panic(err) // only when the place is not in the reply
	}
	r.Doc, r.open = doc, r.open[:last]
}

// Int32 writes a 32-bit integer.
func (r *Reply) Int32(key string, n int32) {
	r.Doc = bsoncore.AppendInt32Element(r.Doc, key, n)
}

// Int64 writes a 64-bit integer.
func (r *Reply) Int64(key string, n int64) {
	r.Doc = bsoncore.AppendInt64Element(r.Doc, key, n)
}

// Number is written as an int where that holds it, as the server does with
// counts and sizes.
func (r *Reply) Number(key string, n int64) {
	if n == int64(int32(n)) {
		r.Int32(key, int32(n))
		return
	}
	r.Int64(key, n)
}

// Double writes a double.
func (r *Reply) Double(key string, f float64) {
	r.Doc = bsoncore.AppendDoubleElement(r.Doc, key, f)
}

// Text writes a string.
func (r *Reply) Text(key, s string) {
	r.Doc = bsoncore.AppendStringElement(r.Doc, key, s)
}

// Boolean writes a boolean.
func (r *Reply) Boolean(key string, b bool) {
	r.Doc = bsoncore.AppendBooleanElement(r.Doc, key, b)
}

// Null writes null.
func (r *Reply) Null(key string) {
	r.Doc = bsoncore.AppendNullElement(r.Doc, key)
}

// Document writes a document.
func (r *Reply) Document(key string, d bson.Raw) {
	if need := len(key) + len(d) + 2; need > cap(r.Doc)-len(r.Doc) {
		r.Doc = slices.Grow(r.Doc, max(need, len(r.Doc))) // a batch has many
	}
	r.Doc = bsoncore.AppendDocumentElement(r.Doc, key, d)
}

// Date writes a date, in milliseconds since 1970.
func (r *Reply) Date(key string, ms int64) {
	r.Doc = bsoncore.AppendDateTimeElement(r.Doc, key, ms)
}

// Timestamp writes a cluster time.
func (r *Reply) Timestamp(key string, t oplog.Timestamp) {
	r.Doc = bsoncore.AppendTimestampElement(r.Doc, key, t.Seconds(), t.Increment())
}

// Binary writes binary data.
func (r *Reply) Binary(key string, subtype byte, b []byte) {
	r.Doc = bsoncore.AppendBinaryElement(r.Doc, key, subtype, b)
}

// ObjectID writes an object id.
func (r *Reply) ObjectID(key string, id bson.ObjectID) {
	r.Doc = bsoncore.AppendObjectIDElement(r.Doc, key, id)
}

// Value writes a value of any type; a missing one as null.
func (r *Reply) Value(key string, v bson.RawValue) {
	if v.Type == 0 {
		r.Null(key)
		return
	}
	r.Doc = bsoncore.AppendValueElement(r.Doc, key, bsoncore.Value{Type: bsoncore.Type(v.Type), Data: v.Value})
}

// Strings writes an array of strings.
func (r *Reply) Strings(key string, texts []string) {
	r.OpenArray(key)
	for i, s := range texts {
		r.Text(bsonkit.ArrayKey(i), s)
	}
	r.Close()
}

// Append adds the fields of a document.
func (r *Reply) Append(doc bson.Raw) {
	if len(doc) > 5 {
		r.Doc = append(r.Doc, doc[4:len(doc)-1]...)
	}
}

// finish adds what every reply ends with
// (https://www.mongodb.com/docs/manual/reference/command/#response): the time of
// the cluster, and that which the command has read or written.
func (r *Reply) finish(now, operation oplog.Timestamp) bson.Raw {
	r.Double("ok", r.ok)
	r.OpenDocument("$clusterTime")
	r.Timestamp("clusterTime", now)
	r.OpenDocument("signature")
	r.Binary("hash", bson.TypeBinaryGeneric, make([]byte, 20))
	r.Int64("keyId", 0)
	r.Close()
	r.Close()
	r.Timestamp("operationTime", operation)
	r.Close()
	return r.Doc
}

// Longs writes an array of 64-bit integers.
func (r *Reply) Longs(key string, numbers []int64) {
	r.OpenArray(key)
	for i, n := range numbers {
		r.Int64(bsonkit.ArrayKey(i), n)
	}
	r.Close()
}

// Marshalled writes an array of documents.
func (r *Reply) Marshalled(key string, docs any) error {
	raw, err := bson.Marshal(bson.D{{Key: key, Value: docs}})
	if err != nil {
		return err
	}
	if v, ok := bsonkit.Get(raw, key); ok && v.Type == bson.TypeArray {
		r.Value(key, v)
		return nil
	}
	r.Strings(key, nil)
	return nil
}
