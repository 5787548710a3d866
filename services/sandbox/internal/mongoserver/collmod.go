package mongoserver

import (
	"context"

	"changerelay/services/sandbox/internal/bsonkit"
	"changerelay/services/sandbox/internal/engine"
	"changerelay/services/sandbox/internal/mongoerr"
)

// collMod changes a collection's validator, or whether it keeps pre- and
// post-images; or the pipeline of a view.
func collMod(ctx context.Context, c *call, _ *reply) error {
	ns, err := c.collection()
	if err != nil {
		return err
	}
	return c.server.engine.SetOptions(ctx, ns, func(o engine.CollectionOptions) (engine.CollectionOptions, error) {
		a := arguments{mismatch: mongoerr.TypeMismatch}
		settings := settingsOf(o)
		for it := bsonkit.Iterate(c.body); it.Next(); {
			name, v := string(it.Key()), it.Value()
			switch name {
			case c.name:
			case "validator", "validationLevel", "validationAction", "changeStreamPreAndPostImages":
				settings.read(&a, name, v)
			case "viewOn", "pipeline":
				if o.View == nil {
					a.fail(mongoerr.InvalidOptions, "%s is not a view", ns)
				}
				settings.read(&a, name, v)
			case "index":
				a.fail(mongoerr.NotImplemented, "collMod of an index is not supported")
			default:
				if !isGeneric(name) {
					a.fail(mongoerr.InvalidOptions, "unknown option to collMod: %s", name)
				}
			}
		}
		settings.check(&a)
		if a.err != nil {
			return o, a.err
		}
		return settings.options()
	})
}
