package admin

import (
	"context"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/access"
	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/command"
	"changerelay/services/sandbox/internal/mongodb/election"
	"changerelay/services/sandbox/internal/mongodb/engine/oplog"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
	"changerelay/services/sandbox/internal/mongodb/mongowire"
)

// minWireVersion is the first wire version that the server speaks; clients
// check it, and the last, against their own.
const minWireVersion = 0

// helloArguments are those of hello and of its older name isMaster.
type helloArguments struct {
	helloOK  bool
	awaited  bool // maxAwaitTimeMS is given
	await    time.Duration
	topology bson.Raw
	// saslMechanisms asks for those of a user, saslStart for the beginning of an
	// authentication.
	saslMechanisms *access.Name
	saslStart      bson.Raw
}

// hello tells a client what it talks to; or, if the client knows already, waits
// for that to change (https://github.com/mongodb/specifications/blob/master/source/server-discovery-and-monitoring/server-monitoring.md).
func hello(ctx context.Context, c *command.Call, r *command.Reply) error {
	a, err := parseHello(c)
	if err != nil {
		return err
	}
	if a.topology != nil {
		c.More = c.Request.Flags&mongowire.ExhaustAllowed != 0
		counter, known := knownTopology(c, a.topology)
		if c.Conn.Told > 0 {
			counter, known = c.Conn.Told, true
		}
		if known {
			if err := c.Server.Election.Await(ctx, counter, a.await); err != nil {
				return err
			}
		}
	}
	now := c.Server.Election.Now()
	if c.More {
		c.Conn.Told = now.Counter
	}
	describe(c, r, a, now)
	return nil
}

func parseHello(c *command.Call) (helloArguments, error) {
	var h helloArguments
	a := command.Arguments{Mismatch: mongoerr.TypeMismatch}
	first := !c.Conn.Greeted
	for it := bsonkit.Iterate(c.Body); it.Next(); {
		name, v := string(it.Key()), it.Value()
		switch name {
		case "helloOk":
			h.helloOK = a.Truth(name, v)
		case "topologyVersion":
			h.topology = a.Document(name, v)
		case "maxAwaitTimeMS":
			h.awaited, h.await = true, a.Milliseconds(name, v)
		case "saslSupportedMechs":
			db, user, _ := strings.Cut(a.Text(name, v), ".")
			h.saslMechanisms = &access.Name{Name: user, DB: db}
		case "speculativeAuthenticate":
			h.saslStart = a.Document(name, v)
		case "client":
			if !first {
				a.Fail(mongoerr.ClientMetadataCannotBeMutated, "The client metadata document may only be sent in the first hello")
			}
			if name, ok := bsonkit.Lookup(a.Document(name, v), "application.name"); ok {
				c.Conn.AppName, _ = name.StringValueOK()
			}
		}
	}
	if (h.topology != nil) != h.awaited {
		a.Fail(31368, "A request with a 'topologyVersion' must include 'maxAwaitTimeMS', and the other way round")
	}
	c.Conn.Greeted = true
	return h, a.Err
}

// knownTopology is the counter that the client has seen; known is false if it
// has seen another process.
func knownTopology(c *command.Call, seen bson.Raw) (counter int64, known bool) {
	process, _ := bsonkit.Get(seen, "processId")
	id, isID := process.ObjectIDOK()
	last, _ := bsonkit.Get(seen, "counter")
	counter, isNumber := last.AsInt64OK()
	return counter, isID && isNumber && id == c.Server.Process
}

func describe(c *command.Call, r *command.Reply, a helloArguments, now election.Standing) {
	me := c.Address()
	c.Server.TopologyVersion(r, now)
	r.Strings("hosts", []string{me})
	r.Text("setName", command.SetName)
	r.Int32("setVersion", 1)
	if c.Name == "hello" {
		r.Boolean("isWritablePrimary", now.Primary)
	} else {
		r.Boolean("ismaster", now.Primary)
	}
	r.Boolean("secondary", !now.Primary)
	if now.Primary {
		r.Text("primary", me)
	}
	r.Text("me", me)
	if now.Primary {
		r.ObjectID("electionId", now.ElectionID())
	}
	lastWrite(c, r, now)
	r.Int32("maxBsonObjectSize", bsonkit.MaxDocument)
	r.Int32("maxMessageSizeBytes", mongowire.MaxMessageBytes)
	r.Int32("maxWriteBatchSize", command.MaxWriteBatch)
	r.Date("localTime", c.Now.UnixMilli())
	r.Int32("logicalSessionTimeoutMinutes", command.SessionMinutes)
	r.Int32("connectionId", int32(c.Conn.ID))
	r.Int32("minWireVersion", minWireVersion)
	r.Int32("maxWireVersion", c.Server.Version.WireVersion())
	r.Boolean("readOnly", false)
	if a.helloOK && c.Server.Version.Has(5) {
		r.Boolean("helloOk", true)
	}
	describeAuthentication(c, r, a)
}

// describeAuthentication answers the parts of a hello that spare a client round
// trips.
func describeAuthentication(c *command.Call, r *command.Reply, a helloArguments) {
	if a.saslMechanisms != nil {
		if mechanisms, err := c.Server.Accounts.Mechanisms(*a.saslMechanisms); err == nil && mechanisms != nil {
			r.Strings("saslSupportedMechs", mechanismNames(mechanisms))
		}
	}
	if a.saslStart == nil {
		return
	}
	db, _ := bsonkit.Get(a.saslStart, "db")
	name, _ := db.StringValueOK()
	if answer, err := startExchange(c, a.saslStart, name); err == nil {
		r.Document("speculativeAuthenticate", answer)
	}
}

func lastWrite(c *command.Call, r *command.Reply, now election.Standing) {
	at, majority := c.Server.Engine.OperationTime(), c.Server.Engine.CommittedTime()
	r.OpenDocument("lastWrite")
	opTime(r, "opTime", at, now.Term)
	opTime(r, "majorityOpTime", majority, now.Term)
	r.Date("lastWriteDate", int64(at.Seconds())*1000)
	r.Date("majorityWriteDate", int64(majority.Seconds())*1000)
	r.Close()
}

// opTime writes the place of an entry of the oplog.
func opTime(r *command.Reply, name string, at oplog.Timestamp, term int64) {
	r.OpenDocument(name)
	r.Timestamp("ts", at)
	r.Int64("t", term)
	r.Close()
}
