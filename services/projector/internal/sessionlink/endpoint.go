package sessionlink

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/rs/zerolog"
)

var errClosed = errors.New("the subscription is closed")

// endpoint is the place of one connection. It connects when it is first needed,
// and again when the connection has ended.
type endpoint struct {
	cfg     *Config
	log     zerolog.Logger
	running *running
	// late says rarely that accepts are answered too late.
	late zerolog.BurstSampler

	mu      sync.Mutex
	attempt *attempt // guarded by mu: the latest; nil before the first
	closed  bool     // guarded by mu
}

// attempt is an attempt to connect, which all who need the connection wait for.
type attempt struct {
	cancel context.CancelFunc
	done   chan struct{} // closed when what follows is set
	wire   *wire
	err    error
}

// connected returns the connection, once there is one.
func (e *endpoint) connected(ctx context.Context) (*wire, error) {
	a, err := e.latest(ctx)
	if err != nil {
		return nil, err
	}
	select {
	case <-a.done:
		return a.wire, a.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// latest is the attempt in use. An attempt that failed or whose connection has
// ended is followed by another.
func (e *endpoint) latest(ctx context.Context) (*attempt, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil, errClosed
	}
	if e.attempt != nil {
		select {
		case <-e.attempt.done:
			if e.attempt.err == nil && !e.attempt.wire.over() {
				return e.attempt, nil
			}
			e.end(e.attempt)
		default:
			return e.attempt, nil
		}
	}
	// Others wait for it, too, so it does not end with whoever came first.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), e.cfg.connectTime)
	a := &attempt{cancel: cancel, done: make(chan struct{})}
	if !e.running.Go(func() {
		defer cancel()
		defer close(a.done)
		a.wire, a.err = openWire(ctx, e.cfg, e.log)
	}) {
		cancel()
		return nil, errClosed
	}
	e.attempt = a
	return a, nil
}

// doubt replaces a connection on which nothing has answered since a moment. Its sessions
// end with it, and their messages come again. One that is being made has its own time
// for that.
func (e *endpoint) doubt(since time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.attempt == nil {
		return
	}
	select {
	case <-e.attempt.done:
	default:
		return
	}
	if w := e.attempt.wire; e.attempt.err == nil && !w.silentSince(since) {
		log := e.log.Sample(&e.late)
		log.Warn().Dur("round_trip_ms", w.trip()).Msg("Service Bus answers, but no accept in its time; is ACCEPT_TIME too short?")
		return
	}
	e.log.Warn().Msg("the Service Bus connection is replaced")
	e.end(e.attempt)
	e.attempt = nil
}

func (e *endpoint) close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = true
	if e.attempt != nil {
		e.end(e.attempt)
	}
}

// end ends an attempt or what came of it, in the background.
func (e *endpoint) end(a *attempt) {
	a.cancel()
	e.running.Go(func() {
		<-a.done
		if a.err == nil {
			a.wire.close()
		}
	})
}
