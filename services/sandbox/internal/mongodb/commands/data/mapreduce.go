package data

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/access"
	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/command"
	"changerelay/services/sandbox/internal/mongodb/engine/oplog"
	"changerelay/services/sandbox/internal/mongodb/javascript"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
	"changerelay/services/sandbox/internal/mongodb/query"
)

// mapping are the arguments of mapReduce.
type mapping struct {
	ns                    oplog.Namespace
	maps, reduce          string
	finalize              string
	filter, order, scope  bson.Raw
	limit                 int64
	collation             bson.RawValue
	out                   mapTarget
	hasMap, hasReduce, to bool
}

// mapTarget is where mapReduce puts its results.
type mapTarget struct {
	// how is inline, replace, merge or reduce.
	how string
	to  oplog.Namespace
	// db tells that the database was named.
	db bool
}

// mapReduce runs the pipeline that the server makes of it
// (https://www.mongodb.com/docs/v4.4/reference/map-reduce-to-aggregation-pipeline/).
func mapReduce(ctx context.Context, c *command.Call, r *command.Reply) error {
	m, err := parseMapReduce(c)
	if err != nil {
		return err
	}
	c.Scripts().SetGlobals(m.scope)
	a := command.Arguments{Mismatch: mongoerr.TypeMismatch}
	g := aggregation{ns: m.ns, stages: m.reading()}
	if m.collation.Type != bsonkit.Missing {
		if g.collation = a.Collation(m.collation); a.Err != nil {
			return a.Err
		}
	}
	if _, given := bsonkit.Get(c.Body, "writeConcern"); given && m.out.how == "inline" {
		return mongoerr.New(mongoerr.InvalidOptions, "Command does not support writeConcern")
	}
	if m.out.how != "inline" {
		if info, ok := c.Server.Engine.Collection(m.out.to); ok && info.Options.View != nil {
			return mongoerr.New(mongoerr.CommandNotSupportedOnView, "cannot output to a view: %s", m.out.to)
		}
	}
	docs, err := aggregateSource(ctx, c, g)
	if err != nil {
		return err
	}
	defer docs.Close()
	env := c.Env(nil)
	env.Collation = c.CollationOf(g.ns, g.collation)
	pipeline, err := query.CompilePipeline(m.reducing(), query.PipelineEnv{Env: env})
	if err != nil {
		return err
	}
	src := command.Pull(pipeline.Run(ctx, command.Each(docs)))
	defer src.Close()
	switch m.out.how {
	case "inline":
		return inline(r, src)
	case "replace":
		err = out(ctx, c, g, target(m.out.to), src)
	default:
		err = merge(ctx, c, g, m.mergeSpec(), src)
	}
	if err != nil {
		return err
	}
	if !m.out.db {
		r.Text("result", m.out.to.Collection)
		return nil
	}
	r.OpenDocument("result")
	r.Text("db", m.out.to.DB)
	r.Text("collection", m.out.to.Collection)
	r.Close()
	return nil
}

// inline answers with the results.
func inline(r *command.Reply, src command.Source) error {
	size := 0
	r.OpenArray("results")
	n := 0
	for doc, err := range sourced(src) {
		if err != nil {
			return err
		}
		if size += len(doc); size > bsonkit.MaxDocument {
			return mongoerr.New(mongoerr.BSONObjectTooLarge, "the results of mapReduce are larger than 16 MB")
		}
		r.Document(bsonkit.ArrayKey(n), doc)
		n++
	}
	r.Close()
	return nil
}

func parseMapReduce(c *command.Call) (mapping, error) {
	a := command.Arguments{Mismatch: mongoerr.TypeMismatch}
	m := mapping{}
	for it := bsonkit.Iterate(c.Body); it.Next(); {
		switch name, v := string(it.Key()), it.Value(); name {
		case c.Name:
		case "map":
			m.maps, m.hasMap = mapCode(&a, name, v), true
		case "reduce":
			m.reduce, m.hasReduce = mapCode(&a, name, v), true
		case "finalize":
			if v.Type != bson.TypeNull && v.Type != bson.TypeUndefined {
				m.finalize = mapCode(&a, name, v)
			}
		case "query":
			m.filter = optionalDocument(&a, name, v)
		case "sort":
			m.order = optionalDocument(&a, name, v)
		case "scope":
			m.scope = optionalDocument(&a, name, v)
		case "limit":
			if m.limit = a.Integer(name, v); m.limit < 0 {
				a.Fail(mongoerr.BadValue, "The limit specified to mapReduce must be positive")
			}
		case "collation":
			m.collation = v
		case "out":
			m.out, m.to = outOf(&a, c.DB, v), true
		case "jsMode", "verbose", "bypassDocumentValidation":
			a.Boolean(name, v)
		default:
			if !command.IsGeneric(name) {
				a.Unknown(40415, "mapReduce", name)
			}
		}
	}
	for _, field := range []struct {
		name  string
		given bool
	}{{"map", m.hasMap}, {"reduce", m.hasReduce}, {"out", m.to}} {
		if !field.given {
			a.Fail(40414, "BSON field 'mapReduce.%s' is missing but a required field", field.name)
		}
	}
	if a.Err != nil {
		return m, a.Err
	}
	var err error
	m.ns, err = c.Collection()
	return m, err
}

func mapCode(a *command.Arguments, name string, v bson.RawValue) string {
	code, ok := javascript.Code(v)
	if !ok {
		a.Fail(mongoerr.BadValue, "'%s' must be of string or code type", name)
	}
	return code
}

