package mongoserver

import (
	"context"

	"changerelay/services/sandbox/internal/engine"
)

func drop(ctx context.Context, c *call, r *reply) error {
	ns, err := c.collection()
	if err != nil {
		return err
	}
	indexes, err := c.server.engine.Drop(ctx, ns)
	if err != nil {
		return err
	}
	c.server.killCursorsOn(func(of string) bool { return of == ns.String() })
	r.int32("nIndexesWas", int32(indexes))
	r.text("ns", ns.String())
	return nil
}

func dropDatabase(ctx context.Context, c *call, r *reply) error {
	dropped, err := c.server.engine.DropDatabase(ctx, c.db)
	if err != nil {
		return err
	}
	if dropped {
		prefix := engine.Namespace{DB: c.db}.String()
		c.server.killCursorsOn(func(of string) bool { return len(of) > len(prefix) && of[:len(prefix)] == prefix })
		r.text("dropped", c.db)
	}
	return nil
}

// killCursorsOn kills cursors on collections that have gone. Change streams
// stay: they end with an invalidate event.
func (s *Server) killCursorsOn(gone func(ns string) bool) {
	s.cursors.killWhere(func(c *cursor) bool { return c.stream == nil && c.txnNumber == nil && gone(c.ns) })
}
