package mongoserver

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/engine"
)

// tailSource is the source of a tailable cursor: at its end there may be more
// later.
type tailSource struct {
	tail    *engine.Tail
	project func(bson.Raw) (bson.Raw, error)
	// await tells that a getMore waits for more.
	await bool
}

func (s *tailSource) next() (bson.Raw, error) {
	doc, err := s.tail.Next()
	if doc == nil || err != nil {
		return nil, err
	}
	return s.project(doc)
}

func (s *tailSource) exhausted() bool { return false }
func (s *tailSource) close()          {}

// openTail answers a find with a tailable cursor. A collection that is empty
// has none, as on the server.
func (c *call) openTail(r *reply, cur *cursor, size int) error {
	r.openDocument("cursor")
	r.openArray("firstBatch")
	if _, err := cur.fill(r, size); err != nil {
		return err
	}
	r.close()
	if !cur.tail.tail.Empty() || size == 0 {
		c.server.cursors.add(cur)
	}
	r.int64("id", cur.id)
	r.text("ns", cur.ns)
	r.close()
	return nil
}

// moreOfTail answers a getMore on a tailable cursor, waiting for a document if
// there is none and the cursor awaits data.
func (c *call) moreOfTail(ctx context.Context, r *reply, cur *cursor, m moreArguments) (over bool, err error) {
	await := defaultAwait
	if c.generic.maxTime > 0 {
		await = c.generic.maxTime
	}
	waiting, cancel := context.WithTimeout(ctx, await)
	defer cancel()
	r.openDocument("cursor")
	r.openArray("nextBatch")
	for {
		before := len(r.doc)
		if _, err := cur.fill(r, m.batchSize); err != nil {
			return true, err
		}
		if len(r.doc) > before || !cur.tail.await {
			break
		}
		if cur.tail.tail.Wait(waiting) == nil {
			continue
		}
		if ctx.Err() != nil {
			return false, context.Cause(ctx) // killed, or the client has gone
		}
		break
	}
	r.close()
	r.cursorID(cur, false)
	r.close()
	return false, nil
}
