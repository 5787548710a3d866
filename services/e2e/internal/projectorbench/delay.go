package projectorbench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"golang.org/x/sync/errgroup"
)

// delay is a TCP proxy that holds back what clients send for a time, so that
// each round trip takes that much longer. It delays and does not slow down: any
// amount may be on its way.
type delay struct {
	listener net.Listener
	target   string
	by       time.Duration
}

func newDelay(target string, by time.Duration) (*delay, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for the proxy to %s: %w", target, err)
	}
	return &delay{listener, target, by}, nil
}

func (d *delay) addr() string { return d.listener.Addr().String() }

// run forwards connections until ctx ends.
func (d *delay) run(ctx context.Context) error {
	connections, ctx := errgroup.WithContext(ctx)
	stop := context.AfterFunc(ctx, func() { _ = d.listener.Close() })
	defer stop()
	for {
		client, err := d.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return connections.Wait()
		}
		if err != nil {
			return fmt.Errorf("accept for %s: %w", d.target, err)
		}
		connections.Go(func() error {
			d.forward(ctx, client)
			return nil
		})
	}
}

// forward carries one connection both ways until either side ends it.
func (d *delay) forward(ctx context.Context, client net.Conn) {
	server, err := (&net.Dialer{}).DialContext(ctx, "tcp", d.target)
	if err != nil {
		_ = client.Close()
		return
	}
	end := func() { _, _ = client.Close(), server.Close() }
	stop := context.AfterFunc(ctx, end)
	defer stop()
	var ways errgroup.Group
	ways.Go(func() error {
		defer end()
		return d.late(server, client)
	})
	ways.Go(func() error {
		defer end()
		_, err := io.Copy(client, server)
		return err
	})
	// Whoever ended the connection has seen why.
	_ = ways.Wait()
}

// piece is what was read at once, and when it may go on.
type piece struct {
	bytes []byte
	due   time.Time
}

// late copies, each piece d.by after it came.
func (d *delay) late(to io.Writer, from io.Reader) error {
	pieces := make(chan piece, 4096)
	var writing errgroup.Group
	writing.Go(func() error {
		var failed error
		for p := range pieces {
			timer := time.NewTimer(time.Until(p.due))
			<-timer.C
			if failed == nil {
				_, failed = to.Write(p.bytes)
			}
		}
		return failed
	})
	for {
		buffer := make([]byte, 16<<10)
		n, err := from.Read(buffer)
		if n > 0 {
			pieces <- piece{buffer[:n], time.Now().Add(d.by)}
		}
		if err != nil {
			close(pieces)
			return writing.Wait()
		}
	}
}
