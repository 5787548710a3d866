package mongoserver

import (
	"context"
	"iter"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/bsonkit"
	"changerelay/services/sandbox/internal/engine"
	"changerelay/services/sandbox/internal/mongoerr"
	"changerelay/services/sandbox/internal/query"
)

// aggregation are the arguments of aggregate.
type aggregation struct {
	// ns has no collection for {aggregate: 1}.
	ns        engine.Namespace
	stages    []bson.Raw
	batchSize int
	hint      engine.Hint
}

func aggregate(ctx context.Context, c *call, r *reply) error {
	g, err := c.parseAggregate()
	if err != nil {
		return err
	}
	for i, stage := range g.stages {
		if stageName(stage) != "$changeStream" {
			continue
		}
		if i > 0 {
			return mongoerr.New(40602, "$changeStream is only valid as the first stage in a pipeline.")
		}
		return c.watch(ctx, r, g)
	}
	if g.ns.Collection == "" && stageName(firstStage(g.stages)) == "$listLocalSessions" {
		return c.aggregateSessions(ctx, r, g)
	}
	if g.ns.Collection == "" {
		return mongoerr.New(mongoerr.InvalidNamespace,
			"{aggregate: 1} is not valid for '%s'; a collection is required.", stageName(firstStage(g.stages)))
	}
	src, err := c.aggregateSource(ctx, g)
	if err != nil {
		return err
	}
	return c.open(ctx, r, c.newCursor(g.ns, src), g.batchSize, false)
}

func firstStage(stages []bson.Raw) bson.Raw {
	if len(stages) == 0 {
		return nil
	}
	return stages[0]
}

func stageName(stage bson.Raw) string {
	it := bsonkit.Iterate(stage)
	it.Next()
	return string(it.Key())
}

func (c *call) parseAggregate() (aggregation, error) {
	g := aggregation{batchSize: firstBatch}
	a := arguments{mismatch: mongoerr.TypeMismatch}
	hasPipeline, hasCursor := false, false
	var collation bson.RawValue
	for it := bsonkit.Iterate(c.body); it.Next(); {
		name, v := string(it.Key()), it.Value()
		switch name {
		case c.name:
			g.ns = a.aggregateNamespace(c.db, v)
		case "pipeline":
			g.stages, hasPipeline = a.documents(name, v), true
		case "cursor":
			hasCursor = true
			g.batchSize = a.batchSize(a.document(name, v))
		case "allowDiskUse", "bypassDocumentValidation":
		case "hint":
			g.hint = a.hint(name, v)
		case "collation":
			collation = v
		case "explain":
			a.fail(mongoerr.NotImplemented, "aggregate with explain is not supported")
		default:
			if !isGeneric(name) {
				a.fail(mongoerr.FailedToParse, "unrecognized field '%s'", name)
			}
		}
	}
	if collation.Type != 0 {
		a.collation(collation, sorts(g.stages), g.stages...)
	}
	if !hasPipeline {
		a.fail(mongoerr.TypeMismatch, "'pipeline' option must be specified as an array")
	}
	if !hasCursor {
		a.fail(mongoerr.FailedToParse, "The 'cursor' option is required, except for aggregate with the explain argument")
	}
	return g, a.err
}

func (a *arguments) aggregateNamespace(db string, v bson.RawValue) engine.Namespace {
	if bsonkit.IsNumber(v.Type) {
		if a.integer("aggregate", v) != 1 {
			a.fail(mongoerr.FailedToParse, "Invalid command format: the 'aggregate' field must specify a collection name or 1")
		}
		return engine.Namespace{DB: db}
	}
	ns := engine.Namespace{DB: db, Collection: a.text("aggregate", v)}
	if err := ns.Validate(); err != nil && a.err == nil {
		a.err = err
	}
	return ns
}

// batchSize reads the cursor option.
func (a *arguments) batchSize(options bson.Raw) int {
	size := firstBatch
	for it := bsonkit.Iterate(options); it.Next(); {
		if name := string(it.Key()); name == "batchSize" {
			size = int(min(a.count(name, it.Value()), noLimit))
		} else {
			a.fail(mongoerr.FailedToParse, "cursor object can't contain fields other than batchSize, found %s", name)
		}
	}
	return size
}

// aggregateSource compiles a pipeline and begins to run it.
func (c *call) aggregateSource(ctx context.Context, g aggregation) (source, error) {
	env := c.env(nil)
	pipeline, err := query.CompilePipeline(g.stages, query.PipelineEnv{
		Env:        env,
		Collection: c.foreign(g.ns.DB),
	})
	if err != nil {
		return nil, err
	}
	filter, rest := pipeline.LeadingMatch()
	if filter == nil {
		if filter, err = query.CompileFilter(nil, env); err != nil {
			return nil, err
		}
	}
	sort, _ := rest.LeadingSort()
	view, err := c.view(g.ns)
	if err != nil {
		return nil, err
	}
	docs, err := view.Documents(filter, sort, g.hint)
	if err != nil {
		return nil, err
	}
	next, stop := iter.Pull2(rest.Run(context.WithoutCancel(ctx), each(docs)))
	return &pulled{pull: next, stop: stop}, nil
}

// foreign gives a pipeline the other collections of its database.
func (c *call) foreign(db string) func(context.Context, string, *query.Filter) iter.Seq2[bson.Raw, error] {
	server, txn := c.server, c.txn
	return func(_ context.Context, name string, filter *query.Filter) iter.Seq2[bson.Raw, error] {
		view := server.engine.View(txn, engine.Namespace{DB: db, Collection: name})
		return func(yield func(bson.Raw, error) bool) {
			if filter == nil {
				var err error
				if filter, err = query.CompileFilter(nil, query.Env{}); err != nil {
					yield(nil, err)
					return
				}
			}
			docs, err := view.Documents(filter, nil, engine.Hint{})
			if err != nil {
				yield(nil, err)
				return
			}
			each(docs)(yield)
		}
	}
}

// each turns documents that are pulled into a sequence.
func each(docs puller) iter.Seq2[bson.Raw, error] {
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

// pulled turns a sequence into a source.
type pulled struct {
	pull func() (bson.Raw, error, bool)
	stop func()
}

func (p *pulled) next() (bson.Raw, error) {
	doc, err, ok := p.pull()
	if !ok {
		return nil, nil
	}
	return doc, err
}

func (p *pulled) exhausted() bool { return false }
func (p *pulled) close()          { p.stop() }

// sorts tells a pipeline that puts documents in order, or groups them.
func sorts(stages []bson.Raw) bool {
	return slices.ContainsFunc(stages, func(stage bson.Raw) bool {
		name := stageName(stage)
		return name != "$match" && name != "$limit" && name != "$skip" && name != "$project" && name != "$count"
	})
}
