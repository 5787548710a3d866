package command

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
)

const (
	// FirstBatch is how many documents a first batch has by default.
	FirstBatch = 101
	// NoLimit leaves a batch to its size in bytes.
	NoLimit = 1 << 30
	// BatchBytes bounds a batch, so that its reply is a document that drivers
	// accept.
	BatchBytes = bsonkit.MaxDocument
)

// Fill writes documents of the cursor into an open array until the batch is
// full or nothing more is there. over reports that the source is at its end.
func (cur *Cursor) Fill(r *Reply, size int) (over bool, err error) {
	n, bytes := 0, 0
	for n < size {
		doc := cur.kept
		cur.kept = nil
		if doc == nil {
			if doc, err = cur.Source.Next(); err != nil {
				return true, err
			}
		}
		if doc == nil {
			return true, nil
		}
		if len(doc) > MaxEventBytes {
			return true, ErrTooLarge(len(doc))
		}
		if n > 0 && bytes+len(doc) > BatchBytes {
			cur.kept = doc
			return false, nil
		}
		r.Document(bsonkit.ArrayKey(n), doc)
		bytes += len(doc)
		n++
	}
	return cur.Source.Exhausted(), nil
}

// Open answers a command that opens a cursor with its first batch, and keeps
// the cursor for more unless there is none.
func (c *Call) Open(_ context.Context, r *Reply, cur *Cursor, size int, single bool) error {
	r.OpenDocument("cursor")
	r.OpenArray("firstBatch")
	over, err := cur.Fill(r, size)
	if err != nil {
		cur.Source.Close()
		return err
	}
	r.Close()
	if over || single {
		cur.Source.Close()
	} else {
		c.Server.Cursors.Add(cur)
	}
	r.Int64("id", cur.ID)
	r.Text("ns", cur.NS)
	r.Close()
	return nil
}

// DocSource are documents that are all there.
type DocSource struct{ Docs []bson.Raw }

// Next gives the next document, nil at the end.
func (s *DocSource) Next() (bson.Raw, error) {
	if len(s.Docs) == 0 {
		return nil, nil
	}
	doc := s.Docs[0]
	s.Docs[0] = nil
	s.Docs = s.Docs[1:]
	return doc, nil
}

// Exhausted is false: only Next finds the end.
func (s *DocSource) Exhausted() bool { return false }

// Close does nothing.
func (s *DocSource) Close() {}

// CursorID ends the cursor part of a reply; a cursor at its end has id 0.
func (r *Reply) CursorID(cur *Cursor, over bool) {
	id := cur.ID
	if over {
		id = 0
	}
	r.Int64("id", id)
	r.Text("ns", cur.NS)
}

// ErrTooLarge refuses a document of that size.
func ErrTooLarge(size int) error {
	return mongoerr.New(mongoerr.BSONObjectTooLarge,
		"BSONObj size: %d is invalid. Size must be between 0 and %d", size, MaxEventBytes).
		WithLabels("NonResumableChangeStreamError")
}

// MaxEventBytes is the largest event that fits into a reply
// (BSONObjMaxInternalSize).
const MaxEventBytes = bsonkit.MaxDocument + 16<<10
