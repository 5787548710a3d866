package changestream_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/publisher/internal/changestream"
	"changerelay/services/publisher/internal/checkpoint"
	"changerelay/services/publisher/internal/testserver"
)

func TestProbe_AStandaloneServerIsRefusedWithWhatToDo(t *testing.T) {
	t.Parallel()
	client := testserver.Connect(t, "mongodb://"+fake(t, bson.D{{Key: "helloOk", Value: true}}, true)+"/?directConnection=true")
	err := changestream.Probe(t.Context(), client)
	halt, ok := errors.AsType[*changestream.HaltError](err)
	if !ok || halt.Reason != changestream.NotReplicated || !strings.Contains(err.Error(), "rs.initiate()") {
		t.Errorf("Probe = %v, want it to say that a replica set is needed, and how to make one", err)
	}
}

func TestProbe_AServerThatDoesNotKnowHelloIsAskedByTheOlderName(t *testing.T) {
	t.Parallel()
	address := fake(t, bson.D{{Key: "setName", Value: "rs0"}, {Key: "operationTime", Value: bson.Timestamp{T: 5, I: 6}}}, false)
	client := testserver.Connect(t, "mongodb://"+address+"/?directConnection=true")
	if err := changestream.Probe(t.Context(), client); err != nil {
		t.Errorf("Probe = %v, want the replica set found", err)
	}
	if now, err := changestream.Now(t.Context(), client); err != nil || now.Seconds != 5 || now.Increment != 7 {
		t.Errorf("Now = %+v, %v, want behind the server's last operation", now, err)
	}
}

func TestProbe_AServerThatIsTooOldIsRefusedByName(t *testing.T) {
	t.Parallel()
	address := fake(t, bson.D{{Key: "setName", Value: "rs0"}, {Key: "maxWireVersion", Value: 6}}, false)
	err := changestream.Probe(t.Context(), testserver.Connect(t, "mongodb://"+address+"/?directConnection=true"))
	halt, ok := errors.AsType[*changestream.HaltError](err)
	if !ok || halt.Reason != changestream.TooOld || !strings.Contains(err.Error(), "4.4 or later") {
		t.Errorf("Probe = %v, want it to say which version is needed", err)
	}
}

// TestLatest_TheClockOfAPrimaryCountsAndThatOfARouterDoesNot asks sources whose last
// note is long ago.
func TestLatest_TheClockOfAPrimaryCountsAndThatOfARouterDoesNot(t *testing.T) {
	t.Parallel()
	clock, note := time.Unix(1_800_000_000, 500e6), bson.Timestamp{T: 1_700_000_000, I: 6}
	behind := checkpoint.ClusterTime{Seconds: note.T, Increment: note.I + 1}
	for name, tt := range map[string]struct {
		more bson.D
		want checkpoint.ClusterTime
	}{
		"a primary": {
			bson.D{{Key: "setName", Value: "rs0"}, {Key: "localTime", Value: clock}}, checkpoint.ClusterTime{Seconds: 1_800_000_000},
		},
		"a secondary": {
			bson.D{{Key: "setName", Value: "rs0"}, {Key: "localTime", Value: clock}, {Key: "isWritablePrimary", Value: false}, {Key: "ismaster", Value: false}}, behind,
		},
		"a router": {bson.D{{Key: "msg", Value: "isdbgrid"}, {Key: "localTime", Value: clock}}, behind},
		"a primary whose clock went back": {
			bson.D{{Key: "setName", Value: "rs0"}, {Key: "localTime", Value: clock.AddDate(-10, 0, 0)}}, behind,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address := fake(t, append(tt.more, bson.E{Key: "operationTime", Value: note}), true)
			client := testserver.Connect(t, "mongodb://"+address+"/?directConnection=true")
			if got, err := changestream.Latest(t.Context(), client); err != nil || got != tt.want {
				t.Errorf("Latest = %+v, %v, want %+v", got, err, tt.want)
			}
		})
	}
}

