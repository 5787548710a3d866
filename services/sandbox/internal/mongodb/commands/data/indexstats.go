package data

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/command"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
)

// indexStatsSource tells how often each index has been used
// (https://www.mongodb.com/docs/v4.4/reference/operator/aggregation/indexStats/).
func indexStatsSource(ctx context.Context, c *command.Call, g aggregation) (command.Source, error) {
	if given, _ := bsonkit.Get(g.stages[0], "$indexStats"); given.Type != bson.TypeEmbeddedDocument || len(given.Value) > len(bsonkit.Empty) {
		return nil, mongoerr.New(28803, "The $indexStats stage specification must be an empty object")
	}
	if err := c.NotView(g.ns); err != nil {
		return nil, err
	}
	info, _ := c.Server.Engine.Collection(g.ns)
	var docs []bson.Raw
	for _, spec := range info.Indexes {
		r := command.NewReply()
		r.Text("name", spec.Name)
		r.Document("key", spec.Key())
		r.Text("host", c.Address())
		r.OpenDocument("accesses")
		r.Int64("ops", info.Uses[spec.Name])
		r.Date("since", c.Server.Started.UnixMilli())
		r.Close()
		r.Document("spec", spec.Listed)
		r.Close()
		docs = append(docs, r.Doc)
	}
	return c.Through(ctx, g.stages[1:], &command.DocSource{Docs: docs})
}

// validate finds nothing wrong: indexes are made in the same moment as their
// documents.
func validate(_ context.Context, c *command.Call, r *command.Reply) error {
	ns, err := c.Collection()
	if err != nil {
		return err
	}
	if err := c.NotView(ns); err != nil {
		return err
	}
	info, there := c.Server.Engine.Collection(ns)
	if !there {
		return mongoerr.New(mongoerr.NamespaceNotFound, "Collection '%s' does not exist to validate.", ns)
	}
	if command.IsTrue(c.Body, "full") && command.IsTrue(c.Body, "background") {
		return mongoerr.New(mongoerr.CommandNotSupported,
			"Running the validate command with both { background: true } and { full: true } is not supported.")
	}
	r.Text("ns", ns.String())
	r.Int32("nInvalidDocuments", 0)
	r.Number("nrecords", int64(info.Count))
	r.Int32("nIndexes", int32(len(info.Indexes)))
	r.OpenDocument("keysPerIndex")
	for _, spec := range info.Indexes {
		r.Number(spec.Name, info.Keys[spec.Name])
	}
	r.Close()
	r.OpenDocument("indexDetails")
	for _, spec := range info.Indexes {
		r.OpenDocument(spec.Name)
		r.Boolean("valid", true)
		r.Close()
	}
	r.Close()
	r.Boolean("valid", true)
	for _, name := range []string{"warnings", "errors", "extraIndexEntries", "missingIndexEntries"} {
		r.Strings(name, nil)
	}
	return nil
}
