package watch

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// Changes watches a source whose changes are its events.
type Changes struct{ run func(context.Context) error }

// OpenChanges begins to watch the collection, which must keep images; writes before the
// call are not seen. each is called for every change, in order, with the document before
// and after it; the change is each's until it returns.
func OpenChanges(ctx context.Context, collection *mongo.Collection, each func(bson.Raw)) (*Changes, error) {
	run, err := follow(ctx, collection, func(c change) { each(c.raw) }, func(o *options.ChangeStreamOptionsBuilder) {
		o.SetFullDocument(options.Required).SetFullDocumentBeforeChange(options.Required)
	})
	return &Changes{run: run}, err
}

// Run gathers changes until ctx ends.
func (c *Changes) Run(ctx context.Context) error { return c.run(ctx) }
