package data

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/command"
	"changerelay/services/sandbox/internal/mongodb/engine"
)

// tailSource is the source of a tailable cursor: at its end there may be more
// later.
type tailSource struct {
	tail    *engine.Tail
	project func(bson.Raw) (bson.Raw, error)
	// skip and left are how many are still to be passed over, and given; left is
	// negative where there is no limit.
	skip, left int64
	// await tells that a getMore waits for more.
	await bool
}

func (s *tailSource) Next() (bson.Raw, error) {
	for s.left != 0 {
		doc, err := s.tail.Next()
		if doc == nil || err != nil {
			return nil, err
		}
		if s.skip > 0 {
			s.skip--
			continue
		}
		s.left--
		return s.project(doc)
	}
	return nil, nil
}

func (s *tailSource) Exhausted() bool { return s.left == 0 }
func (s *tailSource) Close()          {}

// openTail answers a find with a tailable cursor. A collection that is empty
// has none, as on the server.
func openTail(c *command.Call, r *command.Reply, cur *command.Cursor, src *tailSource, size int) error {
	r.OpenDocument("cursor")
	r.OpenArray("firstBatch")
	if _, err := cur.Fill(r, size); err != nil {
		return err
	}
	r.Close()
	if !src.Exhausted() && (!src.tail.Empty() || size == 0) {
		c.Server.Cursors.Add(cur)
	}
	r.Int64("id", cur.ID)
	r.Text("ns", cur.NS)
	r.Close()
	return nil
}

// moreOfTail answers a getMore on a tailable cursor, waiting for a document if
// there is none and the cursor awaits data.
func moreOfTail(ctx context.Context, c *command.Call, r *command.Reply, cur *command.Cursor, src *tailSource, m moreArguments) (over bool, err error) {
	await := defaultAwait
	if c.Generic.MaxTime > 0 {
		await = c.Generic.MaxTime
	}
	waiting, cancel := context.WithTimeout(ctx, await)
	defer cancel()
	r.OpenDocument("cursor")
	r.OpenArray("nextBatch")
	for {
		before := len(r.Doc)
		if _, err := cur.Fill(r, m.batchSize); err != nil {
			return true, err
		}
		if len(r.Doc) > before || !src.await || src.Exhausted() {
			break
		}
		if src.tail.Wait(waiting) == nil {
			continue
		}
		if ctx.Err() != nil {
			return false, context.Cause(ctx) // killed, or the client has gone
		}
		break
	}
	r.Close()
	over = src.Exhausted()
	r.CursorID(cur, over)
	r.Close()
	return over, nil
}
