package sessionlink

import (
	"context"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"changerelay/services/projector/internal/sandboxtest"
	"changerelay/services/projector/internal/session"
)

// engine runs an engine on a subscription until the test's end.
func engine(t *testing.T, cfg session.Config, s *Subscription, h session.Handler) *session.Engine {
	t.Helper()
	e := session.New(cfg, s, h, zerolog.New(zerolog.NewTestWriter(t)))
	ctx, stop := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- e.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ran; err != nil {
			t.Errorf("run: %v", err)
		}
	})
	return e
}

// until waits until cond holds.
func until(t *testing.T, what string, cond func() bool) {
	t.Helper()
	limit := time.NewTimer(30 * time.Second)
	defer limit.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !cond() {
		select {
		case <-tick.C:
		case <-limit.C:
			t.Fatalf("%s does not hold", what)
		}
	}
}

// A connection that takes longer to make than an accept waits is made all the same, also
// where no accept was answered for some time before.
func TestDoubt_AConnectionThatIsBeingMadeIsWaitedFor(t *testing.T) {
	t.Parallel()
	at := at(t, servers, "slowdial")
	way := sandboxtest.NewProxy(t, at.Access.Host)
	way.Open(t)
	at.Access.Host = way.Addr
	cfg := session.Defaults()
	cfg.MaxSessions, cfg.AcceptFloor, cfg.AcceptTime = 2, 2, 500*time.Millisecond
	e := engine(t, cfg, open(t, at), completes{})
	until(t, "the broker says that there is nothing", func() bool { return !e.Idle().IsZero() })

	way.Cut()
	outage := time.NewTimer(4 * cfg.AcceptTime)
	<-outage.C
	way.Slow(2*cfg.AcceptTime, 0)
	way.Open(t)
	sandboxtest.Send(t, servers, "slowdial", messages("a", 1, 1)...)
	until(t, "the message is settled", func() bool { return e.Counts().Completed.Load() == 1 })
}

// A broker that is far away answers accepts in their time, and its connection stays, with
// what is held on it.
func TestDoubt_AConnectionToAFarBrokerStays(t *testing.T) {
	t.Parallel()
	at := at(t, servers, "far")
	way := sandboxtest.NewProxy(t, at.Access.Host)
	way.Slow(0, 125*time.Millisecond)
	way.Open(t)
	at.Access.Host = way.Addr
	s := open(t, at)
	w, err := s.endpoints[0].connected(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	cfg := session.Defaults()
	cfg.MaxSessions, cfg.AcceptFloor, cfg.AcceptTime = 2, 2, time.Second
	e := engine(t, cfg, s, completes{})
	until(t, "the broker says that there is nothing", func() bool { return !e.Idle().IsZero() })
	until(t, "many accepts have ended", func() bool { return e.Counts().AcceptedNone.Load() >= 12 || w.over() })
	if err := e.Accepting().Current(); err != nil || e.Counts().AcceptsHung.Load() > 0 {
		t.Errorf("got %v, and %d accepts that hang, want none", err, e.Counts().AcceptsHung.Load())
	}
	if now, err := s.endpoints[0].connected(t.Context()); now != w || err != nil {
		t.Errorf("got another connection, or %v, want the first", err)
	}
}

// A connection on which something was answered stays, with what is held on it, though no
// accept was answered in its time.
func TestDoubt_AConnectionThatAnswersStaysThoughNoAcceptIsAnsweredInItsTime(t *testing.T) {
	t.Parallel()
	s := open(t, at(t, servers, "answers"))
	w, err := s.endpoints[0].connected(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s.Doubt(0, time.Now().Add(-time.Hour))
	if now, err := s.endpoints[0].connected(t.Context()); now != w || err != nil {
		t.Errorf("heard within the time: got another connection, or %v, want the first", err)
	}
	s.Doubt(0, time.Now())
	if now, err := s.endpoints[0].connected(t.Context()); now == w || err != nil {
		t.Errorf("not heard within the time: got the first connection, or %v, want another", err)
	}
}
