package data

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/command"
	"changerelay/services/sandbox/internal/mongodb/engine/oplog"
	"changerelay/services/sandbox/internal/mongodb/engine/storage"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
	"changerelay/services/sandbox/internal/mongodb/query"
	"changerelay/services/sandbox/internal/mongodb/query/collation"
	"changerelay/services/sandbox/internal/mongodb/query/expression"
	"changerelay/services/sandbox/internal/mongodb/query/match"
)

// aggregation are the arguments of aggregate.
type aggregation struct {
	// ns has no collection for {aggregate: 1}.
	ns        oplog.Namespace
	stages    []bson.Raw
	batchSize int
	hint      storage.Hint
	collation *collation.Collation
	explain   bool
	spills    bool
}

func aggregate(ctx context.Context, c *command.Call, r *command.Reply) error {
	g, err := parseAggregate(c, c.Body)
	if err != nil {
		return err
	}
	if g.explain {
		return explainAggregate(ctx, c, r, g, queryPlanner)
	}
	if command.OpensStream(g.stages) {
		return watch(ctx, c, r, g)
	}
	if err := checkOutStage(c, g); err != nil {
		return err
	}
	if n := len(g.stages); n > 0 && command.IsOutStage(command.StageName(g.stages[n-1])) {
		return aggregateInto(ctx, c, r, g)
	}
	src, err := aggregateSource(ctx, c, g)
	if err != nil {
		return err
	}
	ns := g.ns
	if ns.Collection == "" {
		ns.Collection = "$cmd.aggregate"
	}
	return c.Open(ctx, r, c.NewCursor(ns, src), g.batchSize, false)
}

// checkFirstStages refuses stages that only a pipeline can begin with in any
// other place. It looks at the form of all that are not compiled with the others.
func checkFirstStages(stages []bson.Raw, inTransaction bool) error {
	for i, stage := range stages {
		switch name := command.StageName(stage); name {
		case "$out", "$merge", splitStage:
			if err := query.CheckStage(stage); err != nil {
				return err
			}
		case "$changeStream", "$collStats", "$currentOp", "$indexStats", "$listLocalSessions", "$listSessions", "$geoNear",
			"$planCacheStats":
			if err := query.CheckStage(stage); err != nil {
				return err
			}
			if i > 0 {
				return mongoerr.New(40602, "%s is only valid as the first stage in a pipeline", name)
			}
			if inTransaction && name != "$geoNear" && name != "$changeStream" {
				return mongoerr.New(mongoerr.OperationNotSupportedInTransaction,
					"Stage not supported inside of a multi-document transaction: %s", name)
			}
		}
	}
	return nil
}

func parseAggregate(c *command.Call, body bson.Raw) (aggregation, error) {
	g := aggregation{batchSize: command.FirstBatch}
	a := command.Arguments{Mismatch: mongoerr.TypeMismatch}
	hasPipeline, hasCursor, hasConcern := false, false, false
	for it := bsonkit.Iterate(body); it.Next(); {
		name, v := string(it.Key()), it.Value()
		switch name {
		case "aggregate":
			g.ns = aggregateNamespace(&a, c.DB, v)
		case "pipeline":
			g.stages, hasPipeline = a.Documents(name, v), true
		case "cursor":
			if hasCursor = true; v.Type == bson.TypeNull {
				a.WrongType(name, v, "object")
			}
			g.batchSize = a.BatchSize(a.Document(name, v))
		case "allowDiskUse":
			g.spills = a.Boolean(name, v)
		case "bypassDocumentValidation":
		case "hint":
			if v.Type != bson.TypeString && v.Type != bson.TypeEmbeddedDocument {
				a.Fail(mongoerr.FailedToParse,
					"hint must be specified as a string representing an index name, or an object representing an index's key pattern")
				break
			}
			g.hint = a.Hint(name, v)
		case "collation":
			g.collation = a.Collation(v)
		case "explain":
			g.explain = a.Boolean(name, v)
		case "writeConcern":
			hasConcern = true
		default:
			if !command.IsGeneric(name) && !c.TakesLet(&a, name, v) {
				a.Fail(mongoerr.FailedToParse, "unrecognized field '%s'", name)
			}
		}
	}
	if !hasPipeline {
		a.Fail(mongoerr.TypeMismatch, "'pipeline' option must be specified as an array")
	}
	if !hasCursor && !g.explain {
		a.Fail(mongoerr.FailedToParse, "The 'cursor' option is required, except for aggregate with the explain argument")
	}
	if g.explain && hasConcern {
		a.Fail(mongoerr.FailedToParse, "Aggregation explain does not support the 'writeConcern' option")
	}
	if a.Err == nil {
		a.Err = checkFirstStages(g.stages, c.Generic.InTransaction())
	}
	return g, a.Err
}

