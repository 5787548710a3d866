package latency

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"

	"changerelay/services/e2e/internal/harness/cluster"
)

// Way is a longer way to servers. It ends with Close.
type Way struct {
	Endpoints cluster.Endpoints

	stop    context.CancelFunc
	proxies *errgroup.Group
}

// To opens a way to servers that is longer by a time; without a time it is the
// short one. The servers must be spoken to without TLS, for the proxies have
// names of their own.
func To(ctx context.Context, servers cluster.Endpoints, by time.Duration) (*Way, error) {
	ctx, cancel := context.WithCancel(ctx)
	w := &Way{Endpoints: servers, stop: cancel}
	w.proxies, ctx = errgroup.WithContext(ctx)
	if by == 0 {
		return w, nil
	}
	before := func(server string) (string, error) {
		p, err := newProxy(server, by)
		if err != nil {
			return "", err
		}
		w.proxies.Go(func() error { return p.run(ctx) })
		return p.addr(), nil
	}
	var err error
	if w.Endpoints, err = servers.Through(before, before); err != nil {
		_ = w.Close() // it was never used
		return nil, err
	}
	return w, nil
}

// Close ends the way and what goes over it.
func (w *Way) Close() error {
	w.stop()
	return w.proxies.Wait()
}
