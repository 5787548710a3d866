package schema

import (
	"bytes"
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/command"
	"changerelay/services/sandbox/internal/mongodb/engine"
	"changerelay/services/sandbox/internal/mongodb/engine/storage"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
)

func create(ctx context.Context, c *command.Call, r *command.Reply) error {
	a := command.Arguments{Mismatch: mongoerr.TypeMismatch}
	localOnly(&a, c)
	var settings collectionSettings
	noted, bare := false, false
	var idIndex bson.RawValue
	for it := bsonkit.Iterate(c.Body); it.Next(); {
		name, v := string(it.Key()), it.Value()
		if command.Absent(v) && name != c.Name {
			continue
		}
		if optionOf(c.Server.Version, name) && settings.read(&a, name, v) {
			continue
		}
		switch name {
		case c.Name, "writeConcern":
		case "idIndex":
			idIndex = v
		case "autoIndexId":
			bare = !a.Truth(name, v)
			noted = true
		default:
			if !command.IsGeneric(name) {
				a.Unknown(40415, "create", name)
			}
		}
	}
	settings.check(&a)
	checkIDIndex(&a, c, idIndex, settings, noted)
	settings.refuseIn(&a, c.DB)
	if settings.validator != nil && (c.DB == "admin" || c.DB == "config" || c.DB == "local") {
		a.Fail(mongoerr.InvalidOptions, "Document validators are not allowed on collections in the %s database", c.DB)
	}
	switch {
	case settings.viewOn != "":
	case settings.pipeline != nil && c.Server.Version.Has(5):
		a.Fail(mongoerr.InvalidOptions, "'pipeline' requires 'viewOn' to also be specified")
	case len(settings.pipeline) > 0:
		a.Fail(mongoerr.BadValue, "'pipeline' cannot be specified without 'viewOn'")
	}
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
	if bare && c.DB != "local" {
		return mongoerr.New(50001, "autoIndexId:false is not allowed for collection %s because it can be replicated", ns)
	}
	options, err := settings.options()
	if err != nil {
		return err
	}
	if noted {
		r.Text("note", "The autoIndexId option is deprecated and will be removed in a future release")
	}
	return c.Server.Engine.CreateCollection(ctx, c.Txn, ns, options)
}

// checkIDIndex refuses what cannot be the index of _id.
func checkIDIndex(a *command.Arguments, c *command.Call, given bson.RawValue, settings collectionSettings, automatic bool) {
	if given.Type == 0 {
		return
	}
	doc := a.Document("idIndex", given)
	switch {
	case a.Err != nil:
		return
	case settings.viewOn != "":
		a.Fail(mongoerr.InvalidOptions, "'idIndex' is not allowed with 'viewOn'")
		return
	case automatic:
		a.Fail(mongoerr.InvalidOptions, "'idIndex' is not allowed with 'autoIndexId'")
		return
	}
	if own, given := bsonkit.Get(doc, "collation"); given && !bytes.Equal(collationSetting(a, own).Spec(), settings.by.Spec()) {
		a.Fail(mongoerr.BadValue, "'idIndex' must have the same collation as the collection.")
		return
	}
	switch spec, err := parseIndexSpec(c.Server.Version, doc, settings.by, false); {
	case err != nil:
		a.Err = err
	case spec.Name != storage.IDIndexName:
		a.Fail(mongoerr.BadValue, "The field 'key' for an _id index must be {_id: 1}, but got %s", bsonkit.Describe(bsonkit.Document(spec.Key())))
	}
}

// localOnly refuses to make something in a transaction with another read concern
// than local.
func localOnly(a *command.Arguments, c *command.Call) {
	if c.Txn != nil && c.Txn.Level != "" && c.Txn.Level != "local" {
		a.Fail(mongoerr.InvalidOptions, "Command %s does not support this transaction's readConcern { level: %q }", c.Name, c.Txn.Level)
	}
}
