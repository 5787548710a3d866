package admin

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/command"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
)

func serverStatus(_ context.Context, c *command.Call, r *command.Reply) error {
	s := c.Server
	host, _ := os.Hostname()
	r.Text("host", host)
	r.Text("version", s.Version.String())
	r.Text("process", "mongod")
	r.Int64("pid", int64(os.Getpid()))
	uptime := time.Since(s.Started)
	r.Double("uptime", math.Floor(uptime.Seconds()))
	r.Int64("uptimeMillis", uptime.Milliseconds())
	r.Date("localTime", c.Now.UnixMilli())
	r.OpenDocument("connections")
	r.Int32("current", int32(s.Connections.Load()))
	r.Int32("available", maxConnections-int32(s.Connections.Load()))
	r.Int32("totalCreated", int32(s.LastConnection.Load()))
	r.Close()
	r.OpenDocument("asserts")
	for _, name := range []string{"regular", "warning", "msg", "user", "rollovers"} {
		r.Int32(name, 0)
	}
	r.Close()
	r.OpenDocument("opcounters")
	for _, kind := range command.OpKinds {
		r.Int64(kind, s.Counters.Of(kind))
	}
	r.Close()
	r.OpenDocument("opcountersRepl") // nothing comes from another member
	for _, kind := range command.OpKinds {
		r.Int64(kind, 0)
	}
	r.Close()
	r.OpenDocument("network")
	r.Int64("bytesIn", s.BytesIn.Load())
	r.Int64("bytesOut", s.BytesOut.Load())
	r.Int64("numRequests", s.Commands.Load())
	r.Close()
	writeLoad(r, s)
	r.OpenDocument("logicalSessionRecordCache")
	r.Int32("activeSessionsCount", int32(s.Engine.Sessions()))
	r.Close()
	cursors := s.Cursors.Stats()
	r.OpenDocument("metrics")
	r.OpenDocument("cursor")
	r.OpenDocument("open")
	r.Int64("total", int64(cursors.Open))
	r.Close()
	r.Close()
	r.Close()
	r.OpenDocument("repl")
	r.Text("setName", command.SetName)
	r.Int32("setVersion", 1)
	primary := s.Election.Now().Primary
	r.Boolean("ismaster", primary)
	r.Boolean("secondary", !primary)
	r.Strings("hosts", []string{c.Address()})
	if primary {
		r.Text("primary", c.Address())
	}
	r.Text("me", c.Address())
	r.Close()
	r.OpenDocument("storageEngine")
	r.Text("name", "sandbox")
	r.Boolean("supportsCommittedReads", true)
	r.Close()
	return nil
}

// writeLoad writes what is being done, and the memory that the process has of the
// system.
func writeLoad(r *command.Reply, s *command.Server) {
	readers, writers := s.Operations.Running()
	r.OpenDocument("globalLock")
	for name, counts := range map[string][2]int{"currentQueue": {}, "activeClients": {readers, writers}} {
		r.OpenDocument(name)
		r.Int32("total", int32(counts[0]+counts[1]))
		r.Int32("readers", int32(counts[0]))
		r.Int32("writers", int32(counts[1]))
		r.Close()
	}
	r.Close()
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	r.OpenDocument("mem")
	r.Int32("bits", strconv.IntSize)
	r.Int32("resident", int32((memory.Sys-memory.HeapReleased)>>20))
	r.Int32("virtual", int32(memory.Sys>>20))
	r.Boolean("supported", true)
	r.Close()
}

// maxConnections is what is shown as the most there can be.
const maxConnections = 51_200

func replSetGetStatus(_ context.Context, c *command.Call, r *command.Reply) error {
	at, majority, now := c.Server.Engine.OperationTime(), c.Server.Engine.CommittedTime(), c.Server.Election.Now()
	state, stateName := int32(1), "PRIMARY"
	if !now.Primary {
		state, stateName = 2, "SECONDARY"
	}
	r.Text("set", command.SetName)
	r.Date("date", c.Now.UnixMilli())
	r.Int32("myState", state)
	r.Int64("term", now.Term)
	r.Int64("heartbeatIntervalMillis", 2000)
	r.Int32("majorityVoteCount", 1)
	r.Int32("writeMajorityCount", 1)
	r.OpenDocument("optimes")
	opTime(r, "lastCommittedOpTime", majority, now.Term)
	opTime(r, "readConcernMajorityOpTime", majority, now.Term)
	opTime(r, "appliedOpTime", at, now.Term)
	opTime(r, "durableOpTime", at, now.Term)
	r.Close()
	r.OpenArray("members")
	r.OpenDocument("0")
	r.Int32("_id", 0)
	r.Text("name", c.Address())
	r.Double("health", 1)
	r.Int32("state", state)
	r.Text("stateStr", stateName)
	r.Int32("uptime", int32(time.Since(c.Server.Started).Seconds()))
	opTime(r, "optime", at, now.Term)
	r.Date("optimeDate", int64(at.Seconds())*1000)
	r.Int32("configVersion", 1)
	r.Boolean("self", true)
	r.Close()
	r.Close()
	return nil
}