// TestIdentify_AnotherIDInOneShardedClusterIsNoOtherCollection: reshardCollection,
// unshardCollection and moveCollection give one.
func TestIdentify_AnotherIDInOneShardedClusterIsNoOtherCollection(t *testing.T) {
	t.Parallel()
	cluster := bson.NewObjectID()
	// The answer to each question: what config.version has, and listCollections.
	found := bson.D{
		{Key: "clusterId", Value: cluster},
		{Key: "name", Value: "events"},
		{Key: "info", Value: bson.D{{Key: "uuid", Value: bson.Binary{Subtype: bson.TypeBinaryUUID, Data: make([]byte, 16)}}}},
	}
	cursor := bson.E{Key: "cursor", Value: bson.D{{Key: "id", Value: int64(0)}, {Key: "ns", Value: "shop.events"}, {Key: "firstBatch", Value: bson.A{found}}}}
	for name, tt := range map[string]struct {
		what  bson.E
		was   string
		other bool
	}{
		"the same sharded cluster":   {bson.E{Key: "msg", Value: "isdbgrid"}, cluster.Hex(), false},
		"a cluster that was unknown": {bson.E{Key: "msg", Value: "isdbgrid"}, "", true},
		"a replica set":              {bson.E{Key: "setName", Value: "rs0"}, cluster.Hex(), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address := fake(t, bson.D{tt.what, cursor}, true)
			events := testserver.Connect(t, "mongodb://"+address+"/?directConnection=true").Database("shop").Collection("events")
			now, err := changestream.Of(events).Identify(t.Context())
			if err != nil || len(now.Collections) != 1 {
				t.Fatalf("Identify = %+v, %v, want the collection with its id", now, err)
			}
			was := checkpoint.Origin{Cluster: tt.was, Collections: map[string]string{"events": "another"}}
			if others := was.OtherCollections(now); (others != "") != tt.other {
				t.Errorf("other collections: %q, want some: %v", others, tt.other)
			}
		})
	}
}

// fake serves the handshake, and nothing else, as a server without a replica set
// does; or with what more says. It knows hello or not. It returns its address.
func fake(t *testing.T, more bson.D, knowsHello bool) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var conns []net.Conn
	var serving sync.WaitGroup
	t.Cleanup(func() {
		_ = listener.Close()
		mu.Lock()
		for _, conn := range conns {
			_ = conn.Close()
		}
		mu.Unlock()
		serving.Wait()
	})
	serving.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			conns = append(conns, conn)
			mu.Unlock()
			serving.Go(func() {
				for answerHello(conn, more, knowsHello) == nil {
				}
			})
		}
	})
	return listener.Addr().String()
}

// answerHello answers one OP_QUERY or OP_MSG.
// See https://www.mongodb.com/docs/manual/reference/mongodb-wire-protocol/
func answerHello(conn net.Conn, more bson.D, knowsHello bool) error {
	const opReply, opQuery, opMsg = 1, 2004, 2013
	var header [16]byte
	if _, err := io.ReadFull(conn, header[:]); err != nil {
		return err
	}
	body := make([]byte, binary.LittleEndian.Uint32(header[:])-16)
	if _, err := io.ReadFull(conn, body); err != nil {
		return err
	}
	answer := bson.D{
		{Key: "ok", Value: 1},
		{Key: "isWritablePrimary", Value: true},
		{Key: "ismaster", Value: true},
		{Key: "minWireVersion", Value: 0},
		{Key: "maxWireVersion", Value: 21},
		{Key: "maxBsonObjectSize", Value: 16 << 20},
		{Key: "maxMessageSizeBytes", Value: 48000000},
		{Key: "maxWriteBatchSize", Value: 100000},
	}
	for _, field := range more {
		answer = append(slices.DeleteFunc(answer, func(e bson.E) bool { return e.Key == field.Key }), field)
	}
	if !knowsHello && bytes.Contains(body, []byte("\x10hello\x00")) {
		answer = bson.D{{Key: "ok", Value: 0}, {Key: "code", Value: 59}, {Key: "codeName", Value: "CommandNotFound"}, {Key: "errmsg", Value: "no such command: 'hello'"}}
	}
	hello, err := bson.Marshal(answer)
	if err != nil {
		return err
	}
	le := binary.LittleEndian
	reply := le.AppendUint32(nil, 0) // the length, set below
	reply = le.AppendUint32(reply, 1)
	reply = append(reply, header[4:8]...) // responseTo is the request's id
	switch le.Uint32(header[12:]) {
	case opQuery:
		reply = le.AppendUint32(reply, opReply)
		reply = le.AppendUint32(reply, 0) // flags
		reply = le.AppendUint64(reply, 0) // cursor
		reply = le.AppendUint32(reply, 0) // starting from
		reply = le.AppendUint32(reply, 1) // documents
	default:
		reply = le.AppendUint32(reply, opMsg)
		reply = le.AppendUint32(reply, 0) // flags
		reply = append(reply, 0)          // a body section
	}
	reply = append(reply, hello...)
	le.PutUint32(reply, uint32(len(reply)))
	_, err = conn.Write(reply)
	return err
}
