package changestream_test

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/publisher/internal/changestream"
	"changerelay/services/publisher/internal/testserver"
)

func TestAStandaloneServerIsRefusedWithWhatToDo(t *testing.T) {
	t.Parallel()
	client := testserver.Connect(t, "mongodb://"+standalone(t)+"/?directConnection=true")
	err := changestream.Probe(t.Context(), client)
	halt, ok := errors.AsType[*changestream.HaltError](err)
	if !ok || halt.Reason != changestream.NotReplicated || !strings.Contains(err.Error(), "rs.initiate()") {
		t.Errorf("Probe = %v, want it to say that a replica set is needed, and how to make one", err)
	}
}

// standalone serves hello, and nothing else, as a server without a replica set
// does. It returns its address.
func standalone(t *testing.T) string {
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
				for answerHello(conn) == nil {
				}
			})
		}
	})
	return listener.Addr().String()
}

// answerHello answers one OP_QUERY or OP_MSG.
// See https://www.mongodb.com/docs/manual/reference/mongodb-wire-protocol/
func answerHello(conn net.Conn) error {
	const opReply, opQuery, opMsg = 1, 2004, 2013
	var header [16]byte
	if _, err := io.ReadFull(conn, header[:]); err != nil {
		return err
	}
	if _, err := io.CopyN(io.Discard, conn, int64(binary.LittleEndian.Uint32(header[:]))-16); err != nil {
		return err
	}
	hello, err := bson.Marshal(bson.D{
		{Key: "ok", Value: 1},
		{Key: "isWritablePrimary", Value: true},
		{Key: "ismaster", Value: true},
		{Key: "helloOk", Value: true},
		{Key: "minWireVersion", Value: 0},
		{Key: "maxWireVersion", Value: 21},
		{Key: "maxBsonObjectSize", Value: 16 << 20},
		{Key: "maxMessageSizeBytes", Value: 48000000},
		{Key: "maxWriteBatchSize", Value: 100000},
	})
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
