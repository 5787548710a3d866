package data

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/command"
	"changerelay/services/sandbox/internal/mongodb/engine/oplog"
	"changerelay/services/sandbox/internal/mongodb/engine/storage"
	"changerelay/services/sandbox/internal/mongodb/query/match"
)

// oplogNamespace is where clients read the oplog.
var oplogNamespace = oplog.Namespace{DB: "local", Collection: "oplog.rs"}

// oplogDocuments gives the oplog's entries that match, in natural order.
func oplogDocuments(c *command.Call, filter *match.Filter, hint storage.Hint) command.Puller {
	return &oplogReader{entries: c.Server.Engine.OplogEntries(hint.Reverse), filter: filter}
}

type oplogReader struct {
	entries *oplog.Cursor
	filter  *match.Filter
}

func (o *oplogReader) Next() (bson.Raw, error) {
	for {
		doc, err := o.entries.Next()
		if doc == nil || err != nil {
			return nil, err
		}
		matches, err := o.filter.Match(doc)
		if err != nil {
			return nil, err
		}
		if matches {
			return doc, nil
		}
	}
}
