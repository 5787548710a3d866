package data

import (
	"context"
	"os"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/access"
	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/command"
	"changerelay/services/sandbox/internal/mongodb/engine/oplog"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
	"changerelay/services/sandbox/internal/mongodb/serverversion"
)

// verbosity says how much explain tells.
type verbosity uint8

const (
	// queryPlanner tells the plan, and runs nothing.
	queryPlanner verbosity = iota
	// executionStats runs the plan, without its writes, and counts.
	executionStats
)

// explain tells how another command would be run
// (https://www.mongodb.com/docs/v4.4/reference/explain-results/). The plan is
// the one that is run; bounds of indexes and rejected plans are not shown.
func explain(ctx context.Context, c *command.Call, r *command.Reply) error {
	a := command.Arguments{Mismatch: mongoerr.TypeMismatch}
	var body bson.Raw
	level := executionStats
	for it := bsonkit.Iterate(c.Body); it.Next(); {
		switch name, v := string(it.Key()), it.Value(); name {
		case c.Name:
			body = a.Document(name, v)
		case "verbosity":
			if name := a.Text(name, v); name == "queryPlanner" {
				level = queryPlanner
			} else if name != "executionStats" && name != "allPlansExecution" {
				a.Fail(mongoerr.FailedToParse, "verbosity string must be one of {'queryPlanner', 'executionStats', 'allPlansExecution'}")
			}
		default:
			if !command.IsGeneric(name) {
				a.Unknown(40415, "explain", name)
			}
		}
	}
	if a.Err != nil {
		return a.Err
	}
	first, err := body.IndexErr(0)
	if err != nil {
		return mongoerr.New(mongoerr.CommandNotFound, "Explain failed due to unknown command: ")
	}
	if first.Key() == "aggregate" {
		g, err := parseAggregate(c, body)
		if err != nil {
			return err
		}
		return explainAggregate(ctx, c, r, g, level)
	}
	e, err := explained(c, first.Key(), body)
	if err != nil {
		return err
	}
	return explainOne(ctx, c, r, e, level)
}

// explainPrivileges are those of reading the collection of the other command.
func explainPrivileges(c *command.Call) []access.Privilege {
	first, _ := c.Body.IndexErr(0)
	body, _ := first.Value().DocumentOK()
	other, err := body.IndexErr(0)
	if err != nil {
		return nil
	}
	name, _ := other.Value().StringValueOK()
	return []access.Privilege{{Resource: access.Collection(c.DB, name), Actions: []access.Action{access.Find}}}
}

// explanation is what a command reads, and the stages around that, the outermost
// first.
type explanation struct {
	ns   oplog.Namespace
	find findArguments
	// stage is what the command does with what it finds, empty for find.
	stage string
	// distinct is the key of that command.
	distinct string
	// outcome is the field of that stage with how many documents it is done to;
	// empty for a command that returns them.
	outcome string
	// most is how many documents it takes, 0 for all.
	most int64
}

// explained reads the command that is to be explained.
func explained(c *command.Call, name string, body bson.Raw) (explanation, error) {
	e := explanation{ns: oplog.Namespace{DB: c.DB}}
	a := command.Arguments{Mismatch: mongoerr.TypeMismatch}
	first, _ := body.IndexErr(0)
	e.ns.Collection = a.Text(name, first.Value())
	if v, ok := bsonkit.Get(body, "let"); ok && name != "find" {
		c.TakesLet(&a, "let", v)
	}
	switch name {
	case "find":
		var err error
		if e.find, err = parseFind(c, body); err != nil {
			return e, err
		}
	case "count", "distinct", "findAndModify", "findandmodify":
		if name == "count" {
			e.stage, e.outcome = "COUNT", "nCounted"
		}
		selection(&a, &e.find, body, "query")
		if key, ok := bsonkit.Get(body, "key"); ok && name == "distinct" {
			e.distinct = a.Text("key", key)
		}
		if name[0] == 'f' {
			e.most, e.stage = 1, "UPDATE"
			if command.IsTrue(body, "remove") {
				e.stage = "DELETE"
			}
		}
	case "update", "delete":
		e.stage, e.outcome = "UPDATE", "nMatched"
		if name == "delete" {
			e.stage, e.outcome = "DELETE", "nWouldDelete"
		}
		statements := a.Documents(name+"s", first.Value())
		if v, ok := bsonkit.Get(body, name+"s"); ok {
			a.Err = nil
			statements = a.Documents(name+"s", v)
		}
		if len(statements) != 1 {
			return e, mongoerr.New(mongoerr.InvalidLength, "explained write batches must be of size 1")
		}
		selection(&a, &e.find, statements[0], "q")
		limit, _ := bsonkit.Get(statements[0], "limit")
		if n, _ := bsonkit.Truncated(limit); name == "delete" && n == 1 || name == "update" && !command.IsTrue(statements[0], "multi") {
			e.most = 1
		}
	default:
		return e, mongoerr.New(mongoerr.CommandNotFound, "Explain failed due to unknown command: %s", name)
	}
	if a.Err == nil {
		a.Err = e.ns.Validate()
	}
	return e, a.Err
}

