package mongoserver

import (
	"context"
	"time"

	"changerelay/services/sandbox/internal/bsonkit"
	"changerelay/services/sandbox/internal/mongoerr"
)

// getParameter shows what setParameter can set, and what clients ask for.
func getParameter(_ context.Context, c *call, r *reply) error {
	all, shown := false, 0
	wanted := map[string]bool{}
	for it := bsonkit.Iterate(c.body); it.Next(); {
		name := string(it.Key())
		if name == c.name {
			all = it.Value().Equal(star)
		} else if !isGeneric(name) {
			wanted[name] = true
		}
	}
	for _, p := range []struct {
		name  string
		write func(name string)
	}{
		{"featureCompatibilityVersion", func(name string) {
			r.openDocument(name)
			r.text("version", "4.4")
			r.close()
		}},
		{"ttlMonitorSleepSecs", func(name string) { r.int32(name, int32(c.server.engine.TTLInterval()/time.Second)) }},
		{"enableTestCommands", func(name string) { r.boolean(name, true) }},
		{"authenticationMechanisms", func(name string) { r.strings(name, nil) }},
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

func setParameter(_ context.Context, c *call, r *reply) error {
	a := arguments{mismatch: mongoerr.TypeMismatch}
	set := 0
	for it := bsonkit.Iterate(c.body); it.Next(); {
		name, v := string(it.Key()), it.Value()
		switch {
		case name == c.name || isGeneric(name):
			continue
		case name == "ttlMonitorSleepSecs":
			seconds := a.integer(name, v)
			if seconds < 1 {
				a.fail(mongoerr.BadValue, "ttlMonitorSleepSecs must be greater than 0")
			}
			if a.err == nil {
				r.int32("was", int32(c.server.engine.TTLInterval()/time.Second))
				c.server.engine.SetTTLInterval(time.Duration(seconds) * time.Second)
			}
		case name == "syncdelay":
			// The pause between checkpoints: there are none that a client could see.
			a.integer(name, v)
		default:
			a.fail(mongoerr.InvalidOptions, "attempted to set unrecognized parameter [%s], use help:true to see options", name)
		}
		set++
	}
	if set == 0 {
		a.fail(mongoerr.InvalidOptions, "no option found to set, use help:true to see options")
	}
	return a.err
}
