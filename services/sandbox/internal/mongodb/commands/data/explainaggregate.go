package data

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/command"
)

// explainAggregate explains a pipeline: what of it reads the collection, and the
// stages that follow.
func explainAggregate(ctx context.Context, c *command.Call, r *command.Reply, g aggregation, level verbosity) error {
	if err := checkOutStage(c, g); err != nil {
		return err
	}
	if err := g.explainable(c); err != nil {
		return err
	}
	filter, order, rest := leading(g.stages)
	run, err := plan(c, g.ns, filter, order, g.hint, g.collation)
	if err != nil {
		return err
	}
	stage := run.tree(findArguments{filter: filter, sort: order})
	if level == executionStats {
		if err := run.count(ctx, 0, findArguments{}); err != nil {
			return err
		}
	}
	show := func() {
		planned(r, g.ns, filter, stage)
		if level == executionStats {
			executed(r, run, stage, "")
		}
	}
	if len(rest) == 0 {
		show()
		describeServer(c, r)
		return nil
	}
	r.OpenArray("stages")
	r.OpenDocument("0")
	r.OpenDocument("$cursor")
	show()
	r.Close()
	r.Close()
	for i, stage := range rest {
		r.Document(bsonkit.ArrayKey(i+1), stage)
	}
	r.Close()
	describeServer(c, r)
	return nil
}

// explainable resolves a view, and refuses a pipeline that aggregate could not begin to
// run.
func (g *aggregation) explainable(c *command.Call) error {
	if command.OpensStream(g.stages) {
		_, err := readStream(c, *g)
		return err
	}
	if err := g.resolve(c); err != nil {
		return err
	}
	return checkReadable(c, *g)
}

// checkReadable refuses a pipeline that aggregate could not begin to run. A first
// stage that is the server's own, and a last one that stores, are not looked into.
func checkReadable(c *command.Call, g aggregation) error {
	switch command.StageName(command.FirstStage(g.stages)) {
	case "$collStats", "$currentOp", "$indexStats", "$listLocalSessions":
		g.stages = g.stages[1:]
	}
	if n := len(g.stages); n > 0 && command.IsOutStage(command.StageName(g.stages[n-1])) {
		g.stages = g.stages[:n-1]
	}
	_, _, err := g.compile(c)
	return err
}

// leading are the filter and the sort that a readable pipeline begins with, and what
// follows them.
func leading(stages []bson.Raw) (filter, order bson.Raw, rest []bson.Raw) {
	if len(stages) > 0 && command.StageName(stages[0]) == "$match" {
		v, _ := bsonkit.Get(stages[0], "$match")
		filter, stages = v.Value, stages[1:]
	}
	if len(stages) > 0 && command.StageName(stages[0]) == "$sort" {
		v, _ := bsonkit.Get(stages[0], "$sort")
		order, stages = v.Value, stages[1:]
	}
	return filter, order, stages
}
