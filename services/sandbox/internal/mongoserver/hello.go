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

// topologyCounter counts the changes of the replica set, of which there are
// none after the election.
const topologyCounter = 6

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
		if c.knowsTopology(a.topology) && !pause(ctx, a.await) {
			return context.Cause(ctx)
		}
	}
	c.describe(r, a)
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

// knowsTopology compares what the client has seen with what is.
func (c *call) knowsTopology(seen bson.Raw) bool {
	process, _ := bsonkit.Get(seen, "processId")
	counter, _ := bsonkit.Get(seen, "counter")
	id, isID := process.ObjectIDOK()
	n, isNumber := counter.AsInt64OK()
	return isID && isNumber && id == c.server.process && n == topologyCounter
}

func (c *call) describe(r *reply, a helloArguments) {
	s, me := c.server, c.address()
	s.topologyVersion(r)
	r.strings("hosts", []string{me})
	r.text("setName", SetName)
	r.int32("setVersion", 1)
	if c.name == "hello" {
		r.boolean("isWritablePrimary", true)
	} else {
		r.boolean("ismaster", true)
	}
	r.boolean("secondary", false)
	r.text("primary", me)
	r.text("me", me)
	r.objectID("electionId", electionID)
	c.lastWrite(r)
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

func (s *Server) topologyVersion(r *reply) {
	r.openDocument("topologyVersion")
	r.objectID("processId", s.process)
	r.int64("counter", topologyCounter)
	r.close()
}

const (
	maxWriteBatch  = 100_000
	sessionMinutes = 30
	// term is the election term of the one member.
	term = 1
)

var electionID = bson.ObjectID{0x7f, 0xff, 0xff, 0xff, 11: term}

func (c *call) lastWrite(r *reply) {
	at := c.server.engine.OperationTime()
	r.openDocument("lastWrite")
	for _, name := range []string{"opTime", "majorityOpTime"} {
		r.openDocument(name)
		r.timestamp("ts", at)
		r.int64("t", term)
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
