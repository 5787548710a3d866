package schema

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/command"
	"changerelay/services/sandbox/internal/mongodb/engine/storage"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
)

func createIndexes(ctx context.Context, c *command.Call, r *command.Reply) error {
	a := command.Arguments{Mismatch: mongoerr.TypeMismatch}
	localOnly(&a, c)
	ns, err := c.Collection()
	if err != nil {
		return err
	}
	if err := c.NotView(ns); err != nil {
		return err
	}
	var specs []storage.IndexSpec
	var wanted bson.RawValue
	given := false
	lenient := ignoresUnknown(&a, c.Body)
	for it := bsonkit.Iterate(c.Body); it.Next(); {
		name, v := string(it.Key()), it.Value()
		switch name {
		case c.Name, "ignoreUnknownIndexOptions":
		case "commitQuorum":
			wanted = v
		case "indexes":
			given = true
			docs := a.Documents(name, v)
			if a.Err != nil {
				return a.Err
			}
			for _, doc := range docs {
				spec, err := parseIndexSpec(c.Server.Version, doc, c.CollationOf(ns, nil), lenient)
				if err != nil {
					return err
				}
				specs = append(specs, spec)
			}
		default:
			if !command.IsGeneric(name) {
				unknownArgument(&a, c, name)
			}
		}
	}
	switch {
	case !given:
		a.Fail(mongoerr.FailedToParse, "The 'indexes' field is a required argument of the createIndexes command")
	case len(specs) == 0:
		a.Fail(mongoerr.BadValue, "Must specify at least one index to create")
	}
	quorum := anyVoting()
	if wanted.Type != 0 {
		quorum = parseCommitQuorum(&a, wanted)
	}
	if a.Err != nil {
		return a.Err
	}
	if err := quorum.satisfiable(c, ns, specs); err != nil {
		return err
	}
	built, err := c.Server.Engine.CreateIndexes(ctx, c.Txn, ns, specs)
	if err != nil {
		return err
	}
	if built.Before < built.After || built.CollectionCreated {
		r.Boolean("createdCollectionAutomatically", built.CollectionCreated)
	}
	r.Int32("numIndexesBefore", int32(built.Before))
	r.Int32("numIndexesAfter", int32(built.After))
	switch {
	case built.Before == built.After:
		r.Text("note", "all indexes already exist")
		return nil
	case built.Present:
		r.Text("note", "index already exists")
	}
	if c.Txn == nil {
		r.Value("commitQuorum", quorum.value)
	}
	return nil
}

// ignoresUnknown reports that fields of an index which there are not are to be
// left out.
func ignoresUnknown(a *command.Arguments, body bson.Raw) bool {
	v, given := bsonkit.Get(body, "ignoreUnknownIndexOptions")
	return given && a.Boolean("ignoreUnknownIndexOptions", v)
}

func unknownArgument(a *command.Arguments, c *command.Call, name string) {
	if c.Server.Version.Has(5) {
		a.Unknown(40415, "createIndexes", name)
		return
	}
	a.Fail(mongoerr.BadValue, "Invalid field specified for createIndexes command: %s", name)
}
