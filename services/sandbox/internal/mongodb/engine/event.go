package engine

import (
	"github.com/google/uuid"
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
	dst = s.appendEventHead(dst, token, e, operationType(e))
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
	if s.options.EarlyImage {
		dst = s.appendPreImage(dst, e)
	}
	dst = appendNamespace(dst, "ns", e.NS)
	if e.Operation == oplog.OpRename {
		dst = appendNamespace(dst, "to", e.To)
	}
	if e.Key != nil {
		dst = bsoncore.AppendDocumentElement(dst, "documentKey", e.Key)
	}
	if e.Operation == oplog.OpUpdate {
		dst = s.appendUpdateDescription(dst, e)
	} else if s.options.Expanded && e.Further != nil {
		dst = append(dst, e.Further[4:len(e.Further)-1]...)
	}
	if !s.options.EarlyImage {
		dst = s.appendPreImage(dst, e)
	}
	dst = append(dst, 0)
	putLength(dst)
	return dst
}

// appendPreImage is for the events of changes of a document that was there.
func (s *Stream) appendPreImage(dst []byte, e *oplog.Entry) []byte {
	const field = "fullDocumentBeforeChange"
	switch {
	case s.options.PreImage == NoImage || !e.HasPreImage():
	case e.Before != nil:
		return bsoncore.AppendDocumentElement(dst, field, bsoncore.Document(e.Before))
	case !s.options.EarlyImage:
		return bsoncore.AppendNullElement(dst, field)
	}
	return dst
}

func (s *Stream) invalidateEvent(e *oplog.Entry, token oplog.ResumeToken) *Event {
	dst := s.appendEventHead(make([]byte, 4, eventOverhead), token, e, "invalidate")
	dst = append(dst, 0)
	putLength(dst)
	return &Event{Token: token, Doc: dst, Invalidates: true}
}

// operationType names what happened. The server's name for a collMod is modify.
func operationType(e *oplog.Entry) string {
	if _, modified := bsonkit.Get(e.Further, "stateBeforeChange"); modified {
		return "modify"
	}
	return e.Operation.String()
}

func (s *Stream) appendEventHead(dst []byte, token oplog.ResumeToken, e *oplog.Entry, operation string) []byte {
	dst = bsoncore.AppendHeader(dst, bsoncore.TypeEmbeddedDocument, "_id")
	dst = token.AppendTo(dst)
	dst = bsoncore.AppendStringElement(dst, "operationType", operation)
	dst = bsoncore.AppendTimestampElement(dst, "clusterTime", e.Time.Seconds(), e.Time.Increment())
	if s.options.Expanded && e.UUID != uuid.Nil && operation != "invalidate" {
		dst = bsoncore.AppendBinaryElement(dst, "collectionUUID", 4, e.UUID[:])
	}
	if s.options.WallTime {
		dst = bsoncore.AppendDateTimeElement(dst, "wallTime", e.Wall)
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

func (s *Stream) appendUpdateDescription(dst []byte, e *oplog.Entry) []byte {
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
	if s.options.TruncatedArrays {
		cut, _ := bsonkit.Get(e.Further, "truncatedArrays")
		dst = bsoncore.AppendArrayElement(dst, "truncatedArrays", orEmpty(cut))
	}
	if s.options.DisambiguatedPaths {
		paths, _ := bsonkit.Get(e.Further, "disambiguatedPaths")
		dst = bsoncore.AppendDocumentElement(dst, "disambiguatedPaths", orEmpty(paths))
	}
	return bsonkit.CloseDocument(dst, at)
}

// orEmpty is a document or an array, or an empty one.
func orEmpty(v bson.RawValue) []byte {
	if v.Type == bsonkit.Missing {
		return bsonkit.Empty
	}
	return v.Value
}
