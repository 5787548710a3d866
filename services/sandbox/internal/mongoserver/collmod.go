package mongoserver

import (
	"context"

	"changerelay/services/sandbox/internal/bsonkit"
	"changerelay/services/sandbox/internal/engine"
	"changerelay/services/sandbox/internal/mongoerr"
)

// collMod changes a collection's validator.
func collMod(ctx context.Context, c *call, _ *reply) error {
	ns, err := c.collection()
	if err != nil {
		return err
	}
	return c.server.engine.SetOptions(ctx, ns, func(o engine.CollectionOptions) (engine.CollectionOptions, error) {
		a := arguments{mismatch: mongoerr.TypeMismatch}
		validation := validationOf(o)
		for it := bsonkit.Iterate(c.body); it.Next(); {
			name, v := string(it.Key()), it.Value()
			switch name {
			case c.name:
			case "validator", "validationLevel", "validationAction":
				validation.read(&a, name, v)
			case "index":
				a.fail(mongoerr.NotImplemented, "collMod of an index is not supported")
			default:
				if !isGeneric(name) {
					a.fail(mongoerr.InvalidOptions, "unknown option to collMod: %s", name)
				}
			}
		}
		if a.err != nil {
			return o, a.err
		}
		return validation.options()
	})
}
