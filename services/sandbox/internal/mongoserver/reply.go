package mongoserver

import (
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"changerelay/services/sandbox/internal/engine"
)

// reply is a reply being written. Documents and arrays in it are opened and
// closed; ok, operationTime and $clusterTime are added at the end.
type reply struct {
	doc []byte
	// open are the places where documents and arrays begin that are not closed.
	open []int32
	ok   float64
}

func newReply() *reply {
	r := &reply{ok: 1}
	r.push(bsoncore.AppendDocumentStart(make([]byte, 0, 512)))
	return r
}

func (r *reply) push(at int32, doc []byte) {
	r.open = append(r.open, at)
	r.doc = doc
}

func (r *reply) openDocument(key string) { r.push(bsoncore.AppendDocumentElementStart(r.doc, key)) }
func (r *reply) openArray(key string)    { r.push(bsoncore.AppendArrayElementStart(r.doc, key)) }

// close ends the document or array that was opened last.
func (r *reply) close() {
	last := len(r.open) - 1
	doc, err := bsoncore.AppendDocumentEnd(r.doc, r.open[last])
	if err != nil {
		panic(err) // only when the place is not in the reply
	}
	r.doc, r.open = doc, r.open[:last]
}

func (r *reply) int32(key string, n int32) {
	r.doc = bsoncore.AppendInt32Element(r.doc, key, n)
}

func (r *reply) int64(key string, n int64) {
	r.doc = bsoncore.AppendInt64Element(r.doc, key, n)
}

func (r *reply) double(key string, f float64) {
	r.doc = bsoncore.AppendDoubleElement(r.doc, key, f)
}

func (r *reply) text(key, s string) {
	r.doc = bsoncore.AppendStringElement(r.doc, key, s)
}

func (r *reply) boolean(key string, b bool) {
	r.doc = bsoncore.AppendBooleanElement(r.doc, key, b)
}

func (r *reply) null(key string) {
	r.doc = bsoncore.AppendNullElement(r.doc, key)
}

func (r *reply) document(key string, d bson.Raw) {
	r.doc = bsoncore.AppendDocumentElement(r.doc, key, d)
}

func (r *reply) date(key string, ms int64) {
	r.doc = bsoncore.AppendDateTimeElement(r.doc, key, ms)
}

func (r *reply) timestamp(key string, t engine.Timestamp) {
	r.doc = bsoncore.AppendTimestampElement(r.doc, key, t.Seconds(), t.Increment())
}

func (r *reply) binary(key string, subtype byte, b []byte) {
	r.doc = bsoncore.AppendBinaryElement(r.doc, key, subtype, b)
}

func (r *reply) objectID(key string, id bson.ObjectID) {
	r.doc = bsoncore.AppendObjectIDElement(r.doc, key, id)
}

// value writes a value of any type; a missing one as null.
func (r *reply) value(key string, v bson.RawValue) {
	if v.Type == 0 {
		r.null(key)
		return
	}
	r.doc = bsoncore.AppendValueElement(r.doc, key, bsoncore.Value{Type: bsoncore.Type(v.Type), Data: v.Value})
}

func (r *reply) strings(key string, texts []string) {
	r.openArray(key)
	for i, s := range texts {
		r.text(arrayKey(i), s)
	}
	r.close()
}

// append adds the fields of a document.
func (r *reply) append(doc bson.Raw) {
	if len(doc) > 5 {
		r.doc = append(r.doc, doc[4:len(doc)-1]...)
	}
}

// finish adds what every reply ends with
// (https://www.mongodb.com/docs/manual/reference/command/#response).
func (r *reply) finish(now engine.Timestamp) bson.Raw {
	r.double("ok", r.ok)
	r.openDocument("$clusterTime")
	r.timestamp("clusterTime", now)
	r.openDocument("signature")
	r.binary("hash", bson.TypeBinaryGeneric, make([]byte, 20))
	r.int64("keyId", 0)
	r.close()
	r.close()
	r.timestamp("operationTime", now)
	r.close()
	return r.doc
}
