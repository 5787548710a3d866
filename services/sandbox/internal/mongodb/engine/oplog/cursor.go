package oplog

import (
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
)

// Cursor gives the oplog's entries as documents, as local.oplog.rs shows
// them. It covers what was there when it was opened, whether a majority has it or
// not. A transaction shows as one entry for each of its writes.
type Cursor struct {
	log        *Log
	next, last uint64
	reverse    bool
	term       int64
}

// Cursor opens a cursor; term is shown in the entries.
func (l *Log) Cursor(reverse bool, term int64) *Cursor {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return &Cursor{log: l, next: l.first, last: l.applied, reverse: reverse, term: term}
}

// Next gives the next entry, nil at the end.
func (c *Cursor) Next() (bson.Raw, error) {
	if c.next >= c.last {
		return nil, nil
	}
	n := c.next
	if c.reverse {
		c.last--
		n = c.last
	} else {
		c.next++
	}
	entries, _ := c.log.ReadOldest(nil, n, n+1, 1)
	if len(entries) == 0 {
		return nil, ErrHistoryLost()
	}
	return entries[0].document(c.term), nil
}

// documentOverhead is what an entry takes as a document beside those in it,
// about.
const documentOverhead = 320

// document shows an entry in the fields that readers of the oplog look at: ts,
// t, v, op, ns, ui, wall, o and o2.
func (e *Entry) document(term int64) bson.Raw {
	at, dst := bsoncore.AppendDocumentStart(make([]byte, 0, documentOverhead+len(e.Doc)+len(e.Updated)))
	dst = bsoncore.AppendTimestampElement(dst, "ts", e.Time.Seconds(), e.Time.Increment())
	dst = bsoncore.AppendInt64Element(dst, "t", term)
	dst = bsoncore.AppendDateTimeElement(dst, "wall", e.Wall)
	dst = bsoncore.AppendInt32Element(dst, "v", 2)
	dst = bsoncore.AppendStringElement(dst, "op", e.letter())
	ns := e.NS.String()
	if e.Operation >= OpDrop {
		ns = e.NS.DB + ".$cmd"
	}
	if e.Operation == OpNoop {
		ns = ""
	}
	dst = bsoncore.AppendStringElement(dst, "ns", ns)
	if e.Operation != OpNoop && e.Operation != OpDropDatabase {
		dst = bsoncore.AppendBinaryElement(dst, "ui", bson.TypeBinaryUUID, e.UUID[:])
	}
	if e.Operation == OpUpdate || e.Operation == OpReplace {
		dst = bsoncore.AppendDocumentElement(dst, "o2", e.Key)
	}
	dst = bsoncore.AppendDocumentElement(dst, "o", e.object())
	return bsonkit.CloseDocument(dst, at)
}

func (e *Entry) letter() string {
	switch e.Operation {
	case OpInsert:
		return "i"
	case OpUpdate, OpReplace:
		return "u"
	case OpDelete:
		return "d"
	case OpNoop:
		return "n"
	default:
		return "c"
	}
}

func (e *Entry) object() bson.Raw {
	switch e.Operation {
	case OpInsert, OpReplace:
		return e.Doc
	case OpDelete:
		return e.Key
	case OpUpdate:
		return e.change()
	}
	b := bsoncore.NewDocumentBuilder()
	switch e.Operation {
	case OpNoop:
		b.AppendString("msg", e.Note)
	case OpRename:
		b.AppendString("renameCollection", e.NS.String()).AppendString("to", e.To.String())
	case OpDropDatabase:
		b.AppendInt32("dropDatabase", 1)
	default:
		b.AppendString(e.Operation.String(), e.NS.Collection)
	}
	return bson.Raw(b.Build())
}

// change is {$v: 1, $unset: …, $set: …}.
func (e *Entry) change() bson.Raw {
	b := bsoncore.NewDocumentBuilder().AppendInt32("$v", 1)
	if len(e.Removed) > 0 {
		b.StartDocument("$unset")
		for _, path := range e.Removed {
			b.AppendBoolean(path, true)
		}
		b.FinishDocument()
	}
	if len(e.Updated) > len(bsonkit.Empty) {
		b.AppendDocument("$set", e.Updated)
	}
	return bson.Raw(b.Build())
}
