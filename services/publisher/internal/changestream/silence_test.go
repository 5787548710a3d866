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

// TestSilence_ATokenThatStandsStillIsToldOf has a source whose answers lead no further, also
// where the stream was opened again on the way.
func TestSilence_ATokenThatStandsStillIsToldOf(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := &silentServer{silence: second, end: make(chan struct{}), same: true}
		stream := changestream.New(changestream.Of(server.connect(t).Database("shop").Collection("events")), changestream.Start{}, zerolog.Nop())
		defer stream.Close(t.Context())
		if _, err := readSome(t.Context(), stream, 1); err != nil {
			t.Fatal(err)
		}
		if state := stream.State(); !state.Still.IsZero() {
			t.Errorf("state is %+v behind a change, want nothing that stands still", state)
		}
		began := time.Now()
		for time.Since(began) < 20*time.Minute {
			if batch, err := stream.Read(t.Context()); err != nil || len(batch.Changes) > 0 {
				t.Fatalf("Read = %+v, %v, want no change", batch, err)
			}
			if state := stream.State(); !state.Still.Equal(began) {
				t.Fatalf("after %s the state is %+v, want that it stands still since %s", time.Since(began), state, began)
			}
		}
		if len(server.opened) < 2 {
			t.Error("the stream was not opened again")
		}
	})
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
	part    bson.D        // what is in its changes besides
	opening func(n int)   // called before the nth stream is opened; nil takes no time
	finding time.Duration // how long a find takes
	same    bool          // its streams have no change but the first one's
	dead    atomic.Bool   // while set nothing is answered
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
		said, ok := s.answer(bson.Raw(body[5:])), 1
		if len(said) > 0 && said[0].Key == "code" {
			ok = 0
		}
		answer, err := bson.Marshal(append(said, bson.E{Key: "ok", Value: ok}))
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
		if s.same {
			return cursor("nextBatch", token(1))
		}
		return cursor("nextBatch", token(len(s.opened)))
	case "find":
		return s.find(command)
	default: // killCursors, endSessions
		return bson.D{}
	}
}

// find finds an entry of the operation log that is older than any token, or gives up
// (MaxTimeMSExpired) just before the client does.
func (s *silentServer) find(command bson.Raw) bson.D {
	takes, late := s.finding, false
	if most, limited := command.Lookup("maxTimeMS").AsInt64OK(); limited {
		if given := time.Duration(most)*time.Millisecond - 10*time.Millisecond; given < takes {
			takes, late = given, true
		}
	}
	timer := time.NewTimer(takes)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.end:
	}
	if late {
		return bson.D{{Key: "code", Value: 50}, {Key: "errmsg", Value: "operation exceeded time limit"}}
	}
	return bson.D{{Key: "cursor", Value: bson.D{
		{Key: "id", Value: int64(0)},
		{Key: "ns", Value: "local.oplog.rs"},
		{Key: "firstBatch", Value: bson.A{bson.D{{Key: "ts", Value: bson.Timestamp{T: 1, I: 1}}}}},
	}}}
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
	if s.same && n > 1 {
		return cursor("firstBatch", token(1))
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
