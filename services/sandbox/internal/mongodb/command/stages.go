package command

import (
	"context"
	"iter"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/engine/oplog"
	"changerelay/services/sandbox/internal/mongodb/engine/storage"
	"changerelay/services/sandbox/internal/mongodb/query"
	"changerelay/services/sandbox/internal/mongodb/query/collation"
	"changerelay/services/sandbox/internal/mongodb/query/expression"
	"changerelay/services/sandbox/internal/mongodb/query/match"
)

// OpensStream tells a pipeline that begins with $changeStream.
func OpensStream(stages []bson.Raw) bool { return StageName(FirstStage(stages)) == "$changeStream" }

// opensStream tells an aggregate that opens a change stream.
func (c *Call) opensStream() bool {
	if c.Name != "aggregate" {
		return false
	}
	it := bsonkit.Iterate(ArrayOf(c.Body, "pipeline"))
	if !it.Next() {
		return false
	}
	first, _ := it.Value().DocumentOK()
	return StageName(first) == "$changeStream"
}

// writesOut tells an aggregate that writes what comes out of it.
func (c *Call) writesOut() bool {
	last := bson.Raw(bsonkit.Empty)
	for it := bsonkit.Iterate(ArrayOf(c.Body, "pipeline")); it.Next(); {
		last, _ = it.Value().DocumentOK()
	}
	return IsOutStage(StageName(last))
}

// FirstStage is nil for a pipeline without stages.
func FirstStage(stages []bson.Raw) bson.Raw {
	if len(stages) == 0 {
		return nil
	}
	return stages[0]
}

// StageName is the name of a stage, empty for a document without fields.
func StageName(stage bson.Raw) string {
	it := bsonkit.Iterate(stage)
	it.Next()
	return string(it.Key())
}

// Through runs documents of the server's own through a pipeline.
func (c *Call) Through(ctx context.Context, stages []bson.Raw, docs Puller) (Source, error) {
	pipeline, err := query.CompileAggregation(stages, query.PipelineEnv{Env: c.Env(nil)})
	if err != nil {
		return nil, err
	}
	return Pull(pipeline.Run(ctx, Each(docs))), nil
}

// Foreign gives a pipeline the other collections and views of its database. Views
// must have the collation of the pipeline.
func (c *Call) Foreign(db string, by *collation.Collation) func(context.Context, string, *match.Filter) iter.Seq2[bson.Raw, error] {
	return func(ctx context.Context, name string, filter *match.Filter) iter.Seq2[bson.Raw, error] {
		return func(yield func(bson.Raw, error) bool) {
			docs, err := c.foreign(ctx, oplog.Namespace{DB: db, Collection: name}, filter, by)
			if err != nil {
				yield(nil, err)
				return
			}
			docs(yield)
		}
	}
}

// foreign gives the documents of a collection or a view that match a filter, nil
// for none.
func (c *Call) foreign(ctx context.Context, ns oplog.Namespace, filter *match.Filter, by *collation.Collation) (iter.Seq2[bson.Raw, error], error) {
	below, stages, isView, err := c.Resolve(ns, nil)
	if err != nil {
		return nil, err
	}
	if !isView {
		return c.documents(ns, filter)
	}
	if by == nil {
		by = &collation.Collation{}
	}
	if _, err := c.CollationOfView(ns, by); err != nil {
		return nil, err
	}
	env := c.Env(nil)
	env.Collation = by
	pipeline, err := query.CompilePipeline(stages, query.PipelineEnv{Env: env, Collection: c.Foreign(ns.DB, by)})
	if err != nil {
		return nil, err
	}
	first, rest := pipeline.LeadingMatch()
	if len(rest.Stages()) == 0 { // an index may serve the filter
		return c.documents(below, match.All(first, filter))
	}
	docs, err := c.documents(below, first)
	if err != nil {
		return nil, err
	}
	return matching(filter, rest.Run(ctx, docs)), nil
}

// matching leaves those that match the filter, nil for all.
func matching(filter *match.Filter, docs iter.Seq2[bson.Raw, error]) iter.Seq2[bson.Raw, error] {
	return func(yield func(bson.Raw, error) bool) {
		for doc, err := range docs {
			matches := false
			if err == nil {
				matches, err = filter.Match(doc)
			}
			if (matches || err != nil) && !yield(doc, err) || err != nil {
				return
			}
		}
	}
}

// documents gives those of a collection that match a filter, nil for none.
func (c *Call) documents(ns oplog.Namespace, filter *match.Filter) (iter.Seq2[bson.Raw, error], error) {
	if filter == nil {
		var err error
		if filter, err = match.Compile(nil, expression.Env{}); err != nil {
			return nil, err
		}
	}
	view, err := c.View(ns)
	if err != nil {
		return nil, err
	}
	docs, err := view.Documents(filter, nil, storage.Hint{})
	if err != nil {
		return nil, err
	}
	docs.Interrupted = c.Interrupted
	return Each(docs), nil
}

// Each turns documents that are pulled into a sequence.
func Each(docs Puller) iter.Seq2[bson.Raw, error] {
	return func(yield func(bson.Raw, error) bool) {
		for {
			doc, err := docs.Next()
			if doc == nil && err == nil {
				return
			}
			if !yield(doc, err) || err != nil {
				return
			}
		}
	}
}

// Pull turns a sequence into a source.
func Pull(docs iter.Seq2[bson.Raw, error]) Source {
	next, stop := iter.Pull2(docs)
	return &pulled{next: next, stop: stop}
}

type pulled struct {
	next func() (bson.Raw, error, bool)
	stop func()
}

func (p *pulled) Next() (bson.Raw, error) {
	doc, err, ok := p.next()
	if !ok {
		return nil, nil
	}
	return doc, err
}

func (p *pulled) Exhausted() bool { return false }

func (p *pulled) Close() { p.stop() }

// IsOutStage tells the stages that store what a pipeline makes.
func IsOutStage(name string) bool { return name == "$out" || name == "$merge" }

// EachStage visits every field of every stage.
func EachStage(pipeline bson.Raw, visit func(name string, stage bson.RawValue)) {
	for it := bsonkit.Iterate(pipeline); it.Next(); {
		stage, _ := it.Value().DocumentOK()
		for fields := bsonkit.Iterate(stage); fields.Next(); {
			visit(string(fields.Key()), fields.Value())
		}
	}
}

// Matching keeps the documents that a listing's filter matches.
func (c *Call) Matching(filter bson.Raw, docs []bson.Raw) ([]bson.Raw, error) {
	compiled, err := match.Compile(filter, c.Env(nil))
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

// Puller gives documents one by one, nil at the end.
type Puller interface{ Next() (bson.Raw, error) }
