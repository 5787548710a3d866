package command

import (
	"context"
	"net"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/engine"
	"changerelay/services/sandbox/internal/mongodb/engine/oplog"
)

// ProfileCollection is where a database's profiler writes to.
const ProfileCollection = "system.profile"

// profileBytes is the size of a new one.
const profileBytes = 1 << 20

// Profiling is what a database notes of its commands.
type Profiling struct {
	// Level is 0 for none, 1 for the slow ones, 2 for all.
	Level int32
	// SlowMS is where a command is slow; it is that of all databases.
	SlowMS int32
}

// Profiler knows what each database notes
// (https://www.mongodb.com/docs/v4.4/reference/command/profile/).
type Profiler struct {
	mu     sync.Mutex
	levels map[string]int32
	slowMS int32
}

func newProfiler() *Profiler { return &Profiler{levels: map[string]int32{}, slowMS: 100} }

// Of is what a database notes.
func (p *Profiler) Of(db string) Profiling {
	p.mu.Lock()
	defer p.mu.Unlock()
	return Profiling{Level: p.levels[db], SlowMS: p.slowMS}
}

// Set changes what a database notes.
func (p *Profiler) Set(db string, wanted Profiling) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.slowMS = wanted.SlowMS; wanted.Level == 0 {
		delete(p.levels, db)
		return
	}
	p.levels[db] = wanted.Level
}

// note writes a command that is done into its database's profile, if that is
// asked for. What cannot be written is lost.
func (p *Profiler) note(ctx context.Context, c *Call, reply int) {
	took := time.Since(c.arrived).Milliseconds()
	wanted := p.Of(c.DB)
	if c.command == nil || c.target() == c.DB+"."+ProfileCollection {
		return
	}
	if wanted.Level == 0 || wanted.Level == 1 && took < int64(wanted.SlowMS) || c.Server.Engine.WritesLocked() {
		return
	}
	ns := oplog.Namespace{DB: c.DB, Collection: ProfileCollection}
	e := c.Server.Engine
	if _, there := e.Collection(ns); !there {
		capped := bsonkit.NewBuilder(nil)
		capped.Append("capped", bsonkit.Boolean(true))
		capped.Append("size", bsonkit.Int32(profileBytes))
		options, err := engine.NewCollectionOptions(capped.Finish())
		if err != nil || e.CreateCollection(ctx, nil, ns, options) != nil {
			return // made meanwhile, or the client has left
		}
	}
	doc, err := e.PrepareInsert(c.profile(took, reply))
	if err == nil {
		_, _ = e.Insert(ctx, engine.Write{}, ns, []bson.Raw{doc}) // as above
	}
}

// profile is the document of a command.
func (c *Call) profile(millis int64, reply int) bson.Raw {
	client, _, _ := net.SplitHostPort(c.Conn.Nc.RemoteAddr().String())
	protocol := "op_msg"
	if c.Request.Legacy {
		protocol = "op_query"
	}
	b := bsonkit.NewBuilder(nil)
	b.Append("op", bsonkit.String(kindOf(c.Name)))
	b.Append("ns", bsonkit.String(c.profiled()))
	b.Append("command", bsonkit.Document(c.Body))
	b.Append("responseLength", bsonkit.Int32(int32(reply)))
	b.Append("protocol", bsonkit.String(protocol))
	b.Append("millis", bsonkit.Int32(int32(millis)))
	b.Append("ts", bsonkit.Date(c.Now))
	b.Append("client", bsonkit.String(client))
	b.Append("appName", bsonkit.String(c.Conn.AppName))
	b.Append("allUsers", bsonkit.Array(nil))
	b.Append("user", bsonkit.String(""))
	return b.Finish()
}

// profiled is the namespace of a command: that of its collection, or $cmd.
func (c *Call) profiled() string {
	if target := c.target(); target != c.DB {
		return target
	}
	return c.DB + ".$cmd"
}
