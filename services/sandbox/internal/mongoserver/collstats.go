package mongoserver

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/bsonkit"
	"changerelay/services/sandbox/internal/engine"
	"changerelay/services/sandbox/internal/mongoerr"
)

func collStats(_ context.Context, c *call, r *reply) error {
	ns, err := c.collection()
	if err != nil {
		return err
	}
	a := arguments{mismatch: mongoerr.TypeMismatch}
	scale := a.scale(c.body)
	if a.err == nil {
		r.text("ns", ns.String())
		c.writeStats(r, ns, scale)
	}
	return a.err
}

// scale is what sizes are divided by.
func (a *arguments) scale(options bson.Raw) int64 {
	v, given := bsonkit.Get(options, "scale")
	if !given {
		return 1
	}
	scale, ok := v.AsInt64OK()
	if !ok || scale < 1 {
		a.fail(mongoerr.BadValue, "scale has to be >= 1")
		return 1
	}
	return scale
}

func (c *call) writeStats(r *reply, ns engine.Namespace, scale int64) {
	if ns == oplogNamespace {
		stats := c.server.engine.Oplog()
		r.int64("size", int64(stats.Bytes)/scale)
		r.int64("count", int64(stats.Entries))
		r.boolean("capped", true)
		r.int64("maxSize", int64(stats.MaxBytes)/scale)
		return
	}
	info, _ := c.server.engine.Collection(ns)
	r.int64("size", info.Bytes/scale)
	r.int64("count", int64(info.Count))
	r.int64("storageSize", info.Bytes/scale)
	r.int32("nindexes", int32(len(info.Indexes)))
	capped := info.Options.Capped
	r.boolean("capped", capped != nil)
	if capped != nil {
		r.int64("max", int64(capped.Documents))
		r.int64("maxSize", capped.Bytes/scale)
	}
}

// statsSource is the one document of a $collStats
// (https://www.mongodb.com/docs/v4.4/reference/operator/aggregation/collStats/).
func (c *call) statsSource(g aggregation) (*docSource, error) {
	if _, ok := c.server.engine.Collection(g.ns); !ok {
		return nil, mongoerr.New(mongoerr.NamespaceNotFound, "Collection [%s] not found.", g.ns)
	}
	a := arguments{mismatch: mongoerr.TypeMismatch}
	stage, _ := bsonkit.Get(g.stages[0], "$collStats")
	r := newReply()
	r.text("ns", g.ns.String())
	r.date("localTime", c.now.UnixMilli())
	for it := bsonkit.Iterate(a.document("$collStats", stage)); it.Next(); {
		switch name := string(it.Key()); name {
		case "storageStats":
			scale := a.scale(a.document(name, it.Value()))
			r.openDocument(name)
			c.writeStats(r, g.ns, scale)
			r.close()
		case "count":
			info, _ := c.server.engine.Collection(g.ns)
			r.int64("count", int64(info.Count))
		default:
			a.fail(mongoerr.NotImplemented, "$collStats with %s is not supported", name)
		}
	}
	r.close()
	return &docSource{docs: []bson.Raw{r.doc}}, a.err
}
