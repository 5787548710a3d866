package data

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/command"
	"changerelay/services/sandbox/internal/mongodb/engine/oplog"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
)

func collStats(_ context.Context, c *command.Call, r *command.Reply) error {
	ns, err := c.Collection()
	if err != nil {
		return err
	}
	if err := c.NotView(ns); err != nil {
		return err
	}
	a := command.Arguments{Mismatch: mongoerr.TypeMismatch}
	scale := a.Scale(c.Body)
	if a.Err == nil {
		r.Text("ns", ns.String())
		writeStats(c, r, ns, scale)
	}
	return a.Err
}

func writeStats(c *command.Call, r *command.Reply, ns oplog.Namespace, scale int64) {
	if ns == oplogNamespace {
		stats := c.Server.Engine.Oplog()
		r.Int64("size", int64(stats.Bytes)/scale)
		r.Int64("count", int64(stats.Entries))
		r.Boolean("capped", true)
		r.Int64("maxSize", int64(stats.MaxBytes)/scale)
		return
	}
	info, there := c.Server.Engine.Collection(ns)
	r.Number("size", info.Bytes/scale)
	r.Number("count", int64(info.Count))
	if info.Count > 0 {
		r.Number("avgObjSize", info.Bytes/int64(info.Count))
	}
	r.Number("storageSize", info.Bytes/scale)
	if there {
		r.Number("freeStorageSize", 0)
		capped := info.Options.Capped
		r.Boolean("capped", capped != nil)
		if capped != nil {
			r.Number("max", int64(capped.Documents))
			r.Number("maxSize", capped.Bytes/scale)
			r.Int32("sleepCount", 0)
			r.Int32("sleepMS", 0)
		}
	}
	r.Int32("nindexes", int32(len(info.Indexes)))
	if there {
		r.Strings("indexBuilds", nil)
	}
	r.Number("totalIndexSize", 0)
	r.Number("totalSize", info.Bytes/scale)
	r.OpenDocument("indexSizes")
	for _, spec := range info.Indexes {
		r.Number(spec.Name, 0)
	}
	r.Close()
	r.Number("scaleFactor", scale)
}

// statsSource is the one document of a $collStats
// (https://www.mongodb.com/docs/v4.4/reference/operator/aggregation/collStats/).
func statsSource(c *command.Call, g aggregation) (*command.DocSource, error) {
	if _, ok := c.Server.Engine.Collection(g.ns); !ok {
		return nil, mongoerr.New(mongoerr.NamespaceNotFound, "Collection [%s] not found.", g.ns)
	}
	a := command.Arguments{Mismatch: mongoerr.TypeMismatch}
	stage, _ := bsonkit.Get(g.stages[0], "$collStats")
	r := command.NewReply()
	r.Text("ns", g.ns.String())
	r.Date("localTime", c.Now.UnixMilli())
	for it := bsonkit.Iterate(statsOption(&a, "$collStats", stage)); it.Next(); {
		switch name := string(it.Key()); name {
		case "storageStats":
			scale := a.Scale(statsOption(&a, name, it.Value()))
			r.OpenDocument(name)
			writeStats(c, r, g.ns, scale)
			r.Close()
		case "count":
			statsOption(&a, name, it.Value())
			info, _ := c.Server.Engine.Collection(g.ns)
			r.Int64("count", int64(info.Count))
		case "latencyStats", "queryExecStats":
			a.Fail(mongoerr.NotImplemented, "$collStats with %s is not supported", name)
		default:
			a.Fail(40168, "unrecognized option to $collStats: %s", name)
		}
	}
	r.Close()
	return &command.DocSource{Docs: []bson.Raw{r.Doc}}, a.Err
}

// statsOption is the document of $collStats or of one of its options.
func statsOption(a *command.Arguments, name string, v bson.RawValue) bson.Raw {
	doc, ok := v.DocumentOK()
	if !ok {
		code := map[string]mongoerr.Code{"$collStats": 40166, "storageStats": 40279, "count": 40480}[name]
		a.Fail(code, "%s argument must be an object, but got %s", name, bsonkit.Describe(v))
	}
	return doc
}
