package schema

import (
	"context"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/command"
	"changerelay/services/sandbox/internal/mongodb/engine/oplog"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
)

func drop(ctx context.Context, c *command.Call, r *command.Reply) error {
	ns, err := c.Collection()
	if err != nil {
		return err
	}
	if ns.Collection == command.ProfileCollection && c.Server.Profiler.Of(ns.DB).Level > 0 {
		return mongoerr.New(mongoerr.IllegalOperation, "turn off profiling before dropping system.profile collection")
	}
	view := c.Server.Engine.Options(ns).View != nil
	indexes, err := c.Server.Engine.Drop(ctx, ns)
	if err != nil {
		return err
	}
	endCursorsOn(c.Server, "dropped", func(of string) bool { return of == ns.String() })
	if !view {
		r.Int32("nIndexesWas", int32(indexes))
	}
	r.Text("ns", ns.String())
	return nil
}

func dropDatabase(ctx context.Context, c *command.Call, r *command.Reply) error {
	first, _ := bsonkit.Get(c.Body, c.Name)
	switch n, _ := first.AsFloat64OK(); {
	case c.DB == "local":
		return mongoerr.New(mongoerr.IllegalOperation, "Cannot drop 'local' database while replication is active")
	case n < 1 || n >= 2:
		return mongoerr.New(mongoerr.IllegalOperation, "have to pass 1 as db parameter")
	case c.DB == "admin":
		return mongoerr.New(mongoerr.IllegalOperation, "Dropping the '%s' database is prohibited.", c.DB)
	}
	dropped, err := c.Server.Engine.DropDatabase(ctx, c.DB)
	if err != nil {
		return err
	}
	if dropped {
		prefix := oplog.Namespace{DB: c.DB}.String()
		endCursorsOn(c.Server, "dropped", func(of string) bool { return len(of) > len(prefix) && of[:len(prefix)] == prefix })
		r.Text("dropped", c.DB)
	}
	return nil
}

// endCursorsOn lets what is read from collections that have gone end with an
// error. Change streams stay: they end with an invalidate event.
func endCursorsOn(s *command.Server, what string, gone func(ns string) bool) {
	err := mongoerr.New(mongoerr.QueryPlanKilled, "collection %s between getMore calls", what)
	s.Cursors.Fail(err, func(c *command.Cursor) bool { return !c.Streams && c.TxnNumber == nil && gone(c.NS) })
}
