package mongoserver

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

func serverStatus(_ context.Context, c *call, r *reply) error {
	s := c.server
	host, _ := os.Hostname()
	r.text("host", host)
	r.text("version", Version)
	r.text("process", "mongod")
	r.int64("pid", int64(os.Getpid()))
	uptime := time.Since(s.started)
	r.double("uptime", uptime.Seconds())
	r.int64("uptimeMillis", uptime.Milliseconds())
	r.date("localTime", c.now.UnixMilli())
	r.openDocument("connections")
	r.int32("current", int32(s.connections.Load()))
	r.int64("totalCreated", s.lastConnection.Load())
	r.close()
	r.openDocument("logicalSessionRecordCache")
	r.int32("activeSessionsCount", int32(s.engine.Sessions()))
	r.close()
	cursors := s.cursors.stats()
	r.openDocument("metrics")
	r.openDocument("cursor")
	r.openDocument("open")
	r.int64("total", int64(cursors.Open))
	r.close()
	r.close()
	r.close()
	r.openDocument("repl")
	r.text("setName", SetName)
	r.int32("setVersion", 1)
	r.boolean("ismaster", true)
	r.boolean("secondary", false)
	r.strings("hosts", []string{c.address()})
	r.text("primary", c.address())
	r.text("me", c.address())
	r.close()
	r.openDocument("storageEngine")
	r.text("name", "sandbox")
	r.boolean("supportsCommittedReads", true)
	r.close()
	return nil
}

func replSetGetStatus(_ context.Context, c *call, r *reply) error {
	at, now := c.server.engine.OperationTime(), c.server.election.now()
	state, stateName := int32(1), "PRIMARY"
	if !now.primary {
		state, stateName = 2, "SECONDARY"
	}
	r.text("set", SetName)
	r.date("date", c.now.UnixMilli())
	r.int32("myState", state)
	r.int64("term", now.term)
	r.int64("heartbeatIntervalMillis", 2000)
	r.int32("majorityVoteCount", 1)
	r.int32("writeMajorityCount", 1)
	r.openDocument("optimes")
	for _, name := range []string{"lastCommittedOpTime", "readConcernMajorityOpTime", "appliedOpTime", "durableOpTime"} {
		r.openDocument(name)
		r.timestamp("ts", at)
		r.int64("t", now.term)
		r.close()
	}
	r.close()
	r.openArray("members")
	r.openDocument("0")
	r.int32("_id", 0)
	r.text("name", c.address())
	r.double("health", 1)
	r.int32("state", state)
	r.text("stateStr", stateName)
	r.int32("uptime", int32(time.Since(c.server.started).Seconds()))
	r.openDocument("optime")
	r.timestamp("ts", at)
	r.int64("t", now.term)
	r.close()
	r.date("optimeDate", int64(at.Seconds())*1000)
	r.int32("configVersion", 1)
	r.boolean("self", true)
	r.close()
	r.close()
	return nil
}

func replSetGetConfig(_ context.Context, c *call, r *reply) error {
	r.openDocument("config")
	r.text("_id", SetName)
	r.int32("version", 1)
	r.int64("protocolVersion", 1)
	r.openArray("members")
	r.openDocument("0")
	r.int32("_id", 0)
	r.text("host", c.address())
	r.double("priority", 1)
	r.int32("votes", 1)
	r.close()
	r.close()
	r.close()
	return nil
}

func whatsMyURI(_ context.Context, c *call, r *reply) error {
	r.text("you", c.conn.nc.RemoteAddr().String())
	return nil
}

func getCmdLineOpts(_ context.Context, _ *call, r *reply) error {
	r.strings("argv", nil)
	r.openDocument("parsed")
	r.close()
	return nil
}

func hostInfo(_ context.Context, c *call, r *reply) error {
	host, _ := os.Hostname()
	r.openDocument("system")
	r.date("currentTime", c.now.UnixMilli())
	r.text("hostname", host)
	r.close()
	return nil
}

// getNonce serves clients that ask for it before an authentication there is
// none of.
func getNonce(_ context.Context, _ *call, r *reply) error {
	r.text("nonce", fmt.Sprintf("%016x", rand.Uint64()))
	return nil
}

// getLog has nothing to show; shells ask for the warnings of the start.
func getLog(_ context.Context, _ *call, r *reply) error {
	r.int32("totalLinesWritten", 0)
	r.strings("log", nil)
	return nil
}

func dbStats(_ context.Context, c *call, r *reply) error {
	var objects, indexes int
	var bytes int64
	infos := c.server.engine.Collections(c.db)
	for _, info := range infos {
		objects += info.Count
		indexes += len(info.Indexes)
		bytes += info.Bytes
	}
	r.text("db", c.db)
	r.int32("collections", int32(len(infos)))
	r.int32("views", 0)
	r.int64("objects", int64(objects))
	r.double("dataSize", float64(bytes))
	r.double("storageSize", float64(bytes))
	r.int32("indexes", int32(indexes))
	return nil
}

var star = bson.RawValue{Type: bson.TypeString, Value: []byte{2, 0, 0, 0, '*', 0}}
