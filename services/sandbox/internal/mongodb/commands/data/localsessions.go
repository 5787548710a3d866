package data

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/command"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
)

// sessionsSource runs a pipeline over the sessions that are known:
// $listLocalSessions.
func sessionsSource(ctx context.Context, c *command.Call, g aggregation) (command.Source, error) {
	a := command.Arguments{Mismatch: mongoerr.TypeMismatch}
	stage, _ := bsonkit.Get(g.stages[0], "$listLocalSessions")
	for it := bsonkit.Iterate(a.Document("$listLocalSessions", stage)); it.Next(); {
		if name := string(it.Key()); name != "allUsers" && name != "users" {
			a.Unknown(40415, "$listLocalSessions", name)
		}
	}
	if a.Err != nil {
		return nil, a.Err
	}
	sessions := &command.DocSource{}
	for _, known := range c.Server.Engine.KnownSessions() {
		sessions.Docs = append(sessions.Docs, bson.Raw(bsoncore.NewDocumentBuilder().
			AppendDocument("_id", known.ID).AppendDateTime("lastUse", known.LastUse.UnixMilli()).Build()))
	}
	return c.Through(ctx, g.stages[1:], sessions)
}
