package admin

import (
	"context"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/command"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
)

// currentOp lists the commands under way that the further fields match
// (https://www.mongodb.com/docs/v4.4/reference/command/currentOp/).
func currentOp(_ context.Context, c *command.Call, r *command.Reply) error {
	b := bsonkit.NewBuilder(nil)
	for it := bsonkit.Iterate(c.Body); it.Next(); {
		switch name := string(it.Key()); {
		case name == c.Name || name[:1] == "$" && command.IsGeneric(name) || command.IsGeneric(name):
		case name == "$all", name == "$ownOps", name == "$truncateOps":
		default:
			b.Append(name, it.Value())
		}
	}
	docs, err := c.Matching(b.Finish(), c.Server.Operations.Describe(nil))
	if err != nil {
		return err
	}
	r.OpenArray("inprog")
	for i, doc := range docs {
		r.Document(bsonkit.ArrayKey(i), doc)
	}
	r.Close()
	if c.Server.Engine.WritesLocked() {
		r.Boolean("fsyncLock", true)
		r.Text("info", "use db.fsyncUnlock() to terminate the fsync write/snapshot lock")
	}
	return nil
}

// killOp asks a command to end.
func killOp(_ context.Context, c *command.Call, r *command.Reply) error {
	a := command.Arguments{Mismatch: mongoerr.TypeMismatch}
	op, given := bsonkit.Get(c.Body, "op")
	if !given {
		return mongoerr.New(mongoerr.NoSuchKey, "Did not provide \"op\" field")
	}
	id := a.Integer("op", op)
	if a.Err != nil {
		return a.Err
	}
	c.Server.Operations.Kill(int32(id))
	r.Text("info", "attempting to kill op")
	return nil
}
