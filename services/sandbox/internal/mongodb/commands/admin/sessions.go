package admin

import (
	"context"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/command"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
)

func startSession(_ context.Context, _ *command.Call, r *command.Reply) error {
	id := uuid.New()
	r.OpenDocument("id")
	r.Binary("id", bson.TypeBinaryUUID, id[:])
	r.Close()
	r.Int32("timeoutMinutes", command.SessionMinutes)
	return nil
}

// refreshSessions keeps what the sessions have open. A session that is not known
// is made when it is used.
func refreshSessions(_ context.Context, c *command.Call, _ *command.Reply) error {
	ids, err := sessionIDs(c)
	if err != nil {
		return err
	}
	for _, id := range ids {
		c.Server.Cursors.Refresh(id)
	}
	return nil
}

// endSessions ends what the sessions have open, and forgets them.
func endSessions(ctx context.Context, c *command.Call, _ *command.Reply) error {
	return eachSession(ctx, c, c.Server.Engine.EndSession)
}

// killSessions ends what the sessions have open. They go on with the numbers
// that they were at.
func killSessions(ctx context.Context, c *command.Call, _ *command.Reply) error {
	return eachSession(ctx, c, c.Server.Engine.KillSession)
}

func eachSession(ctx context.Context, c *command.Call, stop func(context.Context, []byte) error) error {
	ids, err := sessionIDs(c)
	if err != nil {
		return err
	}
	for _, id := range ids {
		c.Server.Cursors.KillWhere(func(cur *command.Cursor) bool { return cur.Lsid == string(id) })
		if err := stop(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

// killAllSessions ends what all sessions have open. Those of single users cannot
// be told.
func killAllSessions(_ context.Context, c *command.Call, _ *command.Reply) error {
	a := command.Arguments{Mismatch: mongoerr.TypeMismatch}
	first, _ := c.Body.IndexErr(0)
	if users := a.Array(c.Name, first.Value()); len(users) > 0 {
		a.Fail(mongoerr.NotImplemented, "%s of single users is not supported", c.Name)
	}
	if a.Err != nil {
		return a.Err
	}
	c.Server.Cursors.KillWhere(func(cur *command.Cursor) bool { return cur.Lsid != "" })
	c.Server.Engine.AbortTransactions()
	return nil
}

// sessionIDs are the lsids in the command's first field.
func sessionIDs(c *command.Call) ([]bson.Raw, error) {
	a := command.Arguments{Mismatch: mongoerr.TypeMismatch}
	first, _ := c.Body.IndexErr(0)
	var ids []bson.Raw
	for _, element := range a.Array(c.Name, first.Value()) {
		ids = append(ids, command.ParseSessionID(&a, element, c.Conn.Login.SessionOwner()))
	}
	for it := bsonkit.Iterate(c.Body); it.Next(); {
		if name := string(it.Key()); name != c.Name && !command.IsGeneric(name) {
			a.Unknown(40415, c.Name, name)
		}
	}
	return ids, a.Err
}
