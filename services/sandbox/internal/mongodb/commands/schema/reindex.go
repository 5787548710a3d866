package schema

import (
	"context"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/command"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
)

// reIndex has nothing to build anew: indexes are always what the documents are.
// From 5.0 on no member of a replica set takes it.
func reIndex(_ context.Context, c *command.Call, r *command.Reply) error {
	if c.Server.Version.Has(5) {
		return mongoerr.New(mongoerr.IllegalOperation, "reIndex is only allowed on a standalone mongod instance.")
	}
	ns, err := c.Collection()
	if err != nil {
		return err
	}
	if err := c.NotView(ns); err != nil {
		return err
	}
	info, there := c.Server.Engine.Collection(ns)
	if !there {
		return mongoerr.New(mongoerr.NamespaceNotFound, "collection does not exist")
	}
	r.Int32("nIndexesWas", int32(len(info.Indexes)))
	r.Int32("nIndexes", int32(len(info.Indexes)))
	r.OpenArray("indexes")
	for i, index := range info.Indexes {
		r.Document(bsonkit.ArrayKey(i), index.Listed)
	}
	r.Close()
	return nil
}
