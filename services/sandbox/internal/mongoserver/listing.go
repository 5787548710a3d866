package mongoserver

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"changerelay/services/sandbox/internal/access"
	"changerelay/services/sandbox/internal/bsonkit"
	"changerelay/services/sandbox/internal/engine"
	"changerelay/services/sandbox/internal/mongoerr"
	"changerelay/services/sandbox/internal/query"
)

// listArguments are those that the commands listing things share.
type listArguments struct {
	filter    bson.Raw
	nameOnly  bool
	batchSize int
	// authorized asks for those that the user may read, where given.
	authorized *bool
}

func (c *call) parseList() (listArguments, error) {
	l := listArguments{batchSize: noLimit}
	a := arguments{mismatch: mongoerr.TypeMismatch}
	for it := bsonkit.Iterate(c.body); it.Next(); {
		name, v := string(it.Key()), it.Value()
		switch name {
		case c.name:
		case "authorizedCollections", "authorizedDatabases":
			authorized := a.truth(name, v)
			l.authorized = &authorized
		case "filter":
			l.filter = a.document(name, v)
		case "nameOnly":
			l.nameOnly = a.truth(name, v)
		case "cursor":
			options := a.document(name, v)
			if _, given := bsonkit.Get(options, "batchSize"); given {
				l.batchSize = a.batchSize(options)
			}
		default:
			if !isGeneric(name) {
				a.unknown(40415, c.name, name)
			}
		}
	}
	return l, a.err
}

// matching keeps the documents that a listing's filter matches.
func (c *call) matching(filter bson.Raw, docs []bson.Raw) ([]bson.Raw, error) {
	compiled, err := query.CompileFilter(filter, c.env(nil))
	if err != nil {
		return nil, err
	}
	var kept []bson.Raw
	for _, doc := range docs {
		matches, err := compiled.Match(doc)
		if err != nil {
			return nil, err
		}
		if matches {
			kept = append(kept, doc)
		}
	}
	return kept, nil
}

func listCollections(ctx context.Context, c *call, r *reply) error {
	l, err := c.parseList()
	if err != nil {
		return err
	}
	var docs []bson.Raw
	for _, info := range c.server.engine.Collections(c.db) {
		if l.authorized == nil || !*l.authorized || c.may(access.Collection(c.db, info.NS.Collection), access.Find) {
			docs = append(docs, describeCollection(info, l.nameOnly))
		}
	}
	if docs, err = c.matching(l.filter, docs); err != nil {
		return err
	}
	ns := engine.Namespace{DB: c.db, Collection: "$cmd.listCollections"}
	return c.open(ctx, r, c.newCursor(ns, &docSource{docs: docs}), l.batchSize, false)
}

// listCollectionsPrivileges are those of listCollections. The names of the
// collections that a user may read, no privilege is needed for.
func listCollectionsPrivileges(c *call) []access.Privilege {
	if isTrue(c.body, "nameOnly") && isTrue(c.body, "authorizedCollections") {
		return nil
	}
	return []access.Privilege{{Resource: access.Database(c.db), Actions: []access.Action{access.ListCollections}}}
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
		options = emptyDocument
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

func listIndexes(ctx context.Context, c *call, r *reply) error {
	l, err := c.parseList()
	if err != nil {
		return err
	}
	ns, err := c.collection()
	if err != nil {
		return err
	}
	info, ok := c.server.engine.Collection(ns)
	if !ok {
		return mongoerr.New(mongoerr.NamespaceNotFound, "ns does not exist: %s", ns)
	}
	var docs []bson.Raw
	for _, spec := range info.Indexes {
		docs = append(docs, spec.Listed)
	}
	return c.open(ctx, r, c.newCursor(ns, &docSource{docs: docs}), l.batchSize, false)
}

func listDatabases(_ context.Context, c *call, r *reply) error {
	l, err := c.parseList()
	if err != nil {
		return err
	}
	var docs []bson.Raw
	total := int64(0)
	all := c.may(access.Cluster(), access.ListDatabases)
	if l.authorized != nil {
		if all = !*l.authorized && all; !all && !*l.authorized {
			return c.unauthorized()
		}
	}
	for _, db := range c.server.engine.Databases() {
		if !all && !c.may(access.Database(db.Name), access.Find) {
			continue
		}
		b := bsoncore.NewDocumentBuilder().AppendString("name", db.Name)
		if !l.nameOnly {
			b.AppendDouble("sizeOnDisk", float64(db.Bytes)).AppendBoolean("empty", false)
		}
		docs = append(docs, bson.Raw(b.Build()))
		total += db.Bytes
	}
	if docs, err = c.matching(l.filter, docs); err != nil {
		return err
	}
	r.openArray("databases")
	for i, doc := range docs {
		r.document(arrayKey(i), doc)
	}
	r.close()
	if !l.nameOnly {
		r.double("totalSize", float64(total))
	}
	return nil
}
