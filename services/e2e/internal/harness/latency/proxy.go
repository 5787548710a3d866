package latency

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"golang.org/x/sync/errgroup"
)

// proxy is a TCP proxy that holds back what clients send for a time, so that
// each round trip takes that much longer.
type proxy struct {
	listener net.Listener
	target   string
	by       time.Duration
}

func newProxy(target string, by time.Duration) (*proxy, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for the proxy to %s: %w", target, err)
	}
	return &proxy{listener, target, by}, nil
}

func (p *proxy) addr() string { return p.listener.Addr().String() }

// run forwards connections until ctx ends.
func (p *proxy) run(ctx context.Context) error {
	connections, ctx := errgroup.WithContext(ctx)
	stop := context.AfterFunc(ctx, func() { _ = p.listener.Close() })
	defer stop()
	for {
		client, err := p.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return connections.Wait()
		}
		if err != nil {
			return fmt.Errorf("accept for %s: %w", p.target, err)
		}
		connections.Go(func() error {
			p.forward(ctx, client)
			return nil
		})
	}
}

// forward carries one connection both ways until either side ends it.
func (p *proxy) forward(ctx context.Context, client net.Conn) {
	server, err := (&net.Dialer{}).DialContext(ctx, "tcp", p.target)
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
		return p.late(server, client)
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

// late copies, each piece p.by after it came.
func (p *proxy) late(to io.Writer, from io.Reader) error {
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
			pieces <- piece{buffer[:n], time.Now().Add(p.by)}
		}
		if err != nil {
			close(pieces)
			return writing.Wait()
		}
	}
}
