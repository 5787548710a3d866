package mongoserver

import (
	"context"

	"changerelay/services/sandbox/internal/bsonkit"
	"changerelay/services/sandbox/internal/mongoerr"
)

// moreArguments are those of getMore.
type moreArguments struct {
	id         int64
	collection string
	batchSize  int
}

func getMore(ctx context.Context, c *call, r *reply) error {
	m, err := c.parseGetMore()
	if err != nil {
		return err
	}
	cur, ctx, err := c.server.cursors.take(ctx, m.id)
	if err != nil {
		return err
	}
	c.streaming = cur.stream != nil
	if err := c.server.failPoints.getMore.take(c).before(ctx); err != nil {
		c.server.cursors.put(cur, true)
		return err
	}
	over, err := c.nextBatch(ctx, r, cur, m)
	c.server.cursors.put(cur, over)
	return err
}

func (c *call) parseGetMore() (moreArguments, error) {
	m := moreArguments{batchSize: noLimit}
	a := arguments{mismatch: mongoerr.TypeMismatch}
	for it := bsonkit.Iterate(c.body); it.Next(); {
		name, v := string(it.Key()), it.Value()
		switch name {
		case c.name:
			id, ok := v.Int64OK()
			if !ok {
				a.wrongType(name, v, "long")
			}
			m.id = id
		case "collection":
			m.collection = a.text(name, v)
		case "batchSize":
			if m.batchSize = int(min(a.count(name, v), noLimit)); m.batchSize == 0 {
				m.batchSize = noLimit
			}
		case "term", "lastKnownCommittedOpTime":
		default:
			if !isGeneric(name) {
				a.unknown(mongoerr.FailedToParse, "getMore", name)
			}
		}
	}
	if m.collection == "" {
		a.fail(mongoerr.FailedToParse, "Field 'collection' must be of type string in: getMore")
	}
	return m, a.err
}

// nextBatch answers with the next batch of a cursor that the command has taken.
// over reports that the cursor is to be closed.
func (c *call) nextBatch(ctx context.Context, r *reply, cur *cursor, m moreArguments) (over bool, err error) {
	if asked := c.db + "." + m.collection; asked != cur.ns {
		return false, mongoerr.New(mongoerr.Unauthorized,
			"Requested getMore on namespace '%s', but cursor belongs to a different namespace %s", asked, cur.ns)
	}
	if err := c.opened(cur); err != nil {
		return false, err
	}
	if err := cur.belongs(c.generic); err != nil {
		return false, err
	}
	if cur.stream != nil {
		return c.moreOfStream(ctx, r, cur, m)
	}
	if cur.tail != nil && (cur.tail.await || c.generic.maxTime == 0) {
		return c.moreOfTail(ctx, r, cur, m)
	}
	if c.generic.maxTime > 0 {
		return false, mongoerr.New(mongoerr.BadValue, "cannot set maxTimeMS on getMore command for a non-awaitData cursor")
	}
	r.openDocument("cursor")
	r.openArray("nextBatch")
	over, err = cur.fill(r, m.batchSize)
	if err != nil {
		return true, err
	}
	r.close()
	r.cursorID(cur, over)
	r.close()
	return over, nil
}

// cursorID ends the cursor part of a reply; a cursor at its end has id 0.
func (r *reply) cursorID(cur *cursor, over bool) {
	id := cur.id
	if over {
		id = 0
	}
	r.int64("id", id)
	r.text("ns", cur.ns)
}
