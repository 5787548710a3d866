package engine

import (
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// eventOverhead is what an event takes beside the documents in it, about.
const eventOverhead = 320

// operationType is an operation's name in an event
// (https://www.mongodb.com/docs/manual/reference/change-events/).
func (o Operation) String() string {
	switch o {
	case OpInsert:
		return "insert"
	case OpUpdate:
		return "update"
	case OpReplace:
		return "replace"
	case OpDelete:
		return "delete"
	case OpDrop:
		return "drop"
	case OpRename:
		return "rename"
	case OpDropDatabase:
		return "dropDatabase"
	case OpCreate:
		return "create"
	case OpCreateIndexes:
		return "createIndexes"
	case OpDropIndexes:
		return "dropIndexes"
	case OpCollMod:
		return "collMod"
	default:
		return "noop"
	}
}

// document writes an event.
func (s *Stream) document(e *Entry, token ResumeToken) bson.Raw {
	full := e.Doc
	wantsFull := e.Operation == OpUpdate && (s.options.UpdateLookup || s.options.PostImage != NoImage)
	switch {
	case wantsFull && s.options.UpdateLookup:
		full = s.lookup(e)
	case wantsFull:
		full = e.After
	}
	dst := make([]byte, 4, eventOverhead+2*len(e.Key)+len(full)+len(e.Updated))
	dst = appendEventHead(dst, token, e.Operation.String(), e.Time)
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
	if e.Operation == OpRename {
		dst = appendNamespace(dst, "to", e.To)
	}
	if e.Key != nil {
		dst = bsoncore.AppendDocumentElement(dst, "documentKey", e.Key)
	}
	if e.Operation == OpUpdate {
		dst = appendUpdateDescription(dst, e)
	}
	switch {
	case s.options.PreImage == NoImage || !e.hasPreImage():
	case e.Before != nil:
		dst = bsoncore.AppendDocumentElement(dst, "fullDocumentBeforeChange", bsoncore.Document(e.Before))
	default:
		dst = bsoncore.AppendNullElement(dst, "fullDocumentBeforeChange")
	}
	dst = append(dst, 0)
	putLength(dst)
	return dst
}

func invalidateEvent(e *Entry, token ResumeToken) *Event {
	dst := appendEventHead(make([]byte, 4, eventOverhead), token, "invalidate", e.Time)
	dst = append(dst, 0)
	putLength(dst)
	return &Event{Token: token, Doc: dst, Invalidates: true}
}

func appendEventHead(dst []byte, token ResumeToken, operation string, at Timestamp) []byte {
	dst = bsoncore.AppendHeader(dst, bsoncore.TypeEmbeddedDocument, "_id")
	dst = token.appendTo(dst)
	dst = bsoncore.AppendStringElement(dst, "operationType", operation)
	return bsoncore.AppendTimestampElement(dst, "clusterTime", at.Seconds(), at.Increment())
}

// appendNamespace leaves the collection out where an event has none.
func appendNamespace(dst []byte, field string, ns Namespace) []byte {
	at, dst := bsoncore.AppendDocumentElementStart(dst, field)
	dst = bsoncore.AppendStringElement(dst, "db", ns.DB)
	if ns.Collection != "" {
		dst = bsoncore.AppendStringElement(dst, "coll", ns.Collection)
	}
	return closeDocument(dst, at)
}

func appendUpdateDescription(dst []byte, e *Entry) []byte {
	at, dst := bsoncore.AppendDocumentElementStart(dst, "updateDescription")
	updated := e.Updated
	if updated == nil {
		updated = emptyDocument
	}
	dst = bsoncore.AppendDocumentElement(dst, "updatedFields", updated)
	removed, dst := bsoncore.AppendArrayElementStart(dst, "removedFields")
	for i, path := range e.Removed {
		dst = bsoncore.AppendStringElement(dst, arrayKey(i), path)
	}
	return closeDocument(closeDocument(dst, removed), at)
}
