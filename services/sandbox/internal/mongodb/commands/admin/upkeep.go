package admin

import (
	"context"
	"math"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/command"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
)

// fsync waits until all that was written is durable. With lock no statement
// writes until fsyncUnlock was called as often.
func fsync(_ context.Context, c *command.Call, r *command.Reply) error {
	if command.IsTrue(c.Body, "lock") {
		times := c.Server.Engine.LockWrites()
		r.Text("info", "now locked against writes, use db.fsyncUnlock() to unlock")
		r.Int64("lockCount", int64(times))
		r.Text("seeAlso", "http://dochub.mongodb.org/core/fsynccommand")
		return c.Server.Engine.Durable()
	}
	if err := c.Server.Engine.Durable(); err != nil {
		return err
	}
	r.Int32("numFiles", 1)
	return nil
}

func fsyncUnlock(_ context.Context, c *command.Call, r *command.Reply) error {
	left, err := c.Server.Engine.UnlockWrites()
	if err != nil {
		return mongoerr.New(mongoerr.IllegalOperation, "fsyncUnlock called when not locked")
	}
	r.Text("info", "fsyncUnlock completed")
	r.Int64("lockCount", int64(left))
	return nil
}

// resetError forgets the write before it.
func resetError(_ context.Context, c *command.Call, _ *command.Reply) error {
	c.Conn.LastWrite = nil
	return nil
}

// profile changes or tells what the database notes of its commands.
func profile(_ context.Context, c *command.Call, r *command.Reply) error {
	a := command.Arguments{Mismatch: mongoerr.TypeMismatch}
	was := c.Server.Profiler.Of(c.DB)
	wanted := was
	for it := bsonkit.Iterate(c.Body); it.Next(); {
		switch name, v := string(it.Key()), it.Value(); {
		case name == c.Name:
			if level := a.Integer(name, v); level >= 0 && level <= 2 {
				wanted.Level = int32(level)
			}
		case name == "slowms":
			wanted.SlowMS = int32(max(min(a.Integer(name, v), math.MaxInt32), math.MinInt32))
		case name == "sampleRate":
			if rate, ok := bsonkit.Truncated(v); !ok || rate != 1 {
				a.Fail(mongoerr.NotImplemented, "profile with a sampleRate but 1 is not supported")
			}
		case name == "filter":
			a.Fail(mongoerr.NotImplemented, "profile with %s is not supported", name)
		case !command.IsGeneric(name):
			a.Unknown(40415, c.Name, name)
		}
	}
	if a.Err != nil {
		return a.Err
	}
	c.Server.Profiler.Set(c.DB, wanted)
	r.Int32("was", was.Level)
	r.Int32("slowms", was.SlowMS)
	r.Double("sampleRate", 1)
	return nil
}
