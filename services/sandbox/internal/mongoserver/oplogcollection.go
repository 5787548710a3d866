package mongoserver

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/engine"
	"changerelay/services/sandbox/internal/query"
)

// oplogNamespace is where clients read the oplog.
var oplogNamespace = engine.Namespace{DB: "local", Collection: "oplog.rs"}

// oplogDocuments gives the oplog's entries that match, in natural order.
func (c *call) oplogDocuments(filter *query.Filter, hint engine.Hint) puller {
	return &oplogReader{entries: c.server.engine.OplogEntries(hint.Reverse), filter: filter}
}

type oplogReader struct {
	entries *engine.OplogCursor
	filter  *query.Filter
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
