package data

import (
	"bytes"
	"context"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/command"
	"changerelay/services/sandbox/internal/mongodb/engine"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
)

// operationsSource are the commands under way and the transactions that no command
// works in, of the own user or of all, for $currentOp
// (https://www.mongodb.com/docs/manual/reference/operator/aggregation/currentOp/).
func operationsSource(ctx context.Context, c *command.Call, g aggregation) (command.Source, error) {
	if c.DB != "admin" {
		return nil, mongoerr.New(mongoerr.InvalidNamespace, "$currentOp must be run against the 'admin' database with {aggregate: 1}")
	}
	a := command.Arguments{Mismatch: mongoerr.FailedToParse}
	stage, _ := bsonkit.Get(g.stages[0], "$currentOp")
	owner, idle := c.Conn.Login.SessionOwner(), true
	for it := bsonkit.Iterate(a.Document("$currentOp", stage)); it.Next(); {
		switch name := string(it.Key()); name {
		case "allUsers":
			if a.Boolean(name, it.Value()) {
				owner = nil
			}
		case "idleSessions":
			idle = a.Boolean(name, it.Value())
		case "idleConnections", "idleCursors", "localOps", "targetAllNodes", "truncateOps":
		default:
			a.Fail(mongoerr.FailedToParse, "Unrecognized option '%s' in $currentOp stage.", name)
		}
	}
	if a.Err != nil {
		return nil, a.Err
	}
	docs := c.Server.Operations.Describe(owner)
	if idle {
		now := c.Server.Engine.Now()
		for _, txn := range c.Server.Engine.IdleTransactions() {
			if uid, _ := bsonkit.Get(txn.ID.Session, "uid"); owner == nil || bytes.Equal(binary(uid), owner) {
				docs = append(docs, describeIdle(c, &txn, now))
			}
		}
	}
	return c.Through(ctx, g.stages[1:], &command.DocSource{Docs: docs})
}

func binary(v bson.RawValue) []byte {
	_, data, _ := v.BinaryOK()
	return data
}

// describeIdle is a transaction between two commands.
func describeIdle(c *command.Call, txn *engine.IdleTransaction, now time.Time) bson.Raw {
	open, inactive := now.Sub(txn.Began).Microseconds(), now.Sub(txn.LastUse).Microseconds()
	r := command.NewReply()
	r.Text("type", "idleSession")
	r.Text("host", c.Address())
	r.Text("desc", "inactive transaction")
	r.Text("client", txn.Client.Address)
	r.Text("appName", txn.Client.Application)
	r.Document("lsid", txn.ID.Session)
	r.OpenDocument("transaction")
	r.OpenDocument("parameters")
	r.Int64("txnNumber", txn.ID.Number)
	r.Boolean("autocommit", false)
	r.Close()
	r.Text("startWallClockTime", txn.Began.UTC().Format("2006-01-02T15:04:05.000+00:00"))
	r.Int64("timeOpenMicros", open)
	r.Int64("timeActiveMicros", open-inactive)
	r.Int64("timeInactiveMicros", inactive)
	r.Close()
	r.Boolean("waitingForLock", false)
	r.Boolean("active", false)
	r.Close()
	return r.Doc
}
