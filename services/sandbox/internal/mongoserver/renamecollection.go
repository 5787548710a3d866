package mongoserver

import (
	"context"
	"strings"

	"changerelay/services/sandbox/internal/bsonkit"
	"changerelay/services/sandbox/internal/engine"
	"changerelay/services/sandbox/internal/mongoerr"
)

func renameCollection(ctx context.Context, c *call, _ *reply) error {
	a := arguments{mismatch: mongoerr.TypeMismatch}
	var from, to string
	dropTarget := false
	for it := bsonkit.Iterate(c.body); it.Next(); {
		name, v := string(it.Key()), it.Value()
		switch name {
		case c.name:
			from = a.text(name, v)
		case "to":
			to = a.text(name, v)
		case "dropTarget":
			dropTarget = a.truth(name, v)
		case "stayTemp":
		default:
			if !isGeneric(name) {
				a.unknown(40415, "renameCollection", name)
			}
		}
	}
	if to == "" {
		a.fail(40414, "BSON field 'renameCollection.to' is missing but a required field")
	}
	source, target := a.namespace(from), a.namespace(to)
	if a.err != nil {
		return a.err
	}
	if err := c.server.engine.Rename(ctx, source, target, dropTarget); err != nil {
		return err
	}
	c.server.killCursorsOn(func(of string) bool { return of == from || of == to })
	return nil
}

// namespace takes a full collection name apart.
func (a *arguments) namespace(full string) engine.Namespace {
	db, collection, ok := strings.Cut(full, ".")
	ns := engine.Namespace{DB: db, Collection: collection}
	if !ok || ns.Validate() != nil {
		a.fail(mongoerr.InvalidNamespace, "Invalid namespace specified '%s'", full)
	}
	return ns
}
