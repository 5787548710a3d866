package mongoserver

import (
	"context"

	"changerelay/services/sandbox/internal/bsonkit"
	"changerelay/services/sandbox/internal/mongoerr"
	"changerelay/services/sandbox/internal/query"
)

func create(ctx context.Context, c *call, _ *reply) error {
	a := arguments{mismatch: mongoerr.TypeMismatch}
	var settings collectionSettings
	for it := bsonkit.Iterate(c.body); it.Next(); {
		name, v := string(it.Key()), it.Value()
		if settings.read(&a, name, v) {
			continue
		}
		switch name {
		case c.name, "autoIndexId", "idIndex", "writeConcern":
		default:
			if !isGeneric(name) {
				a.unknown(40415, "create", name)
			}
		}
	}
	settings.check(&a)
	if a.err != nil {
		return a.err
	}
	ns, err := c.collection()
	if err != nil {
		return err
	}
	if settings.viewOn != "" {
		if c.txn != nil {
			return mongoerr.New(mongoerr.OperationNotSupportedInTransaction, "Cannot create a view in a multi-document transaction")
		}
		if _, err := query.CompilePipeline(settings.pipeline, query.PipelineEnv{Env: c.env(nil), Collection: c.foreign(c.db)}); err != nil {
			return err
		}
	}
	options, err := settings.options()
	if err != nil {
		return err
	}
	return c.server.engine.CreateCollection(ctx, c.txn, ns, options)
}
