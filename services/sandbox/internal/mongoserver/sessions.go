package mongoserver

import (
	"context"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/bsonkit"
	"changerelay/services/sandbox/internal/mongoerr"
)

func startSession(_ context.Context, _ *call, r *reply) error {
	id := uuid.New()
	r.openDocument("id")
	r.binary("id", bson.TypeBinaryUUID, id[:])
	r.close()
	r.int32("timeoutMinutes", sessionMinutes)
	return nil
}

// refreshSessions needs to do nothing: a session that is not known is made when
// it is used.
func refreshSessions(_ context.Context, c *call, _ *reply) error {
	_, err := c.sessionIDs()
	return err
}

// endSessions is also killSessions: both end what the sessions have open.
func endSessions(ctx context.Context, c *call, _ *reply) error {
	ids, err := c.sessionIDs()
	if err != nil {
		return err
	}
	for _, id := range ids {
		c.server.cursors.killWhere(func(cur *cursor) bool { return cur.lsid == string(id) })
		if err := c.server.engine.EndSession(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

// killAllSessions ends what all sessions have open. There are no users to kill
// those of one alone.
func killAllSessions(_ context.Context, c *call, _ *reply) error {
	c.server.cursors.killWhere(func(cur *cursor) bool { return cur.lsid != "" })
	c.server.engine.AbortTransactions()
	return nil
}

// sessionIDs are the lsids in the command's first field.
func (c *call) sessionIDs() ([]bson.Raw, error) {
	a := arguments{mismatch: mongoerr.TypeMismatch}
	first, _ := c.body.IndexErr(0)
	var ids []bson.Raw
	for _, element := range a.array(c.name, first.Value()) {
		ids = append(ids, parseSessionID(&a, element, c.conn.login.sessionOwner()))
	}
	for it := bsonkit.Iterate(c.body); it.Next(); {
		if name := string(it.Key()); name != c.name && !isGeneric(name) {
			a.unknown(40415, c.name, name)
		}
	}
	return ids, a.err
}
