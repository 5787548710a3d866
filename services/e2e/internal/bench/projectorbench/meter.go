package projectorbench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// handshakes is more than what comes before the first message.
const handshakes = 64 << 10

// meter is a TCP proxy that counts what comes from the server, and when.
type meter struct {
	listener net.Listener
	target   string // set before the first connection

	mu    sync.Mutex
	reads []reading // guarded by mu
	all   int64     // guarded by mu
}

// reading is how many bytes had come at a time.
type reading struct {
	at  time.Time
	all int64
}

func newMeter() (*meter, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for the meter: %w", err)
	}
	return &meter{listener: listener}, nil
}

// before puts the meter before a server.
func (m *meter) before(server string) (string, error) {
	m.target = server
	return m.listener.Addr().String(), nil
}

// run forwards connections until ctx ends.
func (m *meter) run(ctx context.Context) error {
	connections, ctx := errgroup.WithContext(ctx)
	defer context.AfterFunc(ctx, func() { _ = m.listener.Close() })()
	for {
		client, err := m.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return connections.Wait()
		}
		if err != nil {
			return fmt.Errorf("accept for %s: %w", m.target, err)
		}
		connections.Go(func() error {
			m.forward(ctx, client)
			return nil
		})
	}
}

// forward carries one connection both ways until either side ends it.
func (m *meter) forward(ctx context.Context, client net.Conn) {
	defer client.Close()
	server, err := (&net.Dialer{}).DialContext(ctx, "tcp", m.target)
	if err != nil {
		return // the client sees its connection end
	}
	defer server.Close()
	ctx, end := context.WithCancel(ctx)
	defer end()
	defer context.AfterFunc(ctx, func() { _, _ = client.Close(), server.Close() })()
	var up sync.WaitGroup
	up.Go(func() {
		defer end()
		_, _ = io.Copy(server, client)
	})
	_, _ = io.Copy(client, io.TeeReader(server, m))
	end()
	up.Wait()
}

// Write implements io.Writer: it counts.
func (m *meter) Write(p []byte) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all += int64(len(p))
	m.reads = append(m.reads, reading{time.Now(), m.all})
	return len(p), nil
}

// carried says how many bytes came, and how long it took from behind the
// handshakes until so many had come; 0 where they never had.
func (m *meter) carried(messages int64) (all int64, flowing time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var began time.Time
	for _, read := range m.reads {
		if began.IsZero() && read.all >= min(handshakes, messages/2) {
			began = read.at
		}
		if read.all >= messages {
			return m.all, read.at.Sub(began)
		}
	}
	return m.all, 0
}
