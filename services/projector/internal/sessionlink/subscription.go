package sessionlink

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"changerelay/services/projector/internal/namespace"
	"changerelay/services/projector/internal/session"
)

// Config says where the subscription is and how it is read.
type Config struct {
	Access              namespace.Access
	Topic, Subscription string

	// Connections is how many connections the sessions are spread over.
	Connections int
	// Linger is how long a receive waits for another message.
	Linger time.Duration

	// connectTime bounds making a connection, answerTime is how much longer than
	// the service was asked to wait its answer may take, and tokenLife is how long
	// the tokens are good that are made here.
	connectTime, answerTime, tokenLife time.Duration
}

// Subscription hands out the sessions of one subscription. It connects at the
// first accept, and again whenever it has to.
type Subscription struct {
	cfg       Config
	endpoints []*endpoint
	// running are connections, and attaches that nobody may wait for any more.
	running running
	reached atomic.Bool
}

var _ session.Acceptor = (*Subscription)(nil)

// New returns the subscription. It makes no connection.
func New(cfg Config, log zerolog.Logger) *Subscription {
	cfg.connectTime, cfg.answerTime, cfg.tokenLife = 30*time.Second, 5*time.Second, tokenLife
	return newSubscription(cfg, log)
}

func newSubscription(cfg Config, log zerolog.Logger) *Subscription {
	s := &Subscription{cfg: cfg}
	for range max(cfg.Connections, 1) {
		s.endpoints = append(s.endpoints, &endpoint{
			cfg: &s.cfg, log: log, running: &s.running, late: zerolog.BurstSampler{Burst: 1, Period: time.Minute},
		})
	}
	return s
}

// answerMost is how much of an accept's time, at most, is kept for the service to
// answer, beside the way.
const answerMost = time.Second

// acceptDefault is how long an accept without a deadline waits.
const acceptDefault = time.Minute

// Accept implements session.Acceptor. The service is asked to wait a little
// shorter than ctx allows, so that it answers in time. A session that is granted
// after ctx has ended is given back at once.
func (s *Subscription) Accept(ctx context.Context, slot int) (session.Receiver, error) {
	w, err := s.endpoints[slot%len(s.endpoints)].connected(ctx)
	if err != nil {
		return nil, s.failed(err)
	}
	s.reached.Store(true)
	wait := acceptDefault
	if deadline, ok := ctx.Deadline(); ok {
		left := time.Until(deadline)
		wait = max(left-min(left/5, answerMost)-attachTrips*w.trip(), time.Millisecond)
	}
	type attached struct {
		receiver *receiver
		err      error
	}
	answer := make(chan attached)
	if !s.running.Go(func() {
		r, err := w.attach(ctx, wait)
		select {
		case answer <- attached{r, err}:
		case <-ctx.Done():
			if err == nil {
				r.giveBack(ctx)
			}
		}
	}) {
		return nil, errClosed
	}
	select {
	case a := <-answer:
		if a.err != nil {
			return nil, s.failed(a.err)
		}
		return a.receiver, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// failed says what the error of an accept is to the engine.
func (s *Subscription) failed(err error) error {
	switch classify(err) {
	case namespace.NoSession:
		return session.ErrNoSession
	case namespace.Refused:
		return fmt.Errorf("subscription %q of topic %q refuses: %w", s.cfg.Subscription, s.cfg.Topic, err)
	}
	if endedBusy(err) {
		return busy(err)
	}
	return orBusy(err)
}

// Doubt implements session.Acceptor.
func (s *Subscription) Doubt(slot int, since time.Time) {
	s.endpoints[slot%len(s.endpoints)].doubt(since)
}

// Reached tells whether the service has answered yet: it has taken a claim to listen.
func (s *Subscription) Reached() bool { return s.reached.Load() }

// Close closes every connection, and with them what is still held or asked for.
func (s *Subscription) Close(ctx context.Context) error {
	for _, e := range s.endpoints {
		e.close()
	}
	ended := make(chan struct{})
	go func() {
		s.running.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("close the Service Bus connections: %w", context.Cause(ctx))
	}
}
