package mongoserver

import (
	"context"
	"iter"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"changerelay/services/sandbox/internal/bsonkit"
	"changerelay/services/sandbox/internal/engine"
	"changerelay/services/sandbox/internal/mongoerr"
	"changerelay/services/sandbox/internal/query"
)

// aggregateSessions runs a pipeline over the sessions that are known:
// $listLocalSessions.
func (c *call) aggregateSessions(ctx context.Context, r *reply, g aggregation) error {
	a := arguments{mismatch: mongoerr.TypeMismatch}
	stage, _ := bsonkit.Get(g.stages[0], "$listLocalSessions")
	for it := bsonkit.Iterate(a.document("$listLocalSessions", stage)); it.Next(); {
		if name := string(it.Key()); name != "allUsers" && name != "users" {
			a.unknown(40415, "$listLocalSessions", name)
		}
	}
	if a.err != nil {
		return a.err
	}
	pipeline, err := query.CompilePipeline(g.stages[1:], query.PipelineEnv{Env: c.env(nil)})
	if err != nil {
		return err
	}
	sessions := &docSource{}
	for _, known := range c.server.engine.KnownSessions() {
		sessions.docs = append(sessions.docs, bson.Raw(bsoncore.NewDocumentBuilder().
			AppendDocument("_id", known.ID).AppendDateTime("lastUse", known.LastUse.UnixMilli()).Build()))
	}
	next, stop := iter.Pull2(pipeline.Run(context.WithoutCancel(ctx), each(sessions)))
	ns := engine.Namespace{DB: g.ns.DB, Collection: "$cmd.aggregate"}
	return c.open(ctx, r, c.newCursor(ns, &pulled{pull: next, stop: stop}), g.batchSize, false)
}
