package mongoserver

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/engine"
)

const (
	// firstBatch is how many documents a first batch has by default.
	firstBatch = 101
	// noLimit leaves a batch to its size in bytes.
	noLimit = 1 << 30
	// batchBytes bounds a batch, so that its reply is a document that drivers
	// accept.
	batchBytes = engine.MaxDocumentBytes
)

// fill writes documents of the cursor into an open array until the batch is
// full or nothing more is there. over reports that the source is at its end.
func (cur *cursor) fill(r *reply, size int) (over bool, err error) {
	n, bytes := 0, 0
	for n < size {
		doc := cur.kept
		cur.kept = nil
		if doc == nil {
			if doc, err = cur.source.next(); err != nil {
				return true, err
			}
		}
		if doc == nil {
			return true, nil
		}
		if n > 0 && bytes+len(doc) > batchBytes {
			cur.kept = doc
			return false, nil
		}
		r.document(arrayKey(n), doc)
		bytes += len(doc)
		n++
	}
	return cur.source.exhausted(), nil
}

// open answers a command that opens a cursor with its first batch, and keeps
// the cursor for more unless there is none.
func (c *call) open(_ context.Context, r *reply, cur *cursor, size int, single bool) error {
	r.openDocument("cursor")
	r.openArray("firstBatch")
	over, err := cur.fill(r, size)
	if err != nil {
		cur.source.close()
		return err
	}
	r.close()
	if over || single {
		cur.source.close()
	} else {
		c.server.cursors.add(cur)
	}
	r.int64("id", cur.id)
	r.text("ns", cur.ns)
	r.close()
	return nil
}

// docSource are documents that are all there.
type docSource struct{ docs []bson.Raw }

func (s *docSource) next() (bson.Raw, error) {
	if len(s.docs) == 0 {
		return nil, nil
	}
	doc := s.docs[0]
	s.docs[0] = nil
	s.docs = s.docs[1:]
	return doc, nil
}

// Next makes it a puller too.
func (s *docSource) Next() (bson.Raw, error) { return s.next() }

func (s *docSource) exhausted() bool { return false }
func (s *docSource) close()          {}