func aggregateNamespace(a *command.Arguments, db string, v bson.RawValue) oplog.Namespace {
	if bsonkit.IsNumber(v.Type) {
		if a.Integer("aggregate", v) != 1 {
			a.Fail(mongoerr.FailedToParse, "Invalid command format: the 'aggregate' field must specify a collection name or 1")
		}
		return oplog.Namespace{DB: db}
	}
	ns := oplog.Namespace{DB: db, Collection: a.Text("aggregate", v)}
	if err := ns.Validate(); err != nil && a.Err == nil {
		a.Err = err
	}
	return ns
}

// aggregateSource compiles a pipeline and begins to run it.
func aggregateSource(ctx context.Context, c *command.Call, g aggregation) (command.Source, error) {
	first := command.StageName(command.FirstStage(g.stages))
	if g.ns.Collection == "" {
		if first == "$listLocalSessions" {
			return sessionsSource(ctx, c, g)
		}
		if first == "$currentOp" {
			return operationsSource(ctx, c, g)
		}
		return nil, mongoerr.New(mongoerr.InvalidNamespace,
			"{aggregate: 1} is not valid for '%s'; a collection is required.", first)
	}
	switch first {
	case "$currentOp":
		return nil, mongoerr.New(mongoerr.InvalidNamespace, "$currentOp must be run against the 'admin' database with {aggregate: 1}")
	case "$listLocalSessions":
		return nil, mongoerr.New(mongoerr.InvalidNamespace, "$listLocalSessions must be run against the database with {aggregate: 1}, not a collection")
	case "$indexStats":
		return indexStatsSource(ctx, c, g)
	case "$collStats":
		stats, err := statsSource(c, g)
		if err != nil {
			return nil, err
		}
		return c.Through(ctx, g.stages[1:], stats)
	}
	if err := g.resolve(c); err != nil {
		return nil, err
	}
	pipeline, env, err := g.compile(c)
	if err != nil {
		return nil, err
	}
	filter, rest := pipeline.LeadingMatch()
	if filter == nil {
		if filter, err = match.Compile(nil, env); err != nil {
			return nil, err
		}
	}
	sort, _ := rest.LeadingSort()
	view, err := c.View(g.ns)
	if err != nil {
		return nil, err
	}
	docs, err := view.Documents(filter, sort, g.hint)
	if err != nil {
		return nil, err
	}
	docs.Interrupted = c.Interrupted
	return command.Pull(rest.Run(ctx, command.Each(docs))), nil
}

// compile reads the stages of a pipeline that resolve has been called for, and gives
// what its expressions and filters may read.
func (g *aggregation) compile(c *command.Call) (*query.Pipeline, expression.Env, error) {
	env := c.Env(nil)
	env.Collation, env.Spills = c.CollationOf(g.ns, g.collation), g.spills
	if err := command.CollatedStages(env.Collation, g.stages); err != nil {
		return nil, env, err
	}
	pipeline, err := query.CompileAggregation(g.stages, query.PipelineEnv{
		Env:        env,
		Collection: c.Foreign(g.ns.DB, env.Collation),
	})
	return pipeline, env, err
}

// resolve replaces a view by what it is made of.
func (g *aggregation) resolve(c *command.Call) error {
	below, stages, isView, err := c.Resolve(g.ns, g.stages)
	if err != nil {
		return err
	}
	if isView {
		g.collation, err = c.CollationOfView(g.ns, g.collation)
	}
	g.ns, g.stages = below, stages
	return err
}

// throughView gives the documents of a view that stages leave; nil if the
// namespace is no view.
func throughView(ctx context.Context, c *command.Call, ns oplog.Namespace, by *collation.Collation, stages ...bson.Raw,
) (command.Source, error) {
	below, stages, isView, err := c.Resolve(ns, stages)
	if err != nil || !isView {
		return nil, err
	}
	if by, err = c.CollationOfView(ns, by); err != nil {
		return nil, err
	}
	return aggregateSource(ctx, c, aggregation{ns: below, stages: stages, collation: by})
}