func replSetGetConfig(_ context.Context, c *command.Call, r *command.Reply) error {
	r.OpenDocument("config")
	r.Text("_id", command.SetName)
	r.Int32("version", 1)
	r.Int64("protocolVersion", 1)
	r.OpenArray("members")
	r.OpenDocument("0")
	r.Int32("_id", 0)
	r.Text("host", c.Address())
	r.Double("priority", 1)
	r.Int32("votes", 1)
	r.Close()
	r.Close()
	r.Close()
	return nil
}

func whatsMyURI(_ context.Context, c *command.Call, r *command.Reply) error {
	r.Text("you", c.Conn.Nc.RemoteAddr().String())
	return nil
}

func getCmdLineOpts(_ context.Context, _ *command.Call, r *command.Reply) error {
	r.Strings("argv", []string{"mongod", "--replSet", command.SetName, "--setParameter", "enableTestCommands=1"})
	r.OpenDocument("parsed")
	r.OpenDocument("replication")
	r.Text("replSet", command.SetName)
	r.Close()
	r.OpenDocument("setParameter")
	r.Text("enableTestCommands", "1")
	r.Close()
	r.Close()
	return nil
}

func hostInfo(_ context.Context, c *command.Call, r *command.Reply) error {
	host, _ := os.Hostname()
	r.OpenDocument("system")
	r.Date("currentTime", c.Now.UnixMilli())
	r.Text("hostname", host)
	r.Int32("cpuAddrSize", strconv.IntSize)
	r.Int32("numCores", int32(runtime.NumCPU()))
	r.Text("cpuArch", runtime.GOARCH)
	r.Boolean("numaEnabled", false)
	r.Close()
	r.OpenDocument("os")
	r.Text("type", runtime.GOOS)
	r.Close()
	r.OpenDocument("extra")
	r.Close()
	return nil
}

// getNonce serves clients that ask for it before an authentication there is
// none of.
func getNonce(_ context.Context, _ *command.Call, r *command.Reply) error {
	r.Text("nonce", fmt.Sprintf("%016x", rand.Uint64()))
	return nil
}

// getLog has nothing to show; shells ask for the warnings of the start.
// getLog tells which logs there are, and that nothing was written to them: what
// the sandbox has to say is on its standard error.
func getLog(_ context.Context, c *command.Call, r *command.Reply) error {
	a := command.Arguments{Mismatch: mongoerr.TypeMismatch}
	first, _ := c.Body.IndexErr(0)
	switch name := a.Text(c.Name, first.Value()); name {
	case "*":
		r.Strings("names", []string{"global", "startupWarnings"})
	case "global", "startupWarnings":
		r.Int32("totalLinesWritten", 0)
		r.Strings("log", nil)
	default:
		a.Fail(mongoerr.OperationFailed, "No log named '%s'", name)
	}
	return a.Err
}

func dbStats(_ context.Context, c *command.Call, r *command.Reply) error {
	a := command.Arguments{Mismatch: mongoerr.TypeMismatch}
	scale := a.Scale(c.Body)
	if a.Err != nil {
		return a.Err
	}
	var objects, indexes, collections, views int
	var bytes int64
	for _, info := range c.Server.Engine.Collections(c.DB) {
		if info.Options.View != nil {
			views++
			continue
		}
		collections++
		objects += info.Count
		indexes += len(info.Indexes)
		bytes += info.Bytes
	}
	r.Text("db", c.DB)
	if views > 0 {
		collections++ // the collection of the views
		objects += views
		indexes++
	}
	r.Int32("collections", int32(collections))
	r.Int32("views", int32(views))
	r.Number("objects", int64(objects))
	average := 0.0
	if objects > 0 {
		average = float64(bytes) / float64(objects)
	}
	r.Double("avgObjSize", average)
	r.Double("dataSize", float64(bytes)/float64(scale))
	r.Double("storageSize", float64(bytes)/float64(scale))
	r.Int32("indexes", int32(indexes))
	r.Double("indexSize", 0)
	r.Double("totalSize", float64(bytes)/float64(scale))
	r.Double("scaleFactor", float64(scale))
	r.Double("fsUsedSize", float64(bytes))
	r.Double("fsTotalSize", float64(bytes))
	return nil
}

var star = bson.RawValue{Type: bson.TypeString, Value: []byte{2, 0, 0, 0, '*', 0}}
