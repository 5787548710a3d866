package mongoserver

import (
	"context"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/bsonkit"
	"changerelay/services/sandbox/internal/engine"
	"changerelay/services/sandbox/internal/mongoerr"
)

func dropIndexes(ctx context.Context, c *call, r *reply) error {
	a := arguments{mismatch: mongoerr.TypeMismatch}
	var wanted bson.RawValue
	for it := bsonkit.Iterate(c.body); it.Next(); {
		name, v := string(it.Key()), it.Value()
		switch name {
		case c.name:
		case "index":
			wanted = v
		default:
			if !isGeneric(name) {
				a.unknown(40415, c.name, name)
			}
		}
	}
	if a.err != nil {
		return a.err
	}
	ns, err := c.collection()
	if err != nil {
		return err
	}
	before, err := c.server.engine.DropIndexes(ctx, ns, func(present []engine.IndexSpec) ([]string, error) {
		return pickIndexes(wanted, present)
	})
	if err != nil {
		return err
	}
	r.int32("nIndexesWas", int32(before))
	return nil
}

// pickIndexes finds the indexes that are meant by "*", a name, several names or
// a key pattern.
func pickIndexes(wanted bson.RawValue, present []engine.IndexSpec) ([]string, error) {
	a := arguments{mismatch: mongoerr.TypeMismatch}
	var names []string
	switch wanted.Type {
	case bson.TypeString:
		name, _ := wanted.StringValueOK()
		if name == "*" {
			return allButID(present), nil
		}
		names = []string{name}
	case bson.TypeArray:
		for _, element := range a.array("index", wanted) {
			names = append(names, a.text("index", element))
		}
	case bson.TypeEmbeddedDocument:
		fields := engine.FieldsOf(wanted.Value)
		for _, spec := range present {
			if slices.Equal(spec.Fields, fields) {
				names = append(names, spec.Name)
			}
		}
		if names == nil {
			a.fail(mongoerr.IndexNotFound, "can't find index with key: %s", bson.Raw(wanted.Value))
		}
	default:
		a.wrongType("index", wanted, "string, object or array")
	}
	for _, name := range names {
		if name == engine.IDIndexName {
			a.fail(mongoerr.InvalidOptions, "cannot drop _id index")
		}
		if !slices.ContainsFunc(present, func(s engine.IndexSpec) bool { return s.Name == name }) {
			a.fail(mongoerr.IndexNotFound, "index not found with name [%s]", name)
		}
	}
	return names, a.err
}

func allButID(present []engine.IndexSpec) []string {
	var names []string
	for _, spec := range present {
		if spec.Name != engine.IDIndexName {
			names = append(names, spec.Name)
		}
	}
	return names
}
