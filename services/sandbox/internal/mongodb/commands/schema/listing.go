package schema

import (
	"context"
	"slices"
	"strings"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"changerelay/services/sandbox/internal/mongodb/access"
	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/command"
	"changerelay/services/sandbox/internal/mongodb/engine"
	"changerelay/services/sandbox/internal/mongodb/engine/oplog"
	"changerelay/services/sandbox/internal/mongodb/engine/storage"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
)

// listArguments are those that the commands listing things share.
type listArguments struct {
	filter    bson.Raw
	nameOnly  bool
	batchSize int
	// authorized asks for those that the user may read, where given.
	authorized *bool
}

func parseList(c *command.Call) (listArguments, error) {
	l := listArguments{batchSize: command.NoLimit}
	a := command.Arguments{Mismatch: mongoerr.TypeMismatch}
	for it := bsonkit.Iterate(c.Body); it.Next(); {
		name, v := string(it.Key()), it.Value()
		switch name {
		case c.Name:
		case "authorizedCollections", "authorizedDatabases":
			authorized := a.Truth(name, v)
			l.authorized = &authorized
		case "filter":
			if c.Name == "listCollections" && !c.Server.Version.Has(5) && v.Type != bson.TypeEmbeddedDocument {
				a.Fail(mongoerr.BadValue, "\"filter\" must be an object")
			}
			l.filter = a.Document(name, v)
		case "nameOnly":
			l.nameOnly = a.Truth(name, v)
		case "cursor":
			options := a.Document(name, v)
			size := a.BatchSize(options)
			if _, given := bsonkit.Get(options, "batchSize"); given {
				l.batchSize = size
			}
		default:
			if !command.IsGeneric(name) && !passesOver(c) {
				a.Unknown(40415, c.Name, name)
			}
		}
	}
	return l, a.Err
}

// passesOver tells a command that looks at no field that it does not know, as
// those that were declared (IDL) with 5.0 did before.
func passesOver(c *command.Call) bool { return !c.Server.Version.Has(5) && c.Name != "listDatabases" }

func listCollections(ctx context.Context, c *command.Call, r *command.Reply) error {
	l, err := parseList(c)
	if err != nil {
		return err
	}
	var docs []bson.Raw
	for _, info := range withViews(c.DB, c.Server.Engine.Collections(c.DB)) {
		if l.authorized == nil || !*l.authorized || c.May(access.Collection(c.DB, info.NS.Collection), access.Find) {
			docs = append(docs, describeCollection(info, l.nameOnly))
		}
	}
	if docs, err = c.Matching(l.filter, docs); err != nil {
		return err
	}
	ns := oplog.Namespace{DB: c.DB, Collection: "$cmd.listCollections"}
	return c.Open(ctx, r, c.NewCursor(ns, &command.DocSource{Docs: docs}), l.batchSize, false)
}

// withViews adds the collection that a database with views has of them.
func withViews(db string, infos []engine.CollectionInfo) []engine.CollectionInfo {
	if !slices.ContainsFunc(infos, func(info engine.CollectionInfo) bool { return info.Options.View != nil }) {
		return infos
	}
	return append(infos, engine.CollectionInfo{
		NS:      oplog.Namespace{DB: db, Collection: "system.views"},
		UUID:    uuid.NewSHA1(uuid.NameSpaceOID, []byte(db)),
		Indexes: []storage.IndexSpec{storage.IDIndex()},
	})
}

// listCollectionsPrivileges are those of listCollections. The names of the
// collections that a user may read, no privilege is needed for.
func listCollectionsPrivileges(c *command.Call) []access.Privilege {
	if command.IsTrue(c.Body, "nameOnly") && command.IsTrue(c.Body, "authorizedCollections") {
		return nil
	}
	return []access.Privilege{{Resource: access.Database(c.DB), Actions: []access.Action{access.ListCollections}}}
}

func describeCollection(info engine.CollectionInfo, nameOnly bool) bson.Raw {
	kind := "collection"
	if info.Options.View != nil {
		kind = "view"
	}
	b := bsoncore.NewDocumentBuilder().
		AppendString("name", info.NS.Collection).
		AppendString("type", kind)
	if nameOnly {
		return bson.Raw(b.Build())
	}
	options := info.Options.Listed
	if options == nil {
		options = bsonkit.Empty
	}
	b.AppendDocument("options", options)
	if info.Options.View != nil {
		return bson.Raw(b.StartDocument("info").AppendBoolean("readOnly", true).FinishDocument().Build())
	}
	b.
		StartDocument("info").
		AppendBoolean("readOnly", false).
		AppendBinary("uuid", bson.TypeBinaryUUID, info.UUID[:]).
		FinishDocument().
		AppendDocument("idIndex", info.Indexes[0].Listed)
	return bson.Raw(b.Build())
}

func listIndexes(ctx context.Context, c *command.Call, r *command.Reply) error {
	l, err := parseList(c)
	if err != nil {
		return err
	}
	ns, err := c.Collection()
	if err != nil {
		return err
	}
	if err := c.NotView(ns); err != nil {
		return err
	}
	info, ok := c.Server.Engine.Collection(ns)
	if !ok {
		return mongoerr.New(mongoerr.NamespaceNotFound, "ns does not exist: %s", ns)
	}
	var docs []bson.Raw
	for _, spec := range info.Indexes {
		docs = append(docs, spec.Listed)
	}
	return c.Open(ctx, r, c.NewCursor(ns, &command.DocSource{Docs: docs}), l.batchSize, false)
}

func listDatabases(_ context.Context, c *command.Call, r *command.Reply) error {
	l, err := parseList(c)
	if err != nil {
		return err
	}
	var docs []bson.Raw
	total := 0.0
	all := c.May(access.Cluster(), access.ListDatabases)
	if l.authorized != nil {
		if all = !*l.authorized && all; !all && !*l.authorized {
			return c.Unauthorized()
		}
	}
	for _, db := range withOwnDatabases(c.Server.Engine.Databases()) {
		if !all && !c.May(access.Database(db.Name), access.Find) {
			continue
		}
		b := bsoncore.NewDocumentBuilder().AppendString("name", db.Name)
		if !l.nameOnly {
			b.AppendDouble("sizeOnDisk", float64(db.Bytes)).AppendBoolean("empty", false)
		}
		docs = append(docs, bson.Raw(b.Build()))
	}
	if docs, err = c.Matching(l.filter, docs); err != nil {
		return err
	}
	r.OpenArray("databases")
	for i, doc := range docs {
		size, _ := bsonkit.Get(doc, "sizeOnDisk")
		bytes, _ := size.DoubleOK()
		total += bytes
		r.Document(bsonkit.ArrayKey(i), doc)
	}
	r.Close()
	if !l.nameOnly {
		r.Double("totalSize", total)
	}
	return nil
}

// ownDatabaseBytes stands for the size of a server's own database.
const ownDatabaseBytes = 4096

// withOwnDatabases adds those that every member has, whether or not anything
// else is in them.
func withOwnDatabases(infos []engine.DatabaseInfo) []engine.DatabaseInfo {
	for _, name := range []string{"admin", "config", "local"} {
		at, there := slices.BinarySearchFunc(infos, name, func(info engine.DatabaseInfo, name string) int {
			return strings.Compare(info.Name, name)
		})
		if !there {
			infos = slices.Insert(infos, at, engine.DatabaseInfo{Name: name, Bytes: ownDatabaseBytes})
		}
	}
	return infos
}
