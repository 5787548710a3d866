package mongoserver

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"changerelay/services/sandbox/internal/bsonkit"
	"changerelay/services/sandbox/internal/engine"
	"changerelay/services/sandbox/internal/mongoerr"
)

func create(ctx context.Context, c *call, _ *reply) error {
	a := arguments{mismatch: mongoerr.TypeMismatch}
	var validation validation
	for it := bsonkit.Iterate(c.body); it.Next(); {
		name, v := string(it.Key()), it.Value()
		switch name {
		case c.name, "autoIndexId", "idIndex", "indexOptionDefaults", "storageEngine", "writeConcern":
		case "validator", "validationLevel", "validationAction":
			validation.read(&a, name, v)
		case "collation":
			a.collation(v, true)
		case "capped":
			if a.truth(name, v) {
				a.fail(mongoerr.NotImplemented, "capped collections are not supported")
			}
		case "size", "max":
			// They matter to capped collections only.
		case "viewOn", "pipeline":
			a.fail(mongoerr.NotImplemented, "views are not supported")
		default:
			if !isGeneric(name) {
				a.unknown(40415, "create", name)
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
	options, err := validation.options()
	if err != nil {
		return err
	}
	return c.server.engine.CreateCollection(ctx, c.txn, ns, options)
}

// validation are the options of a collection's validator.
type validation struct {
	validator     bson.Raw
	level, action string
}

func (v *validation) read(a *arguments, name string, value bson.RawValue) {
	switch name {
	case "validator":
		v.validator = a.document(name, value)
	case "validationLevel":
		v.level = a.text(name, value)
		if v.level != "off" && v.level != "strict" && v.level != "moderate" {
			a.fail(mongoerr.BadValue, "Enumeration value '%s' for field 'validationLevel' is not a valid value.", v.level)
		}
	case "validationAction":
		v.action = a.text(name, value)
		if v.action != "error" && v.action != "warn" {
			a.fail(mongoerr.BadValue, "Enumeration value '%s' for field 'validationAction' is not a valid value.", v.action)
		}
	}
}

// options makes a collection's options of them.
func (v validation) options() (engine.CollectionOptions, error) {
	b := bsoncore.NewDocumentBuilder()
	if len(v.validator) > len(emptyDocument) {
		b.AppendDocument("validator", v.validator)
	}
	if v.level != "" {
		b.AppendString("validationLevel", v.level)
	}
	if v.action != "" {
		b.AppendString("validationAction", v.action)
	}
	listed := bson.Raw(b.Build())
	if len(listed) <= len(emptyDocument) {
		return engine.CollectionOptions{}, nil
	}
	return engine.NewCollectionOptions(listed)
}

// validationOf reads back what options has written.
func validationOf(o engine.CollectionOptions) validation {
	var v validation
	a := arguments{mismatch: mongoerr.TypeMismatch}
	for it := bsonkit.Iterate(o.Listed); it.Next(); {
		v.read(&a, string(it.Key()), it.Value())
	}
	return v
}
