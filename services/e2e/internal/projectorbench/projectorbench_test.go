package projectorbench

import (
	"context"
	"io"
	"net"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestParse(t *testing.T) {
	t.Parallel()
	c, err := Parse([]string{"--sessions", "7", "--hot-messages", "0", "--latency", "0, 5ms"}, io.Discard)
	if err != nil || !slices.Equal(c.Latencies, []time.Duration{0, 5 * time.Millisecond}) ||
		!slices.Equal(c.Shapes, []Shape{{Name: "short sessions", Sessions: 7, Messages: 10}}) {
		t.Errorf("got %+v and %v", c, err)
	}
	for _, args := range [][]string{{"--latency", "soon"}, {"--sessions", "0", "--hot-messages", "0"}, {"more"}, {"--plain-messages", "0"}} {
		if _, err := Parse(args, io.Discard); err == nil {
			t.Errorf("%q: got no error", args)
		}
	}
}

// The proxy adds its delay to a round trip once, however much is on its way.
func TestTheProxyDelaysAndKeepsEveryByteInOrder(t *testing.T) {
	t.Parallel()
	echo, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		conn, err := echo.Accept()
		if err != nil {
			return
		}
		_, _ = io.Copy(conn, conn)
		_ = conn.Close()
	}()
	const by = 20 * time.Millisecond
	proxy, err := newDelay(echo.Addr().String(), by)
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
	_ = echo.Close()
	<-ended
}
