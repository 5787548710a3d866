package data

import (
	"context"
	"errors"
	"iter"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/command"
	"changerelay/services/sandbox/internal/mongodb/engine"
	"changerelay/services/sandbox/internal/mongodb/engine/oplog"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
)

// checkOutStage refuses a storing stage anywhere but at the end, and where it
// may not be used at all.
func checkOutStage(c *command.Call, g aggregation) error {
	for i, stage := range g.stages {
		name := command.StageName(stage)
		switch {
		case !command.IsOutStage(name):
			continue
		case i < len(g.stages)-1:
			return mongoerr.New(40601, "%s can only be the final stage in the pipeline", name)
		case c.Generic.InTransaction():
			return mongoerr.New(mongoerr.OperationNotSupportedInTransaction, "%s cannot be used in a transaction", name)
		}
		if c.Generic.ReadConcern.Level == "linearizable" {
			return mongoerr.New(mongoerr.InvalidOptions, "%s cannot be used with a 'linearizable' read concern level", name)
		}
	}
	return nil
}

// aggregateInto runs a pipeline that ends in $out or $merge, and answers with
// an empty cursor.
func aggregateInto(ctx context.Context, c *command.Call, r *command.Reply, g aggregation) error {
	last := len(g.stages) - 1
	it := bsonkit.Iterate(g.stages[last])
	it.Next()
	name, spec := string(it.Key()), it.Value()
	g.stages = g.stages[:last]
	src, err := aggregateSource(ctx, c, g)
	if err != nil {
		return err
	}
	defer src.Close()
	if name == "$out" {
		err = out(ctx, c, g, spec, src)
	} else {
		err = merge(ctx, c, g, spec, src)
	}
	if err != nil {
		return err
	}
	if g.ns.Collection == "" {
		g.ns.Collection = "$cmd.aggregate"
	}
	return c.Open(ctx, r, c.NewCursor(g.ns, &command.DocSource{}), g.batchSize, true)
}

// outTarget reads a collection: its name in the pipeline's database, or
// {db: …, coll: …}.
func outTarget(a *command.Arguments, stage, db string, v bson.RawValue) oplog.Namespace {
	ns := oplog.Namespace{DB: db}
	if name, ok := v.StringValueOK(); ok {
		ns.Collection = name
	} else {
		if stage == "$out" && v.Type == bson.TypeEmbeddedDocument && !namesBoth(v.Document()) {
			a.Fail(16994, "If an object is passed to $out it must have exactly 2 fields: 'db' and 'coll'")
		}
		for it := bsonkit.Iterate(a.Document(stage, v)); it.Next(); {
			switch name := string(it.Key()); name {
			case "db":
				ns.DB = a.Text(name, it.Value())
			case "coll":
				ns.Collection = a.Text(name, it.Value())
			default:
				a.Unknown(40415, stage, name)
			}
		}
	}
	if err := ns.Validate(); err != nil && a.Err == nil {
		a.Err = err
	}
	if strings.HasPrefix(ns.Collection, "system.") || ns.DB == "admin" || ns.DB == "config" || ns.DB == "local" {
		a.Fail(17385, "Can't %s to special collection: %s", stage, ns.Collection)
	}
	return ns
}

// namesBoth tells a document that has db and coll, and nothing else.
func namesBoth(doc bson.Raw) bool {
	_, db := bsonkit.Get(doc, "db")
	_, coll := bsonkit.Get(doc, "coll")
	return db && coll && countFields(doc) == 2
}

// out stores the results in a collection of its own, which then takes the
// place of the target: nobody sees a part of them there
// (https://www.mongodb.com/docs/v4.4/reference/operator/aggregation/out/).
func out(ctx context.Context, c *command.Call, g aggregation, spec bson.RawValue, src command.Source) error {
	a := command.Arguments{Mismatch: 16990}
	to := outTarget(&a, "$out", g.ns.DB, spec)
	if a.Err != nil {
		return a.Err
	}
	temporary := engine.NewTemporary(to.DB)
	err := fillCollection(ctx, c, temporary, to, src)
	if err == nil {
		err = c.Server.Engine.Rename(ctx, temporary, to, true)
	}
	if err != nil {
		if _, dropped := c.Server.Engine.Drop(context.WithoutCancel(ctx), temporary); !mongoerr.Is(dropped, mongoerr.NamespaceNotFound) {
			err = errors.Join(err, dropped)
		}
	}
	return err
}

// fillCollection makes a collection with the options and indexes of a model,
// and stores documents in it.
func fillCollection(ctx context.Context, c *command.Call, ns, model oplog.Namespace, src command.Source) error {
	info, _ := c.Server.Engine.Collection(model)
	if info.Options.View != nil {
		return mongoerr.New(mongoerr.CommandNotSupportedOnView, "Namespace %s is a view, not a collection", model)
	}
	if err := c.Server.Engine.CreateCollection(ctx, nil, ns, info.Options); err != nil {
		return err
	}
	if len(info.Indexes) > 1 {
		if _, err := c.Server.Engine.CreateIndexes(ctx, nil, ns, info.Indexes[1:]); err != nil {
			return err
		}
	}
	for doc, err := range sourced(src) {
		if err != nil {
			return err
		}
		stored, err := c.Server.Engine.PrepareInsert(doc)
		if err != nil {
			return err
		}
		if _, err := c.Server.Engine.Insert(ctx, c.Write(), ns, []bson.Raw{stored}); err != nil {
			return err
		}
	}
	return nil
}

// sourced is a source as a sequence.
func sourced(src command.Source) iter.Seq2[bson.Raw, error] {
	return func(yield func(bson.Raw, error) bool) {
		for {
			doc, err := src.Next()
			if doc == nil && err == nil {
				return
			}
			if !yield(doc, err) || err != nil {
				return
			}
		}
	}
}
