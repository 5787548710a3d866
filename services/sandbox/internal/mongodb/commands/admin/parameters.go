package admin

import (
	"context"
	"time"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/command"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
)

// getParameter shows what SetParameter can set, and what clients ask for.
func getParameter(_ context.Context, c *command.Call, r *command.Reply) error {
	all, shown := false, 0
	wanted := map[string]bool{}
	for it := bsonkit.Iterate(c.Body); it.Next(); {
		name := string(it.Key())
		if name == c.Name {
			all = it.Value().Equal(star)
		} else if !command.IsGeneric(name) {
			wanted[name] = true
		}
	}
	for _, p := range []struct {
		name  string
		write func(name string)
	}{
		{"featureCompatibilityVersion", func(name string) {
			r.OpenDocument(name)
			r.Text("version", c.Server.Version.Series())
			r.Close()
		}},
		{"ttlMonitorSleepSecs", func(name string) { r.Int32(name, int32(c.Server.Engine.TTLInterval()/time.Second)) }},
		{"enableTestCommands", func(name string) { r.Boolean(name, true) }},
		{"ttlMonitorEnabled", func(name string) { r.Boolean(name, true) }},
		{"transactionLifetimeLimitSeconds", func(name string) { r.Int32(name, 60) }},
		{"cursorTimeoutMillis", func(name string) { r.Int64(name, command.CursorTimeout.Milliseconds()) }},
		{"localLogicalSessionTimeoutMinutes", func(name string) { r.Int32(name, 30) }},
		{"internalQueryMaxBlockingSortMemoryUsageBytes", func(name string) { r.Int32(name, 100<<20) }},
		{"authenticationMechanisms", func(name string) { r.Strings(name, nil) }},
	} {
		if all || wanted[p.name] {
			p.write(p.name)
			shown++
		}
	}
	if shown == 0 {
		return mongoerr.New(noCode, "no option found to get")
	}
	return nil
}

// noCode is that of the few errors which the server answers without one.
const noCode mongoerr.Code = 0

func setParameter(_ context.Context, c *command.Call, r *command.Reply) error {
	a := command.Arguments{Mismatch: mongoerr.TypeMismatch}
	set := 0
	for it := bsonkit.Iterate(c.Body); it.Next(); {
		name, v := string(it.Key()), it.Value()
		switch {
		case name == c.Name || command.IsGeneric(name):
			continue
		case name == "ttlMonitorSleepSecs":
			seconds := a.Integer(name, v)
			if seconds < 1 {
				a.Fail(mongoerr.BadValue, "ttlMonitorSleepSecs must be greater than 0")
			}
			if a.Err == nil {
				r.Int32("was", int32(c.Server.Engine.TTLInterval()/time.Second))
				c.Server.Engine.SetTTLInterval(time.Duration(seconds) * time.Second)
			}
		case name == "syncdelay":
			// The pause between checkpoints: there are none that a client could see.
			a.Integer(name, v)
		default:
			a.Fail(mongoerr.InvalidOptions, "attempted to set unrecognized parameter [%s], use help:true to see options", name)
		}
		set++
	}
	if set == 0 {
		a.Fail(mongoerr.InvalidOptions, "no option found to set, use help:true to see options")
	}
	return a.Err
}
