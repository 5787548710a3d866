package data

import (
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/command"
	"changerelay/services/sandbox/internal/mongodb/query/match"
)

// viewsCollection has what the views of a database are made of.
const viewsCollection = "system.views"

// viewDocuments are those of that collection that match the filter.
func viewDocuments(c *command.Call, db string, filter *match.Filter) (*command.DocSource, error) {
	views := &command.DocSource{}
	for _, info := range c.Server.Engine.Collections(db) {
		if info.Options.View == nil {
			continue
		}
		b := bsoncore.NewDocumentBuilder().AppendString("_id", info.NS.String())
		for it := bsonkit.Iterate(info.Options.Listed); it.Next(); {
			b.AppendValue(string(it.Key()), bsoncore.Value{Type: bsoncore.Type(it.Value().Type), Data: it.Value().Value})
		}
		doc := bson.Raw(b.Build())
		matches, err := filter.Match(doc)
		if err != nil {
			return nil, err
		}
		if matches {
			views.Docs = append(views.Docs, doc)
		}
	}
	return views, nil
}
