package mongoserver

import (
	"context"

	"changerelay/services/sandbox/internal/bsonkit"
	"changerelay/services/sandbox/internal/engine"
	"changerelay/services/sandbox/internal/mongoerr"
)

func createIndexes(ctx context.Context, c *call, r *reply) error {
	a := arguments{mismatch: mongoerr.TypeMismatch}
	ns, err := c.collection()
	if err != nil {
		return err
	}
	if err := c.notView(ns); err != nil {
		return err
	}
	var specs []engine.IndexSpec
	given := false
	for it := bsonkit.Iterate(c.body); it.Next(); {
		name, v := string(it.Key()), it.Value()
		switch name {
		case c.name, "commitQuorum", "ignoreUnknownIndexOptions":
		case "indexes":
			given = true
			for _, doc := range a.documents(name, v) {
				spec, err := parseIndexSpec(doc, c.collationOf(ns, nil))
				if err != nil {
					return err
				}
				specs = append(specs, spec)
			}
		default:
			if !isGeneric(name) {
				a.unknown(40415, "createIndexes", name)
			}
		}
	}
	switch {
	case !given:
		a.fail(mongoerr.FailedToParse, "The 'indexes' field is a required argument of the createIndexes command")
	case len(specs) == 0:
		a.fail(mongoerr.BadValue, "Must specify at least one index to create")
	}
	if a.err != nil {
		return a.err
	}
	built, err := c.server.engine.CreateIndexes(ctx, c.txn, ns, specs)
	if err != nil {
		return err
	}
	r.boolean("createdCollectionAutomatically", built.CollectionCreated)
	r.int32("numIndexesBefore", int32(built.Before))
	r.int32("numIndexesAfter", int32(built.After))
	if built.Before == built.After {
		r.text("note", "all indexes already exist")
	} else if c.txn == nil {
		r.text("commitQuorum", "votingMembers")
	}
	return nil
}
