package schema

import (
	"context"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/command"
	"changerelay/services/sandbox/internal/mongodb/engine/storage"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
)

func dropIndexes(ctx context.Context, c *command.Call, r *command.Reply) error {
	a := command.Arguments{Mismatch: mongoerr.TypeMismatch}
	var wanted bson.RawValue
	for it := bsonkit.Iterate(c.Body); it.Next(); {
		name, v := string(it.Key()), it.Value()
		switch name {
		case c.Name:
		case "index":
			wanted = v
		default:
			if !command.IsGeneric(name) && !passesOver(c) {
				a.Unknown(40415, c.Name, name)
			}
		}
	}
	if a.Err != nil {
		return a.Err
	}
	ns, err := c.Collection()
	if err != nil {
		return err
	}
	if err := c.NotView(ns); err != nil {
		return err
	}
	var all bool
	before, err := c.Server.Engine.DropIndexes(ctx, ns, func(present []storage.IndexSpec) ([]string, error) {
		name, _ := wanted.StringValueOK()
		all = name == "*"
		return pickIndexes(wanted, present)
	})
	if err != nil {
		return err
	}
	r.Int32("nIndexesWas", int32(before))
	if all {
		r.Text("msg", "non-_id indexes dropped for collection")
	}
	return nil
}

// pickIndexes finds the indexes that are meant by "*", a name, several names or
// a key pattern.
func pickIndexes(wanted bson.RawValue, present []storage.IndexSpec) ([]string, error) {
	a := command.Arguments{Mismatch: mongoerr.TypeMismatch}
	var names []string
	switch wanted.Type {
	case bson.TypeString:
		name, _ := wanted.StringValueOK()
		if name == "*" {
			return allButID(present), nil
		}
		names = []string{name}
	case bson.TypeArray:
		for _, element := range a.Array("index", wanted) {
			names = append(names, a.Text("index", element))
		}
	case bson.TypeEmbeddedDocument:
		for _, spec := range present {
			if spec.HasKey(wanted.Value) {
				names = append(names, spec.Name)
			}
		}
		switch len(names) {
		case 0:
			a.Fail(mongoerr.IndexNotFound, "can't find index with key: %s", bsonkit.Describe(wanted))
		case 1:
		default:
			a.Fail(mongoerr.AmbiguousIndexKeyPattern, "%d indexes found for key: %s, identify by name instead.",
				len(names), bsonkit.Describe(wanted))
		}
	default:
		a.WrongType("index", wanted, "string, object or array")
	}
	for _, name := range names {
		if name == storage.IDIndexName {
			a.Fail(mongoerr.InvalidOptions, "cannot drop _id index")
		}
		if !slices.ContainsFunc(present, func(s storage.IndexSpec) bool { return s.Name == name }) {
			a.Fail(mongoerr.IndexNotFound, "index not found with name [%s]", name)
		}
	}
	return names, a.Err
}

func allButID(present []storage.IndexSpec) []string {
	var names []string
	for _, spec := range present {
		if spec.Name != storage.IDIndexName {
			names = append(names, spec.Name)
		}
	}
	return names
}
