package mongoserver

import (
	"context"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"changerelay/services/sandbox/internal/engine"
	"changerelay/services/sandbox/internal/mongoerr"
	"changerelay/services/sandbox/internal/query/collation"
)

// maxViewDepth is how many views may stand on each other.
const maxViewDepth = 20

// notView refuses a view.
func (c *call) notView(ns engine.Namespace) error {
	if c.server.engine.Options(ns).View != nil {
		return mongoerr.New(mongoerr.CommandNotSupportedOnView, "Namespace %s is a view, not a collection", ns)
	}
	return nil
}

// resolve replaces a view by what it is made of: the collection below, and the
// stages that come before those given
// (https://www.mongodb.com/docs/v4.4/core/views/). isView is false if there was none.
func (c *call) resolve(ns engine.Namespace, stages []bson.Raw) (_ engine.Namespace, _ []bson.Raw, isView bool, err error) {
	for range maxViewDepth {
		view := c.server.engine.Options(ns).View
		if view == nil {
			return ns, stages, isView, nil
		}
		isView = true
		stages = slices.Concat(view.Pipeline, stages)
		ns.Collection = view.On
	}
	return ns, nil, false, mongoerr.New(mongoerr.ViewDepthLimitExceeded, "View depth too deep or view cycle detected; maximum depth is %d", maxViewDepth)
}

// throughView gives the documents of a view that stages leave; nil if the
// namespace is no view.
func (c *call) throughView(
	ctx context.Context, ns engine.Namespace, by *collation.Collation, stages ...bson.Raw,
) (source, error) {
	below, stages, isView, err := c.resolve(ns, stages)
	if err != nil || !isView {
		return nil, err
	}
	return c.aggregateSource(ctx, aggregation{ns: below, stages: stages, collation: by})
}

// stageOf makes a stage with a document; nil for an empty one.
func stageOf(name string, argument bson.Raw) []bson.Raw {
	if len(argument) <= len(emptyDocument) {
		return nil
	}
	return []bson.Raw{bson.Raw(bsoncore.NewDocumentBuilder().AppendDocument(name, bsoncore.Document(argument)).Build())}
}

// countStage makes a stage with a number; nil for 0.
func countStage(name string, n int64) []bson.Raw {
	if n == 0 {
		return nil
	}
	return []bson.Raw{bson.Raw(bsoncore.NewDocumentBuilder().AppendInt64(name, n).Build())}
}

// stages are a find on a view as a pipeline.
func (f findArguments) stages() []bson.Raw {
	return slices.Concat(stageOf("$match", f.filter), stageOf("$sort", f.sort), countStage("$skip", f.skip),
		countStage("$limit", f.limit), stageOf("$project", f.projection))
}

// pulls makes a source a puller.
type pulls struct{ source }

func (p pulls) Next() (bson.Raw, error) { return p.next() }
