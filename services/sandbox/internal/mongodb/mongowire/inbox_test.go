package mongowire_test

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/mongowire"
)

// largeMessage is an OP_MSG of a little more than so many bytes.
func largeMessage(t *testing.T, bytes int) []byte {
	t.Helper()
	body, err := bson.Marshal(bson.D{{Key: "insert", Value: "c"}, {Key: "x", Value: make([]byte, bytes)}})
	if err != nil {
		t.Fatal(err)
	}
	message := binary.LittleEndian.AppendUint32(nil, uint32(16+4+1+len(body)))
	message = append(message, 1, 0, 0, 0, 0, 0, 0, 0)
	message = binary.LittleEndian.AppendUint32(message, 2013)
	message = append(message, 0, 0, 0, 0, 0)
	return append(message, body...)
}

func TestInbox_MakesMessagesWaitForRoom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		inbox := mongowire.NewInbox(5<<20, time.Minute)
		message := largeMessage(t, 3<<20)
		read := func() (*mongowire.Request, error) {
			client, server := net.Pipe()
			go func() {
				_, _ = client.Write(message)
				_ = client.Close()
			}()
			defer func() { _, _ = io.Copy(io.Discard, server) }()
			return inbox.ReadRequest(t.Context(), server)
		}
		first, err := read()
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		time.AfterFunc(10*time.Second, first.Release)
		second, err := read()
		if err != nil || time.Since(began) != 10*time.Second {
			t.Fatalf("got %v after %s, want the message when the first was released", err, time.Since(began))
		}
		began = time.Now()
		if _, err := read(); err == nil || time.Since(began) != time.Minute {
			t.Errorf("got %v after %s, want it given up after a minute", err, time.Since(began))
		}
		second.Release()
		if third, err := read(); err != nil {
			t.Errorf("got %v when there is room again", err)
		} else {
			third.Release()
		}
	})
}

func TestInbox_GivesUpWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		inbox := mongowire.NewInbox(1, time.Minute)
		ctx, cancel := context.WithCancel(t.Context())
		client, server := net.Pipe()
		message := largeMessage(t, 3<<20)
		go func() { _, _ = client.Write(message) }()
		time.AfterFunc(time.Second, cancel)
		if _, err := inbox.ReadRequest(ctx, server); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want the end of the context", err)
		}
		_, _ = client.Close(), server.Close()
	})
}
