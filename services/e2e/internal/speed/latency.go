package speed

import (
	"context"
	"io"
	"net"
	"time"

	"golang.org/x/sync/errgroup"
)

// latency passes connections on to a server, and what the server says comes
// later by a fixed time. Nothing waits for what is on its way before it: a far
// server is as fast as a near one, only later.
type latency struct {
	listener net.Listener
	server   string
	later    time.Duration
}

func newLatency(server string, later time.Duration) (*latency, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	return &latency{listener, server, later}, err
}

// run passes on until ctx ends.
func (l *latency) run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	stop := context.AfterFunc(ctx, func() { _ = l.listener.Close() })
	defer stop()
	group.Go(func() error {
		for {
			client, err := l.listener.Accept()
			if err != nil {
				return nil // closed, because ctx ended
			}
			group.Go(func() error {
				l.serve(ctx, client)
				return nil
			})
		}
	})
	return group.Wait()
}

func (l *latency) serve(ctx context.Context, client net.Conn) {
	server, err := net.Dial("tcp", l.server)
	if err != nil {
		_ = client.Close()
		return
	}
	end := func() {
		_ = client.Close()
		_ = server.Close()
	}
	defer context.AfterFunc(ctx, end)()
	var both errgroup.Group
	both.Go(func() error {
		defer end()
		_, err := io.Copy(server, client)
		return err
	})
	both.Go(func() error {
		defer end()
		return pass(client, server, l.later)
	})
	_ = both.Wait() // a connection that ends is no news
}

// piece is what was read at one time.
type piece struct {
	at   time.Time
	data []byte
}

// pass copies, each piece later by the given time.
func pass(to io.Writer, from io.Reader, later time.Duration) error {
	pieces := make(chan piece, 4096)
	var reading errgroup.Group
	reading.Go(func() error {
		defer close(pieces)
		for {
			data := make([]byte, 32<<10)
			n, err := from.Read(data)
			if n > 0 {
				pieces <- piece{time.Now(), data[:n]}
			}
			if err != nil {
				return err
			}
		}
	})
	timer := time.NewTimer(0)
	defer timer.Stop()
	var broken error
	for p := range pieces {
		if broken != nil {
			continue // the reader must not be left waiting
		}
		timer.Reset(time.Until(p.at.Add(later)))
		<-timer.C
		_, broken = to.Write(p.data)
	}
	return reading.Wait()
}