// selection reads what commands other than find select documents by.
func selection(a *command.Arguments, f *findArguments, doc bson.Raw, filter string) {
	for it := bsonkit.Iterate(doc); it.Next(); {
		switch name, v := string(it.Key()), it.Value(); name {
		case filter:
			f.filter = a.Document(name, v)
		case "sort":
			f.sort = a.Document(name, v)
		case "hint":
			f.hint = a.Hint(name, v)
		case "collation":
			f.collation = a.Collation(v)
		case "limit":
			if filter == "query" {
				f.limit = countLimit(a, name, v)
			}
		case "skip":
			f.skip = countSkip(a, name, v)
		}
	}
}

// explainOne explains a command that reads one collection.
func explainOne(ctx context.Context, c *command.Call, r *command.Reply, e explanation, level verbosity) error {
	below, stages, isView, err := c.Resolve(e.ns, e.find.stages())
	if err != nil {
		return err
	}
	if isView {
		by, err := c.CollationOfView(e.ns, e.find.collation)
		if err != nil {
			return err
		}
		return explainAggregate(ctx, c, r, aggregation{ns: below, stages: stages, collation: by}, level)
	}
	run, err := e.plan(c)
	if err != nil {
		return err
	}
	shown := e.find
	if e.stage == "COUNT" {
		shown.skip, shown.limit = 0, 0 // it skips and stops by itself
	}
	stage := run.tree(shown)
	run.known = e.stage == "COUNT" && run.all() && e.find.hint.Name == "" && e.find.hint.Key == nil && !e.find.hint.Natural
	switch {
	case run.known:
		stage = bson.D{{Key: "stage", Value: e.stage}}
	case e.stage != "":
		stage = bson.D{{Key: "stage", Value: e.stage}, {Key: "inputStage", Value: stage}}
	}
	planned(r, e.ns, e.find.filter, stage)
	if level == executionStats {
		most := e.most
		if most == 0 && e.find.limit > 0 {
			most = e.find.skip + e.find.limit
		}
		if err := run.count(ctx, most, e.find); err != nil {
			return err
		}
		executed(r, run, stage, e.outcome)
	}
	describeServer(c, r)
	return nil
}

// plan is the plan of the command.
func (e explanation) plan(c *command.Call) (*plannedRun, error) {
	if e.distinct != "" {
		return planDistinct(c, e.ns, e.distinct, e.find.filter, e.find.collation)
	}
	run, err := plan(c, e.ns, e.find.filter, e.find.sort, e.find.hint, e.find.collation)
	if err == nil && e.stage == "COUNT" {
		run.keys = run.docs.KeysOnly()
	}
	return run, err
}

// planned writes the part queryPlanner.
func planned(r *command.Reply, ns oplog.Namespace, filter bson.Raw, stage bson.D) {
	if filter == nil {
		filter = bsonkit.Empty
	}
	r.OpenDocument("queryPlanner")
	r.Int32("plannerVersion", 1)
	r.Text("namespace", ns.String())
	r.Boolean("indexFilterSet", false)
	r.Document("parsedQuery", filter)
	tree(r, "winningPlan", stage)
	r.Strings("rejectedPlans", nil)
	r.Close()
}

// tree writes a document that is made of stages.
func tree(r *command.Reply, key string, stage bson.D) {
	doc, err := bson.Marshal(stage)
	if err != nil {
		panic(err) // stages are made of names, numbers and documents
	}
	r.Document(key, doc)
}

// executed writes the part executionStats. outcome is the field of the outermost
// stage that has the number of documents found; they are returned where it is
// empty.
func executed(r *command.Reply, run *plannedRun, stage bson.D, outcome string) {
	examined, returned := run.examined(), int32(run.found)
	if outcome != "" {
		stage, returned = append(stage, bson.E{Key: outcome, Value: returned}), 0
	}
	r.OpenDocument("executionStats")
	r.Boolean("executionSuccess", true)
	r.Int32("nReturned", returned)
	r.Int32("executionTimeMillis", int32(run.took.Milliseconds()))
	r.Int32("totalKeysExamined", int32(examined.Keys))
	r.Int32("totalDocsExamined", int32(examined.Documents))
	tree(r, "executionStages", append(stage, bson.E{Key: "nReturned", Value: returned}))
	r.Close()
}

func describeServer(c *command.Call, r *command.Reply) {
	host, _ := os.Hostname()
	r.OpenDocument("serverInfo")
	r.Text("host", host)
	r.Int32("port", int32(c.Port()))
	r.Text("version", c.Server.Version.String())
	r.Text("gitVersion", serverversion.GitCommit)
	r.Close()
}
