package mongoserver

import (
	"context"
	"net"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/bsonkit"
	"changerelay/services/sandbox/internal/mongoerr"
	"changerelay/services/sandbox/internal/mongowire"
	"changerelay/services/sandbox/internal/scram"
)

// Wire versions that this version of the server speaks; clients check them
// against their own.
const (
	minWireVersion = 0
	maxWireVersion = 9
)

// helloArguments are those of hello and of its older name isMaster.
type helloArguments struct {
	helloOK  bool
	awaited  bool // maxAwaitTimeMS is given
	await    time.Duration
	topology bson.Raw
	// saslMechanisms asks for those of a user, saslStart for the beginning of an
	// authentication.
	saslMechanisms bool
	saslStart      bson.Raw
}

// hello tells a client what it talks to; or, if the client knows already, waits
// for that to change (https://github.com/mongodb/specifications/blob/master/source/server-discovery-and-monitoring/server-monitoring.md).
func hello(ctx context.Context, c *call, r *reply) error {
	a, err := c.helloArguments()
	if err != nil {
		return err
	}
	if a.topology != nil {
		c.more = c.request.Flags&mongowire.ExhaustAllowed != 0
		counter, known := c.knownTopology(a.topology)
		if c.conn.told > 0 {
			counter, known = c.conn.told, true
		}
		if known {
			if err := c.server.election.await(ctx, counter, a.await); err != nil {
				return err
			}
		}
	}
	now := c.server.election.now()
	if c.more {
		c.conn.told = now.counter
	}
	c.describe(r, a, now)
	return nil
}

func (c *call) helloArguments() (helloArguments, error) {
	var h helloArguments
	a := arguments{mismatch: mongoerr.TypeMismatch}
	first := !c.conn.greeted
	for it := bsonkit.Iterate(c.body); it.Next(); {
		name, v := string(it.Key()), it.Value()
		switch name {
		case "helloOk":
			h.helloOK = a.truth(name, v)
		case "topologyVersion":
			h.topology = a.document(name, v)
		case "maxAwaitTimeMS":
			h.awaited, h.await = true, a.milliseconds(name, v)
		case "saslSupportedMechs":
			h.saslMechanisms = true
		case "speculativeAuthenticate":
			h.saslStart = a.document(name, v)
		case "client":
			if !first {
				a.fail(mongoerr.ClientMetadataCannotBeMutated, "The client metadata document may only be sent in the first hello")
			}
			if name, ok := bsonkit.Lookup(a.document(name, v), "application.name"); ok {
				c.conn.appName, _ = name.StringValueOK()
			}
		}
	}
	if (h.topology != nil) != h.awaited {
		a.fail(31368, "A request with a 'topologyVersion' must include 'maxAwaitTimeMS', and the other way round")
	}
	c.conn.greeted = true
	return h, a.err
}

// knownTopology is the counter that the client has seen; known is false if it
// has seen another process.
func (c *call) knownTopology(seen bson.Raw) (counter int64, known bool) {
	process, _ := bsonkit.Get(seen, "processId")
	id, isID := process.ObjectIDOK()
	last, _ := bsonkit.Get(seen, "counter")
	counter, isNumber := last.AsInt64OK()
	return counter, isID && isNumber && id == c.server.process
}

func (c *call) describe(r *reply, a helloArguments, now standing) {
	me := c.address()
	c.server.topologyVersion(r, now)
	r.strings("hosts", []string{me})
	r.text("setName", SetName)
	r.int32("setVersion", 1)
	if c.name == "hello" {
		r.boolean("isWritablePrimary", now.primary)
	} else {
		r.boolean("ismaster", now.primary)
	}
	r.boolean("secondary", !now.primary)
	if now.primary {
		r.text("primary", me)
	}
	r.text("me", me)
	if now.primary {
		r.objectID("electionId", now.electionID())
	}
	c.lastWrite(r, now)
	r.int32("maxBsonObjectSize", mongowire.MaxDocumentBytes)
	r.int32("maxMessageSizeBytes", mongowire.MaxMessageBytes)
	r.int32("maxWriteBatchSize", maxWriteBatch)
	r.date("localTime", c.now.UnixMilli())
	r.int32("logicalSessionTimeoutMinutes", sessionMinutes)
	r.int32("connectionId", int32(c.conn.id))
	r.int32("minWireVersion", minWireVersion)
	r.int32("maxWireVersion", maxWireVersion)
	r.boolean("readOnly", false)
	if a.helloOK {
		r.boolean("helloOk", true)
	}
	c.describeAuthentication(r, a)
}

// describeAuthentication answers the parts of a hello that spare a client round
// trips. They say the same of users that there are not.
func (c *call) describeAuthentication(r *reply, a helloArguments) {
	if a.saslMechanisms {
		r.strings("saslSupportedMechs", []string{scram.Mechanism})
	}
	if a.saslStart == nil {
		return
	}
	db, _ := bsonkit.Get(a.saslStart, "db")
	name, _ := db.StringValueOK()
	if answer, err := c.startExchange(a.saslStart, name); err == nil {
		r.document("speculativeAuthenticate", answer)
	}
}

func (s *Server) topologyVersion(r *reply, now standing) {
	r.openDocument("topologyVersion")
	r.objectID("processId", s.process)
	r.int64("counter", now.counter)
	r.close()
}

const (
	maxWriteBatch  = 100_000
	sessionMinutes = 30
)

func (c *call) lastWrite(r *reply, now standing) {
	at := c.server.engine.OperationTime()
	r.openDocument("lastWrite")
	for _, name := range []string{"opTime", "majorityOpTime"} {
		r.openDocument(name)
		r.timestamp("ts", at)
		r.int64("t", now.term)
		r.close()
	}
	r.date("lastWriteDate", int64(at.Seconds())*1000)
	r.date("majorityWriteDate", int64(at.Seconds())*1000)
	r.close()
}

// address is where the client can reach the server: the address it came to, if
// the server listens on all.
func (c *call) address() string {
	bound := c.server.Addr()
	if tcp, ok := bound.(*net.TCPAddr); ok && tcp.IP.IsUnspecified() {
		return c.conn.nc.LocalAddr().String()
	}
	return bound.String()
}
