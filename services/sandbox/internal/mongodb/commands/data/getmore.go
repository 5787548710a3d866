package data

import (
	"context"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/command"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
	"changerelay/services/sandbox/internal/mongodb/mongowire"
)

// moreArguments are those of getMore.
type moreArguments struct {
	id         int64
	collection string
	batchSize  int
}

func getMore(ctx context.Context, c *command.Call, r *command.Reply) error {
	m, err := parseGetMore(c)
	if err != nil {
		return err
	}
	cur, ctx, err := c.Server.Cursors.Take(ctx, m.id)
	if err != nil {
		return err
	}
	c.Streaming = cur.Streams
	if err := c.Server.FailPoints.GetMore.Take(c).Before(ctx); err != nil {
		c.Server.Cursors.Put(cur, true)
		return err
	}
	leave := cur.Work.Enter(ctx)
	over, err := nextBatch(ctx, c, r, cur, m)
	leave()
	c.Server.Cursors.Put(cur, over)
	c.More = !over && c.Request.Flags&mongowire.ExhaustAllowed != 0
	return err
}

func parseGetMore(c *command.Call) (moreArguments, error) {
	m := moreArguments{batchSize: command.NoLimit}
	a := command.Arguments{Mismatch: mongoerr.TypeMismatch}
	for it := bsonkit.Iterate(c.Body); it.Next(); {
		name, v := string(it.Key()), it.Value()
		switch name {
		case c.Name:
			id, ok := v.Int64OK()
			if !ok {
				a.WrongType(name, v, "long")
			}
			m.id = id
		case "collection":
			m.collection = a.Text(name, v)
		case "batchSize":
			m.batchSize = batchSizeOfMore(c, &a, v)
		case "term", "lastKnownCommittedOpTime":
		default:
			if !command.IsGeneric(name) {
				a.Unknown(mongoerr.FailedToParse, "getMore", name)
			}
		}
	}
	_, named := bsonkit.Get(c.Body, "collection")
	switch {
	case !named:
		a.Fail(mongoerr.FailedToParse, "Field 'collection' missing in: getMore")
	case m.collection == "":
		a.Fail(mongoerr.InvalidNamespace, "Invalid namespace for getMore: %s.", c.DB)
	case m.id == 0:
		a.Fail(mongoerr.BadValue, "Cursor id for getMore must be non-zero")
	}
	return m, a.Err
}

// batchSizeOfMore is any since 5.0, where none is 0.
func batchSizeOfMore(c *command.Call, a *command.Arguments, v bson.RawValue) int {
	size := int(min(a.Count("batchSize", v), command.NoLimit))
	if size > 0 {
		return size
	}
	if !c.Server.Version.Has(5) {
		a.Fail(mongoerr.BadValue, "Batch size for getMore must be positive, but received: %d", size)
	}
	return command.NoLimit
}

// nextBatch answers with the next batch of a cursor that the command has taken.
// over reports that the cursor is to be closed.
func nextBatch(ctx context.Context, c *command.Call, r *command.Reply, cur *command.Cursor, m moreArguments) (over bool, err error) {
	if asked := c.DB + "." + m.collection; asked != cur.NS {
		return false, mongoerr.New(mongoerr.Unauthorized,
			"Requested getMore on namespace '%s', but cursor belongs to a different namespace %s", asked, cur.NS)
	}
	if err := c.Opened(cur); err != nil {
		return false, err
	}
	if err := cur.Belongs(c.Generic); err != nil {
		return false, err
	}
	switch src := cur.Source.(type) {
	case *streamSource:
		return moreOfStream(ctx, c, r, cur, src, m)
	case *tailSource:
		if src.await || c.Generic.MaxTime == 0 {
			return moreOfTail(ctx, c, r, cur, src, m)
		}
	}
	if c.Generic.MaxTime > 0 {
		return false, mongoerr.New(mongoerr.BadValue, "cannot set maxTimeMS on getMore command for a non-awaitData cursor")
	}
	if cur.Limited && (cur.Left <= 0 || c.Server.FailPoints.MaxTime.Meets(c)) {
		return true, command.ErrTimedOut()
	}
	began := time.Now()
	r.OpenDocument("cursor")
	r.OpenArray("nextBatch")
	over, err = cur.Fill(r, m.batchSize)
	if err != nil {
		return true, err
	}
	cur.Left -= time.Since(began)
	r.Close()
	r.CursorID(cur, over)
	r.Close()
	return over, nil
}
