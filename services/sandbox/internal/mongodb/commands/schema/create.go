package schema

import (
	"context"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/command"
	"changerelay/services/sandbox/internal/mongodb/engine"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
)

func create(ctx context.Context, c *command.Call, _ *command.Reply) error {
	a := command.Arguments{Mismatch: mongoerr.TypeMismatch}
	var settings collectionSettings
	for it := bsonkit.Iterate(c.Body); it.Next(); {
		name, v := string(it.Key()), it.Value()
		if (name != imagesOption || c.Server.Version.Has(6)) && settings.read(&a, name, v) {
			continue
		}
		switch name {
		case c.Name, "autoIndexId", "idIndex", "writeConcern":
		default:
			if !command.IsGeneric(name) {
				a.Unknown(40415, "create", name)
			}
		}
	}
	settings.check(&a)
	if a.Err != nil {
		return a.Err
	}
	ns, err := c.Collection()
	if err != nil {
		return err
	}
	if settings.viewOn != "" {
		if c.Txn != nil {
			return mongoerr.New(mongoerr.OperationNotSupportedInTransaction, "Cannot create a view in a multi-document transaction")
		}
		if err := checkView(c, ns, &engine.ViewOptions{On: settings.viewOn, Pipeline: settings.pipeline}); err != nil {
			return err
		}
	}
	options, err := settings.options()
	if err != nil {
		return err
	}
	return c.Server.Engine.CreateCollection(ctx, c.Txn, ns, options)
}
