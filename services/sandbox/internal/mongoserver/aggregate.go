package mongoserver

import (
	"context"
	"iter"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/bsonkit"
	"changerelay/services/sandbox/internal/engine"
	"changerelay/services/sandbox/internal/mongoerr"
	"changerelay/services/sandbox/internal/query"
	"changerelay/services/sandbox/internal/query/collation"
)

// aggregation are the arguments of aggregate.
type aggregation struct {
	// ns has no collection for {aggregate: 1}.
	ns        engine.Namespace
	stages    []bson.Raw
	batchSize int
	hint      engine.Hint
	collation *collation.Collation
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
	if err := c.checkOutStage(g); err != nil {
		return err
	}
	if n := len(g.stages); n > 0 && isOutStage(stageName(g.stages[n-1])) {
		return c.aggregateInto(ctx, r, g)
	}
	src, err := c.aggregateSource(ctx, g)
	if err != nil {
		return err
	}
	ns := g.ns
	if ns.Collection == "" {
		ns.Collection = "$cmd.aggregate"
	}
	return c.open(ctx, r, c.newCursor(ns, src), g.batchSize, false)
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
			g.collation = a.collation(v)
		case "explain":
			a.fail(mongoerr.NotImplemented, "aggregate with explain is not supported")
		default:
			if !isGeneric(name) {
				a.fail(mongoerr.FailedToParse, "unrecognized field '%s'", name)
			}
		}
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
	first := stageName(firstStage(g.stages))
	if g.ns.Collection == "" {
		if first == "$listLocalSessions" {
			return c.sessionsSource(ctx, g)
		}
		return nil, mongoerr.New(mongoerr.InvalidNamespace,
			"{aggregate: 1} is not valid for '%s'; a collection is required.", first)
	}
	if first == "$collStats" {
		stats, err := c.statsSource(g)
		if err != nil {
			return nil, err
		}
		return c.through(ctx, g.stages[1:], stats)
	}
	var err error
	if g.ns, g.stages, _, err = c.resolve(g.ns, g.stages); err != nil {
		return nil, err
	}
	env := c.env(nil)
	env.Collation = c.collationOf(g.ns, g.collation)
	if err := collatedStages(env.Collation, g.stages); err != nil {
		return nil, err
	}
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

// through runs documents of the server's own through a pipeline.
func (c *call) through(ctx context.Context, stages []bson.Raw, docs puller) (source, error) {
	pipeline, err := query.CompilePipeline(stages, query.PipelineEnv{Env: c.env(nil)})
	if err != nil {
		return nil, err
	}
	next, stop := iter.Pull2(pipeline.Run(context.WithoutCancel(ctx), each(docs)))
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
