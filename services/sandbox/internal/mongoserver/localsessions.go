package mongoserver

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"changerelay/services/sandbox/internal/bsonkit"
	"changerelay/services/sandbox/internal/mongoerr"
)

// sessionsSource runs a pipeline over the sessions that are known:
// $listLocalSessions.
func (c *call) sessionsSource(ctx context.Context, g aggregation) (source, error) {
	a := arguments{mismatch: mongoerr.TypeMismatch}
	stage, _ := bsonkit.Get(g.stages[0], "$listLocalSessions")
	for it := bsonkit.Iterate(a.document("$listLocalSessions", stage)); it.Next(); {
		if name := string(it.Key()); name != "allUsers" && name != "users" {
			a.unknown(40415, "$listLocalSessions", name)
		}
	}
	if a.err != nil {
		return nil, a.err
	}
	sessions := &docSource{}
	for _, known := range c.server.engine.KnownSessions() {
		sessions.docs = append(sessions.docs, bson.Raw(bsoncore.NewDocumentBuilder().
			AppendDocument("_id", known.ID).AppendDateTime("lastUse", known.LastUse.UnixMilli()).Build()))
	}
	return c.through(ctx, g.stages[1:], sessions)
}