// optionalDocument reads one that may be null.
func optionalDocument(a *command.Arguments, name string, v bson.RawValue) bson.Raw {
	if v.Type == bson.TypeNull {
		return nil
	}
	return a.Document(name, v)
}

// outOf reads where the results go.
func outOf(a *command.Arguments, db string, v bson.RawValue) mapTarget {
	t := mapTarget{how: "replace", to: oplog.Namespace{DB: db}}
	if name, ok := v.StringValueOK(); ok {
		t.to.Collection = name
		return t
	}
	doc, ok := v.DocumentOK()
	if !ok {
		a.Fail(13606, "'out' has to be a string or an object")
		return t
	}
	t.how = ""
	for it := bsonkit.Iterate(doc); it.Next(); {
		switch name, v := string(it.Key()), it.Value(); name {
		case "inline":
			t.how = name
		case "normal", "replace":
			t.how, t.to.Collection = "replace", a.Text(name, v)
		case "merge", "reduce":
			t.how, t.to.Collection = name, a.Text(name, v)
		case "db":
			t.to.DB, t.db = a.Text(name, v), true
		case "nonAtomic":
			if !a.Boolean(name, v) {
				a.Fail(15895, "The nonAtomic:false option is no longer allowed in the mapReduce command. "+
					"Please omit or specify nonAtomic:true")
			}
		case "sharded":
			if a.Boolean(name, v) {
				a.Fail(mongoerr.InvalidOptions, "Cannot use mapReduce to create a new sharded collection. "+
					"Please create and shard the target collection before proceeding.")
			}
		default:
			a.Unknown(40415, "mapReduce.out", name)
		}
	}
	switch {
	case t.how == "":
		a.Fail(13522, "please specify one of [replace|merge|reduce|inline] in 'out' object")
	case t.how != "inline":
		if err := t.to.Validate(); err != nil {
			a.Fail(mongoerr.InvalidNamespace, "Invalid output namespace %s for MapReduce", t.to)
		}
	}
	return t
}

// reading selects the documents.
func (m mapping) reading() []bson.Raw {
	var stages []bson.Raw
	if len(m.filter) > len(bsonkit.Empty) {
		stages = append(stages, stage("$match", m.filter))
	}
	if len(m.order) > len(bsonkit.Empty) {
		stages = append(stages, stage("$sort", m.order))
	}
	if m.limit > 0 {
		stages = append(stages, stage("$limit", m.limit))
	}
	return stages
}

// reducing maps, reduces and finalizes. Of its stages only $group compares what may
// be text.
func (m mapping) reducing() []bson.Raw {
	emits := bson.D{{Key: "$_internalJsEmit", Value: bson.D{{Key: "eval", Value: bson.JavaScript(m.maps)}, {Key: "this", Value: "$$ROOT"}}}}
	reduced := bson.D{{Key: "$_internalJsReduce", Value: bson.D{{Key: "eval", Value: bson.JavaScript(m.reduce)}, {Key: "data", Value: "$emits"}}}}
	stages := []bson.Raw{
		stage("$project", bson.D{{Key: "_id", Value: 0}, {Key: "emits", Value: emits}}),
		stage("$unwind", "$emits"),
		stage("$group", bson.D{{Key: "_id", Value: "$emits.k"}, {Key: "value", Value: reduced}}),
	}
	if m.finalize != "" {
		stages = append(stages, valueStage(m.finalize, "$value"))
	}
	return stages
}

// mergeSpec is the $merge that the results end in.
func (m mapping) mergeSpec() bson.RawValue {
	var matched any = "replace"
	if m.out.how == "reduce" {
		pipeline := bson.A{valueStage(m.reduce, bson.A{"$value", "$$new.value"})}
		if m.finalize != "" {
			pipeline = append(pipeline, valueStage(m.finalize, "$value"))
		}
		matched = pipeline
	}
	return document(bson.D{
		{Key: "into", Value: target(m.out.to)}, {Key: "whenMatched", Value: matched}, {Key: "whenNotMatched", Value: "insert"},
	})
}

// valueStage replaces value by what a function of _id and an argument gives.
func valueStage(code string, argument any) bson.Raw {
	return stage("$project", bson.D{{Key: "value", Value: bson.D{{Key: "$function", Value: bson.D{
		{Key: "body", Value: bson.JavaScript(code)}, {Key: "args", Value: bson.A{"$_id", argument}}, {Key: "lang", Value: "js"},
	}}}}})
}

func target(ns oplog.Namespace) bson.RawValue {
	return document(bson.D{{Key: "db", Value: ns.DB}, {Key: "coll", Value: ns.Collection}})
}

func stage(name string, argument any) bson.Raw {
	return document(bson.D{{Key: name, Value: argument}}).Value
}

func document(d bson.D) bson.RawValue {
	doc, err := bson.Marshal(d)
	if err != nil {
		panic(err) // it is made of names, texts and documents that were read
	}
	return bsonkit.Document(doc)
}

// mapReducePrivileges are those of reading the collection, and of writing where the
// results go.
func mapReducePrivileges(c *command.Call) []access.Privilege {
	needed := c.OnOwnCollection(access.Find)
	a := command.Arguments{}
	v, _ := bsonkit.Get(c.Body, "out")
	t := outOf(&a, c.DB, v)
	if a.Err != nil || t.how == "inline" {
		return needed
	}
	actions := []access.Action{access.Insert, access.Remove}
	if t.how != "replace" {
		actions = []access.Action{access.Insert, access.Update}
	}
	return append(needed, access.Privilege{Resource: access.Collection(t.to.DB, t.to.Collection), Actions: actions})
}
