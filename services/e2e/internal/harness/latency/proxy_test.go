package latency

import (
	"context"
	"io"
	"net"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"

	"changerelay/services/e2e/internal/harness/cluster"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// echo answers with what it is sent, to one client, until the test ends.
func echo(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		_, _ = io.Copy(conn, conn)
		_ = conn.Close()
	}()
	t.Cleanup(func() {
		_ = listener.Close()
		<-ended
	})
	return listener.Addr().String()
}

// The proxy adds its delay to a round trip once, however much is on its way.
func TestProxy_TheProxyDelaysAndKeepsEveryByteInOrder(t *testing.T) {
	t.Parallel()
	const by = 20 * time.Millisecond
	proxy, err := newProxy(echo(t), by)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- proxy.run(ctx) }()
	conn, err := net.Dial("tcp", proxy.addr())
	if err != nil {
		t.Fatal(err)
	}
	sent := make([]byte, 1<<20)
	for i := range sent {
		sent[i] = byte(i * 7)
	}
	began := time.Now()
	written := make(chan error, 1)
	go func() {
		_, err := conn.Write(sent)
		written <- err
	}()
	got := make([]byte, len(sent))
	if _, err := io.ReadFull(conn, got); err != nil || !slices.Equal(got, sent) {
		t.Errorf("what came back is not what was sent (%v)", err)
	}
	if took := time.Since(began); took < by {
		t.Errorf("a round trip took %s, less than the delay of %s", took, by)
	}
	if err := <-written; err != nil {
		t.Error(err)
	}
	_ = conn.Close()
	stop()
	if err := <-ran; err != nil {
		t.Error(err)
	}
}

func TestProxy_BothServersAreReachedThroughProxies(t *testing.T) {
	t.Parallel()
	near := cluster.Endpoints{
		MongoURI:   "mongodb://127.0.0.1:27017/?replicaSet=rs0",
		ServiceBus: "Endpoint=sb://127.0.0.1:5672/;SharedAccessKeyName=n;SharedAccessKey=k",
	}
	for _, by := range []time.Duration{0, time.Millisecond} {
		way, err := To(t.Context(), near, by)
		if err != nil {
			t.Fatal(err)
		}
		e := way.Endpoints
		if moved := e.MongoURI != near.MongoURI && e.ServiceBus != near.ServiceBus; moved != (by > 0) {
			t.Errorf("+%v: got %+v", by, e)
		}
		if err := way.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestProxy_ServersWithoutAnAddressCannotBeDistant(t *testing.T) {
	t.Parallel()
	if _, err := To(t.Context(), cluster.Endpoints{MongoURI: "mongodb://h:1/"}, time.Millisecond); err == nil {
		t.Error("got a way to a broker without an address")
	}
}
