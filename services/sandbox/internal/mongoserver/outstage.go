package mongoserver

import (
	"context"
	"errors"
	"iter"
	"strings"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/bsonkit"
	"changerelay/services/sandbox/internal/engine"
	"changerelay/services/sandbox/internal/mongoerr"
)

// isOutStage tells the stages that store what a pipeline makes.
func isOutStage(name string) bool { return name == "$out" || name == "$merge" }

// checkOutStage refuses a storing stage anywhere but at the end, and where it
// may not be used at all.
func (c *call) checkOutStage(g aggregation) error {
	for i, stage := range g.stages {
		name := stageName(stage)
		switch {
		case !isOutStage(name):
			continue
		case i < len(g.stages)-1:
			return mongoerr.New(40601, "%s can only be the final stage in the pipeline", name)
		case c.generic.inTransaction():
			return mongoerr.New(mongoerr.OperationNotSupportedInTransaction, "%s cannot be used in a transaction", name)
		}
		level, _ := bsonkit.Get(c.generic.readConcern, "level")
		if s, _ := level.StringValueOK(); s == "linearizable" {
			return mongoerr.New(mongoerr.InvalidOptions, "%s cannot be used with a 'linearizable' read concern level", name)
		}
	}
	return nil
}

// aggregateInto runs a pipeline that ends in $out or $merge, and answers with
// an empty cursor.
func (c *call) aggregateInto(ctx context.Context, r *reply, g aggregation) error {
	last := len(g.stages) - 1
	it := bsonkit.Iterate(g.stages[last])
	it.Next()
	name, spec := string(it.Key()), it.Value()
	g.stages = g.stages[:last]
	src, err := c.aggregateSource(ctx, g)
	if err != nil {
		return err
	}
	defer src.close()
	if name == "$out" {
		err = c.out(ctx, g, spec, src)
	} else {
		err = c.merge(ctx, g, spec, src)
	}
	if err != nil {
		return err
	}
	if g.ns.Collection == "" {
		g.ns.Collection = "$cmd.aggregate"
	}
	return c.open(ctx, r, c.newCursor(g.ns, &docSource{}), g.batchSize, true)
}

// outTarget reads a collection: its name in the pipeline's database, or
// {db: …, coll: …}.
func (a *arguments) outTarget(stage, db string, v bson.RawValue) engine.Namespace {
	ns := engine.Namespace{DB: db}
	if name, ok := v.StringValueOK(); ok {
		ns.Collection = name
	} else {
		for it := bsonkit.Iterate(a.document(stage, v)); it.Next(); {
			switch name := string(it.Key()); name {
			case "db":
				ns.DB = a.text(name, it.Value())
			case "coll":
				ns.Collection = a.text(name, it.Value())
			default:
				a.unknown(40415, stage, name)
			}
		}
	}
	if err := ns.Validate(); err != nil && a.err == nil {
		a.err = err
	}
	if strings.HasPrefix(ns.Collection, "system.") || ns.DB == "admin" || ns.DB == "config" || ns.DB == "local" {
		a.fail(17385, "Can't %s to special collection: %s", stage, ns.Collection)
	}
	return ns
}

// out stores the results in a collection of its own, which then takes the
// place of the target: nobody sees a part of them there
// (https://www.mongodb.com/docs/v4.4/reference/operator/aggregation/out/).
func (c *call) out(ctx context.Context, g aggregation, spec bson.RawValue, src source) error {
	a := arguments{mismatch: 16990}
	to := a.outTarget("$out", g.ns.DB, spec)
	if a.err != nil {
		return a.err
	}
	temporary := engine.Namespace{DB: to.DB, Collection: "tmp.agg_out." + uuid.NewString()}
	err := c.fillCollection(ctx, temporary, to, src)
	if err == nil {
		err = c.server.engine.Rename(ctx, temporary, to, true)
	}
	if err != nil {
		if _, dropped := c.server.engine.Drop(context.WithoutCancel(ctx), temporary); !mongoerr.Is(dropped, mongoerr.NamespaceNotFound) {
			err = errors.Join(err, dropped)
		}
	}
	return err
}

// fillCollection makes a collection with the options and indexes of a model,
// and stores documents in it.
func (c *call) fillCollection(ctx context.Context, ns, model engine.Namespace, src source) error {
	info, _ := c.server.engine.Collection(model)
	if err := c.server.engine.CreateCollection(ctx, nil, ns, info.Options); err != nil {
		return err
	}
	if len(info.Indexes) > 1 {
		if _, err := c.server.engine.CreateIndexes(ctx, nil, ns, info.Indexes[1:]); err != nil {
			return err
		}
	}
	for doc, err := range sourced(src) {
		if err != nil {
			return err
		}
		stored, err := c.server.engine.PrepareInsert(doc)
		if err != nil {
			return err
		}
		if _, err := c.server.engine.Insert(ctx, c.write(), ns, []bson.Raw{stored}); err != nil {
			return err
		}
	}
	return nil
}

// sourced is a source as a sequence.
func sourced(src source) iter.Seq2[bson.Raw, error] {
	return func(yield func(bson.Raw, error) bool) {
		for {
			doc, err := src.next()
			if doc == nil && err == nil {
				return
			}
			if !yield(doc, err) || err != nil {
				return
			}
		}
	}
}
