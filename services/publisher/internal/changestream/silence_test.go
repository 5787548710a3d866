package changestream_test

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"changerelay/services/publisher/internal/changestream"
)

// A poll that is never answered, and answers that lead no further, both come of
// a stream that is dead: it is opened again, at the token of the last change.
func TestSilence_ASilentStreamIsOpenedAgainAtItsOwnToken(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		silence func(end <-chan struct{})
		least   time.Duration
		most    time.Duration
	}{
		"a poll without an answer":     {func(end <-chan struct{}) { <-end }, 10 * time.Second, 20 * time.Second},
		"answers that lead no further": {second, 5 * time.Minute, 6 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				server := &silentServer{silence: tt.silence, end: make(chan struct{})}
				stream := changestream.New(changestream.Of(server.connect(t).Database("shop").Collection("events")), changestream.Start{}, zerolog.Nop())
				defer stream.Close(t.Context())
				began := time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), tt.most)
				defer cancel()
				got, err := readSome(ctx, stream, 2)
				if took := time.Since(began); err != nil || took < tt.least {
					t.Fatalf("opened again after %s (%v), want %s to %s", took, err, tt.least, tt.most)
				}
				if first := bson.Raw(got[0].Token).String(); len(server.opened) != 2 || server.opened[1] != first {
					t.Errorf("opened at %q, want it the second time at %q", server.opened, first)
				}
				if state := stream.State(); state.Reopened != 1 || state.Err != nil {
					t.Errorf("state is %+v, want one reopening", state)
				}
			})
		})
	}
}

// TestSilence_InsideAChangeNoPlaceIsToldOf has a server give the first part of a change,
// and be silent: its token is one to go on from that the change would not survive.
func TestSilence_InsideAChangeNoPlaceIsToldOf(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := &silentServer{silence: second, end: make(chan struct{})}
		server.part = bson.D{{Key: "splitEvent", Value: bson.D{{Key: "fragment", Value: 1}, {Key: "of", Value: 2}}}}
		stream := changestream.New(changestream.Of(server.connect(t).Database("shop").Collection("events")), changestream.Start{}, zerolog.Nop())
		defer stream.Close(t.Context())
		for range 3 {
			if batch, err := stream.Read(t.Context()); err != nil || len(batch.Changes) > 0 || batch.Idle.Token != nil {
				t.Errorf("Read = %+v, %v, want neither a change nor a place", batch, err)
			}
		}
	})
}

// second takes a second, as an await of the server's does.
func second(<-chan struct{}) { time.Sleep(time.Second) } //nolint:forbidigo // in a bubble, where it is exact

// silentServer answers as a replica set does, over connections in memory. Its
// streams give one change each, and are silent after it.
type silentServer struct {
	silence func(end <-chan struct{})
	part    bson.D      // what is in its changes besides
	opening func(n int) // called before the nth stream is opened; nil takes no time
	dead    atomic.Bool // while set nothing is answered
	end     chan struct{}
	serving sync.WaitGroup

	mu     sync.Mutex
	opened []string // guarded by mu: where streams were opened, and empty for at a time
}

// connect returns a client, which is closed with the test.
func (s *silentServer) connect(t *testing.T) *mongo.Client {
	t.Helper()
	client, err := mongo.Connect(options.Client().
		ApplyURI("mongodb://silent:1/?directConnection=true&serverMonitoringMode=poll&retryReads=false").
		SetServerAPIOptions(options.ServerAPI(options.ServerAPIVersion1)). // so that the first message is an OP_MSG, too
		SetDialer(s))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		close(s.end)
		_ = client.Disconnect(context.Background()) // the test is over
		s.serving.Wait()
	})
	return client
}

// DialContext implements options.Dialer.
func (s *silentServer) DialContext(context.Context, string, string) (net.Conn, error) {
	near, far := net.Pipe()
	s.serving.Go(func() { s.serve(far) })
	return near, nil
}

// serve answers one message after the other: a header of four 32-bit words
// (length, request id, response to, operation code), flags, and a document in a
// section of kind 0.
// See https://www.mongodb.com/docs/manual/reference/mongodb-wire-protocol/#op_msg
func (s *silentServer) serve(conn net.Conn) {
	defer conn.Close()
	for {
		header := make([]byte, 16)
		if _, err := io.ReadFull(conn, header); err != nil {
			return
		}
		body := make([]byte, binary.LittleEndian.Uint32(header)-16)
		if _, err := io.ReadFull(conn, body); err != nil {
			return
		}
		if s.dead.Load() {
			_, _ = io.Copy(io.Discard, conn) // until the other side gives up
			return
		}
		answer, err := bson.Marshal(append(s.answer(bson.Raw(body[5:])), bson.E{Key: "ok", Value: 1}))
		if err != nil {
			return
		}
		reply := binary.LittleEndian.AppendUint32(nil, uint32(16+5+len(answer)))
		reply = append(reply, header[4:8]...) // its own id: any will do
		reply = append(reply, header[4:8]...)
		reply = append(append(append(reply, header[12:]...), 0, 0, 0, 0, 0), answer...)
		if _, err := conn.Write(reply); err != nil {
			return
		}
	}
}

func (s *silentServer) answer(command bson.Raw) bson.D {
	switch command.Index(0).Key() {
	case "hello":
		return bson.D{
			{Key: "isWritablePrimary", Value: true},
			{Key: "setName", Value: "rs"},
			{Key: "hosts", Value: bson.A{"silent:1"}},
			{Key: "maxWireVersion", Value: 21},
			{Key: "maxBsonObjectSize", Value: 16 << 20},
			{Key: "maxMessageSizeBytes", Value: 48 << 20},
			{Key: "maxWriteBatchSize", Value: 1000},
			{Key: "logicalSessionTimeoutMinutes", Value: 30},
		}
	case "aggregate":
		return s.open(command)
	case "getMore":
		s.silence(s.end)
		s.mu.Lock()
		defer s.mu.Unlock()
		return cursor("nextBatch", token(len(s.opened)))
	case "find":
		return cursor("firstBatch", nil)
	default: // killCursors, endSessions
		return bson.D{}
	}
}

// open opens a stream that has one change.
func (s *silentServer) open(command bson.Raw) bson.D {
	s.mu.Lock()
	at := command.Lookup("pipeline", "0", "$changeStream", "startAfter")
	s.opened = append(s.opened, at.String())
	n := len(s.opened)
	s.mu.Unlock()
	if s.opening != nil {
		s.opening(n)
	}
	own := token(n)
	return cursor("firstBatch", own, append(bson.D{{Key: "_id", Value: own}, {Key: "operationType", Value: "insert"}}, s.part...))
}

func cursor(batch string, token any, changes ...bson.D) bson.D {
	return bson.D{{Key: "cursor", Value: bson.D{
		{Key: "id", Value: int64(1)},
		{Key: "ns", Value: "shop.events"},
		{Key: batch, Value: append([]bson.D{}, changes...)},
		{Key: "postBatchResumeToken", Value: token},
	}}}
}

func token(n int) bson.D { return bson.D{{Key: "_data", Value: n}} }
