package engine

import (
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/engine/oplog"
)

// eventOverhead is what an event takes beside the documents in it, about.
const eventOverhead = 320

// document writes an event.
func (s *Stream) document(e *oplog.Entry, token oplog.ResumeToken) bson.Raw {
	full := e.Doc
	wantsFull := e.Operation == oplog.OpUpdate && (s.options.UpdateLookup || s.options.PostImage != NoImage)
	switch {
	case wantsFull && s.options.UpdateLookup:
		full = s.lookup(e)
	case wantsFull:
		full = e.After
	}
	dst := make([]byte, 4, eventOverhead+2*len(e.Key)+len(full)+len(e.Updated))
	dst = s.appendEventHead(dst, token, e.Operation.String(), e.Time)
	if e.Txn != nil {
		dst = bsoncore.AppendInt64Element(dst, "txnNumber", e.Txn.Number)
		dst = bsoncore.AppendDocumentElement(dst, "lsid", e.Txn.Session)
	}
	switch {
	case full != nil:
		dst = bsoncore.AppendDocumentElement(dst, "fullDocument", full)
	case wantsFull:
		dst = bsoncore.AppendNullElement(dst, "fullDocument")
	}
	dst = appendNamespace(dst, "ns", e.NS)
	if e.Operation == oplog.OpRename {
		dst = appendNamespace(dst, "to", e.To)
	}
	if e.Key != nil {
		dst = bsoncore.AppendDocumentElement(dst, "documentKey", e.Key)
	}
	if e.Operation == oplog.OpUpdate {
		dst = appendUpdateDescription(dst, e, s.options.TruncatedArrays)
	}
	switch {
	case s.options.PreImage == NoImage || !e.HasPreImage():
	case e.Before != nil:
		dst = bsoncore.AppendDocumentElement(dst, "fullDocumentBeforeChange", bsoncore.Document(e.Before))
	default:
		dst = bsoncore.AppendNullElement(dst, "fullDocumentBeforeChange")
	}
	dst = append(dst, 0)
	putLength(dst)
	return dst
}

func (s *Stream) invalidateEvent(e *oplog.Entry, token oplog.ResumeToken) *Event {
	dst := s.appendEventHead(make([]byte, 4, eventOverhead), token, "invalidate", e.Time)
	dst = append(dst, 0)
	putLength(dst)
	return &Event{Token: token, Doc: dst, Invalidates: true}
}

func (s *Stream) appendEventHead(dst []byte, token oplog.ResumeToken, operation string, at oplog.Timestamp) []byte {
	dst = bsoncore.AppendHeader(dst, bsoncore.TypeEmbeddedDocument, "_id")
	dst = token.AppendTo(dst)
	dst = bsoncore.AppendStringElement(dst, "operationType", operation)
	dst = bsoncore.AppendTimestampElement(dst, "clusterTime", at.Seconds(), at.Increment())
	if s.options.WallTime {
		dst = bsoncore.AppendDateTimeElement(dst, "wallTime", int64(at.Seconds())*1000)
	}
	return dst
}

// appendNamespace leaves the collection out where an event has none.
func appendNamespace(dst []byte, field string, ns oplog.Namespace) []byte {
	at, dst := bsoncore.AppendDocumentElementStart(dst, field)
	dst = bsoncore.AppendStringElement(dst, "db", ns.DB)
	if ns.Collection != "" {
		dst = bsoncore.AppendStringElement(dst, "coll", ns.Collection)
	}
	return bsonkit.CloseDocument(dst, at)
}

func appendUpdateDescription(dst []byte, e *oplog.Entry, truncated bool) []byte {
	at, dst := bsoncore.AppendDocumentElementStart(dst, "updateDescription")
	updated := e.Updated
	if updated == nil {
		updated = bsonkit.Empty
	}
	dst = bsoncore.AppendDocumentElement(dst, "updatedFields", updated)
	removed, dst := bsoncore.AppendArrayElementStart(dst, "removedFields")
	for i, path := range e.Removed {
		dst = bsoncore.AppendStringElement(dst, bsonkit.ArrayKey(i), path)
	}
	dst = bsonkit.CloseDocument(dst, removed)
	if truncated {
		// Arrays that become shorter are reported whole.
		cut, none := bsoncore.AppendArrayElementStart(dst, "truncatedArrays")
		dst = bsonkit.CloseDocument(none, cut)
	}
	return bsonkit.CloseDocument(dst, at)
}
