package scenario

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/e2e/internal/harness/cluster"
)

func TestStandalone_AStandaloneMongoDBIsToldInPlainWords(t *testing.T) {
	t.Parallel()
	address := standalone(t)
	c := cluster.New(configure(t, func(cfg *cluster.Config) {
		cfg.Publishers, cfg.Projectors = 1, 0
		cfg.Backend = &cluster.Endpoints{
			MongoURI:   "mongodb://" + address + "/?directConnection=true",
			ServiceBus: "Endpoint=sb://" + freeAddress(t) + ";SharedAccessKeyName=n;SharedAccessKey=k;UseDevelopmentEmulator=true;",
		}
	}))
	closeAtEnd(t, c)
	if err := c.LayOut(); err != nil {
		t.Fatal(err)
	}
	if err := c.StartServices(); err != nil {
		t.Fatal(err)
	}
	await(t, "the publisher to say that a replica set is needed", func(context.Context) (bool, string) {
		log := c.Publishers[0].Log()
		return strings.Contains(log, "replica set"), tail(log, 3)
	})
}

// standalone listens as a MongoDB server that is no replica set, as far as a
// client needs it to find that out. It returns its address.
func standalone(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var conns sync.WaitGroup
	open := make(map[net.Conn]bool)
	var mu sync.Mutex
	conns.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			open[conn] = true
			mu.Unlock()
			conns.Go(func() { serve(conn) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		mu.Lock()
		for conn := range open {
			_ = conn.Close()
		}
		mu.Unlock()
		conns.Wait()
	})
	return listener.Addr().String()
}

// Operation codes of the wire protocol.
const (
	opReply = 1
	opQuery = 2004
	opMsg   = 2013
)

// serve answers requests until the connection ends.
func serve(conn net.Conn) {
	defer conn.Close()
	in := bufio.NewReader(conn)
	for {
		id, op, body, err := readMessage(in)
		if err != nil {
			return
		}
		command, err := commandOf(op, body)
		if err != nil {
			return
		}
		reply, err := bson.Marshal(answer(command))
		if err != nil {
			return
		}
		if _, err := conn.Write(frame(id, op, reply)); err != nil {
			return
		}
	}
}

// readMessage reads one message: a header of four 32-bit words (length, request
// id, response to, operation code) and a body.
func readMessage(in io.Reader) (id, op int32, body []byte, err error) {
	var header [16]byte
	if _, err := io.ReadFull(in, header[:]); err != nil {
		return 0, 0, nil, err
	}
	word := func(at int) int32 { return int32(binary.LittleEndian.Uint32(header[at:])) }
	if word(0) < 16 || word(0) > 48<<20 {
		return 0, 0, nil, errors.New("bad length")
	}
	body = make([]byte, word(0)-16)
	_, err = io.ReadFull(in, body)
	return word(4), word(12), body, err
}

// commandOf returns the command document of a message: after the flags and the
// section's kind, or, in the old form, after flags, collection, skip and limit.
func commandOf(op int32, body []byte) (bson.Raw, error) {
	switch {
	case op == opMsg && len(body) > 5:
		return bson.Raw(body[5:]), nil
	case op == opQuery && len(body) > 4:
		for i, b := range body[4:] {
			if b == 0 && len(body) > 4+i+9 {
				return bson.Raw(body[4+i+9:]), nil
			}
		}
	}
	return nil, errors.New("bad message")
}

// answer is what a standalone server says.
func answer(command bson.Raw) bson.D {
	first, err := command.IndexErr(0)
	if err != nil {
		return failure(9, "FailedToParse", "no command")
	}
	switch first.Key() {
	case "hello", "isMaster", "ismaster":
		return bson.D{
			{Key: "ismaster", Value: true},
			{Key: "isWritablePrimary", Value: true},
			{Key: "helloOk", Value: true},
			{Key: "maxBsonObjectSize", Value: int32(16 << 20)},
			{Key: "maxMessageSizeBytes", Value: int32(48 << 20)},
			{Key: "maxWriteBatchSize", Value: int32(100_000)},
			{Key: "localTime", Value: time.Now()},
			{Key: "minWireVersion", Value: int32(0)},
			{Key: "maxWireVersion", Value: int32(21)},
			{Key: "readOnly", Value: false},
			{Key: "ok", Value: 1.0},
		}
	case "ping", "endSessions":
		return bson.D{{Key: "ok", Value: 1.0}}
	case "aggregate":
		return failure(40573, "Location40573", "The $changeStream stage is only supported on replica sets")
	}
	return failure(20, "IllegalOperation", "Transaction numbers are only allowed on a replica set member or mongos")
}

func failure(code int32, name, message string) bson.D {
	return bson.D{{Key: "ok", Value: 0.0}, {Key: "errmsg", Value: message}, {Key: "code", Value: code}, {Key: "codeName", Value: name}}
}

// frame wraps a reply in the form of its request.
func frame(to, op int32, reply []byte) []byte {
	body := append([]byte{0, 0, 0, 0, 0}, reply...) // no flags, a section of kind 0
	code := int32(opMsg)
	if op == opQuery {
		// Flags, cursor, starting from, and how many documents: one.
		body = append(append(make([]byte, 16), 1, 0, 0, 0), reply...)
		code = opReply
	}
	header := make([]byte, 0, 16+len(body))
	for _, word := range []int32{int32(16 + len(body)), 1, to, code} {
		header = binary.LittleEndian.AppendUint32(header, uint32(word))
	}
	return append(header, body...)
}
