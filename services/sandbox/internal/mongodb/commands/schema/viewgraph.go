package schema

import (
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/command"
	"changerelay/services/sandbox/internal/mongodb/engine"
	"changerelay/services/sandbox/internal/mongodb/engine/oplog"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
	"changerelay/services/sandbox/internal/mongodb/query"
)

// checkView refuses what cannot be a view: a pipeline that is none or stores
// its results, or one that stands on itself.
func checkView(c *command.Call, ns oplog.Namespace, view *engine.ViewOptions) error {
	for _, stage := range view.Pipeline {
		switch name := command.StageName(stage); name {
		case "$out", "$merge", "$changeStream":
			return mongoerr.New(mongoerr.OptionNotSupportedOnView, "The aggregation stage %s in the pipeline of the view %s is not allowed",
				name, ns)
		}
	}
	if _, err := query.CompilePipeline(view.Pipeline, query.PipelineEnv{Env: c.Env(nil), Collection: c.Foreign(ns.DB, nil)}); err != nil {
		return err
	}
	g := viewGraph{c: c, of: ns, depths: map[string]int{}}
	return g.refuse(view)
}

// viewGraph is what a view would stand on.
type viewGraph struct {
	c  *command.Call
	of oplog.Namespace
	// depths are those of the collections and views that were looked at.
	depths map[string]int
}

// refuse looks for circles and for too many views on each other.
func (g *viewGraph) refuse(view *engine.ViewOptions) error {
	depth, err := g.below(view)
	if err == nil && depth+g.above(g.of.Collection) > command.MaxViewDepth {
		err = mongoerr.New(mongoerr.ViewDepthLimitExceeded, "View depth limit exceeded; maximum depth is %d", command.MaxViewDepth)
	}
	return err
}

// below counts the views on each other from this one down.
func (g *viewGraph) below(view *engine.ViewOptions) (int, error) {
	deepest := 0
	for _, name := range append(collectionsIn(view.Pipeline), view.On) {
		depth, err := g.depth(name)
		if err != nil {
			return 0, err
		}
		deepest = max(deepest, depth)
	}
	return deepest + 1, nil
}

// depth is 0 for a collection.
func (g *viewGraph) depth(name string) (int, error) {
	if name == g.of.Collection {
		return 0, mongoerr.New(mongoerr.GraphContainsCycle, "View cycle detected: %s", g.of)
	}
	if depth, known := g.depths[name]; known {
		return depth, nil
	}
	view := g.c.Server.Engine.Options(oplog.Namespace{DB: g.of.DB, Collection: name}).View
	if view == nil {
		return 0, nil
	}
	depth, err := g.below(view)
	g.depths[name] = depth
	return depth, err
}

// above counts the views that stand on a collection, one on the other.
func (g *viewGraph) above(name string) int {
	heights := map[string]int{}
	views := g.c.Server.Engine.Collections(g.of.DB)
	var height func(string) int
	height = func(name string) int {
		if known, ok := heights[name]; ok {
			return known
		}
		heights[name] = 0 // there are no circles
		for _, info := range views {
			if v := info.Options.View; v != nil && info.NS.Collection != name && slices.Contains(append(collectionsIn(v.Pipeline), v.On), name) {
				heights[name] = max(heights[name], height(info.NS.Collection)+1)
			}
		}
		return heights[name]
	}
	return height(name)
}

// collectionsIn are the names of those that the stages of a pipeline read.
func collectionsIn(pipeline []bson.Raw) []string {
	var names []string
	for _, stage := range pipeline {
		it := bsonkit.Iterate(stage)
		if !it.Next() {
			continue
		}
		names = append(names, collectionsOf(string(it.Key()), it.Value())...)
	}
	return names
}

func collectionsOf(name string, v bson.RawValue) []string {
	var names []string
	within := func(pipeline bson.RawValue) {
		var stages []bson.Raw
		for _, stage := range bsonkit.Values(pipeline) {
			stages = append(stages, stage.Value)
		}
		names = append(names, collectionsIn(stages)...)
	}
	field := map[string]string{"$lookup": "from", "$graphLookup": "from", "$unionWith": "coll"}[name]
	switch {
	case name == "$facet":
		for it := bsonkit.Iterate(v.Value); it.Next(); {
			within(it.Value())
		}
	case field == "":
	case v.Type == bson.TypeString:
		names = append(names, v.StringValue())
	default:
		from, _ := bsonkit.Get(v.Value, field)
		if text, ok := from.StringValueOK(); ok {
			names = append(names, text)
		}
		if pipeline, given := bsonkit.Get(v.Value, "pipeline"); given {
			within(pipeline)
		}
	}
	return names
}
