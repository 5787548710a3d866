package schema

import (
	"context"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/command"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
)

func renameCollection(ctx context.Context, c *command.Call, _ *command.Reply) error {
	a := command.Arguments{Mismatch: mongoerr.TypeMismatch}
	var from, to string
	dropTarget := false
	for it := bsonkit.Iterate(c.Body); it.Next(); {
		name, v := string(it.Key()), it.Value()
		switch name {
		case c.Name:
			from = a.Text(name, v)
		case "to":
			to = a.Text(name, v)
		case "dropTarget":
			dropTarget = a.Truth(name, v)
		case "stayTemp":
		default:
			if !command.IsGeneric(name) {
				a.Unknown(40415, "renameCollection", name)
			}
		}
	}
	if to == "" {
		a.Fail(40414, "BSON field 'renameCollection.to' is missing but a required field")
	}
	source, target := a.Namespace(from), a.Namespace(to)
	if a.Err == nil && source == target && c.Server.Version.Has(5) {
		a.Fail(mongoerr.IllegalOperation, "Can't rename a collection to itself")
	}
	if a.Err != nil {
		return a.Err
	}
	if err := c.Server.Engine.Rename(ctx, source, target, dropTarget); err != nil {
		return err
	}
	endCursorsOn(c.Server, "renamed", func(of string) bool { return of == from || of == to })
	return nil
}
