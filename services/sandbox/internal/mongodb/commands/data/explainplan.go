package data

import (
	"context"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/command"
	"changerelay/services/sandbox/internal/mongodb/engine"
	"changerelay/services/sandbox/internal/mongodb/engine/oplog"
	"changerelay/services/sandbox/internal/mongodb/engine/storage"
	"changerelay/services/sandbox/internal/mongodb/query"
	"changerelay/services/sandbox/internal/mongodb/query/collation"
	"changerelay/services/sandbox/internal/mongodb/query/match"
)

// plannedRun is a plan, and what running it gave.
type plannedRun struct {
	docs     *engine.Documents
	filtered bool
	// distinct is the field whose values the index has by itself; keys tells that
	// its keys are counted.
	distinct string
	keys     bool
	// known tells that the server knows the number without looking at documents.
	known bool
	found int
	took  time.Duration
}

func plan(c *command.Call,
	ns oplog.Namespace, filter, order bson.Raw, hint storage.Hint, by *collation.Collation,
) (*plannedRun, error) {
	env := c.Env(nil)
	env.Collation = c.CollationOf(ns, by)
	compiled, err := match.CompileQuery(filter, env)
	if err != nil {
		return nil, err
	}
	if natural, ok := bsonkit.Get(order, "$natural"); ok {
		n, _ := natural.AsInt64OK()
		hint, order = storage.Hint{Natural: true, Reverse: n < 0}, nil
	}
	sort, err := query.CompileSort(order)
	if err != nil {
		return nil, err
	}
	view, err := c.View(ns)
	if err != nil {
		return nil, err
	}
	docs, err := view.Documents(compiled, sort.In(env.Collation), hint)
	return &plannedRun{docs: docs, filtered: len(filter) > len(bsonkit.Empty)}, err
}

// planDistinct is the plan of distinct, by its key.
func planDistinct(c *command.Call, ns oplog.Namespace, key string, filter bson.Raw, by *collation.Collation) (*plannedRun, error) {
	run, err := plan(c, ns, filter, nil, storage.Hint{}, by)
	env := c.Env(nil)
	env.Collation = c.CollationOf(ns, by)
	if err != nil || !env.Collation.IsSimple() {
		return run, err
	}
	compiled, err := match.CompileQuery(filter, env)
	if err != nil {
		return nil, err
	}
	view, err := c.View(ns)
	if err != nil {
		return nil, err
	}
	if docs, ok := view.Distinct(compiled, key); ok {
		run.docs, run.distinct = docs, key
	}
	return run, nil
}

// count runs the plan until most documents are found, or all.
func (p *plannedRun) count(ctx context.Context, most int64, f findArguments) error {
	began := time.Now()
	if !p.docs.Sorted {
		most = 0 // a sort has to see them all
	}
	for most == 0 || int64(p.found) < most {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		doc, err := p.docs.Next()
		if err != nil {
			return err
		}
		if doc == nil {
			break
		}
		p.found++
	}
	p.found = max(p.found-int(f.skip), 0)
	if f.limit > 0 {
		p.found = min(p.found, int(f.limit))
	}
	p.took = time.Since(began)
	return nil
}

// all reports that the plan finds every document of a collection.
func (p *plannedRun) all() bool { return p.docs.Plan().There && !p.filtered }

// examined is what the server looks at for it.
func (p *plannedRun) examined() storage.Examined {
	if p.known {
		return storage.Examined{}
	}
	return p.docs.Plan().Examined
}

// tree is the plan in the server's shape, the outermost stage first.
func (p *plannedRun) tree(f findArguments) bson.D {
	stage := p.access(f.filter)
	wrap := func(name string, more ...bson.E) {
		stage = append(append(bson.D{{Key: "stage", Value: name}}, more...), bson.E{Key: "inputStage", Value: stage})
	}
	if !p.docs.Sorted {
		limit := bson.E{Key: "memLimit", Value: int32(maxSortBytes)}
		wrap("SORT", bson.E{Key: "sortPattern", Value: f.sort}, limit, bson.E{Key: "type", Value: "simple"})
	}
	if f.skip > 0 {
		wrap("SKIP", bson.E{Key: "skipAmount", Value: f.skip})
	}
	if f.limit > 0 && p.docs.Sorted {
		wrap("LIMIT", bson.E{Key: "limitAmount", Value: f.limit})
	}
	if len(f.projection) > len(bsonkit.Empty) {
		wrap("PROJECTION_DEFAULT", bson.E{Key: "transformBy", Value: f.projection})
	}
	return stage
}

// maxSortBytes is what the server shows as the memory of a sort.
const maxSortBytes = 100 << 20

// access is the part of a plan that reads the collection.
func (p *plannedRun) access(filter bson.Raw) bson.D {
	plan := p.docs.Plan()
	direction := "forward"
	if plan.Reverse {
		direction = "backward"
	}
	switch {
	case !plan.There:
		return bson.D{{Key: "stage", Value: "EOF"}}
	case plan.ByID && p.distinct == "":
		return bson.D{{Key: "stage", Value: "IDHACK"}}
	case plan.Index == nil:
		scan := bson.D{{Key: "stage", Value: "COLLSCAN"}}
		if p.filtered {
			scan = append(scan, bson.E{Key: "filter", Value: filter})
		}
		return append(scan, bson.E{Key: "direction", Value: direction})
	}
	name := "IXSCAN"
	switch {
	case p.keys:
		name = "COUNT_SCAN"
	case p.distinct != "":
		name = "DISTINCT_SCAN"
	}
	pattern, _ := bsonkit.Get(plan.Index.Listed, "key")
	scan := bson.D{
		{Key: "stage", Value: name},
		{Key: "keyPattern", Value: bson.Raw(pattern.Value)},
		{Key: "indexName", Value: plan.Index.Name},
		{Key: "isMultiKey", Value: plan.Multikey},
		{Key: "isUnique", Value: plan.Index.Unique},
		{Key: "isSparse", Value: plan.Index.Sparse},
		{Key: "isPartial", Value: plan.Index.Partial != nil},
		{Key: "indexVersion", Value: int32(2)},
		{Key: "direction", Value: direction},
	}
	if plan.Bounds != nil {
		bounds := bson.D{}
		for _, field := range plan.Bounds {
			bounds = append(bounds, bson.E{Key: field.Path, Value: field.Intervals})
		}
		scan = append(scan, bson.E{Key: "indexBounds", Value: bounds})
	}
	if p.keys {
		return scan
	}
	if p.distinct != "" {
		projection := "PROJECTION_COVERED"
		if strings.Contains(p.distinct, ".") {
			projection = "PROJECTION_DEFAULT"
		}
		by := bson.D{{Key: "_id", Value: int32(0)}, {Key: p.distinct, Value: int32(1)}}
		return bson.D{{Key: "stage", Value: projection}, {Key: "transformBy", Value: by}, {Key: "inputStage", Value: scan}}
	}
	fetch := bson.D{{Key: "stage", Value: "FETCH"}}
	if p.filtered {
		fetch = append(fetch, bson.E{Key: "filter", Value: filter})
	}
	return append(fetch, bson.E{Key: "inputStage", Value: scan})
}
