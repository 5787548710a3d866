package schema

import (
	"context"

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
	indexes, err := c.Server.Engine.Drop(ctx, ns)
	if err != nil {
		return err
	}
	killCursorsOn(c.Server, func(of string) bool { return of == ns.String() })
	r.Int32("nIndexesWas", int32(indexes))
	r.Text("ns", ns.String())
	return nil
}

func dropDatabase(ctx context.Context, c *command.Call, r *command.Reply) error {
	dropped, err := c.Server.Engine.DropDatabase(ctx, c.DB)
	if err != nil {
		return err
	}
	if dropped {
		prefix := oplog.Namespace{DB: c.DB}.String()
		killCursorsOn(c.Server, func(of string) bool { return len(of) > len(prefix) && of[:len(prefix)] == prefix })
		r.Text("dropped", c.DB)
	}
	return nil
}

// killCursorsOn kills cursors on collections that have gone. Change streams
// stay: they end with an invalidate event.
func killCursorsOn(s *command.Server, gone func(ns string) bool) {
	s.Cursors.KillWhere(func(c *command.Cursor) bool { return !c.Streams && c.TxnNumber == nil && gone(c.NS) })
}
