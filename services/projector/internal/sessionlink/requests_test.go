package sessionlink

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/go-amqp"

	"changerelay/services/projector/internal/sandboxtest"
)

// A link for requests that has ended, while the one for their answers has not, is not
// asked over for ever: the next request opens another pair.
func TestRequests_GoOnWhenOneLinkOfThePairHasEnded(t *testing.T) {
	t.Parallel()
	sandboxtest.Send(t, servers, "requests", messages("a", 1, 1)...)
	r := mustAccept(t, open(t, at(t, servers, "requests")))
	w := r.wire
	for name, n := range map[string]*node{"$management": w.management, "$cbs": w.claims.cbs} {
		p, err := n.open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := p.out.Close(t.Context()); err != nil {
			t.Fatalf("end the link for requests to %s: %v", name, err)
		}
	}
	for range 2 {
		if _, err := r.RenewLock(t.Context()); err != nil {
			t.Errorf("renew over a pair of which one link has ended: %v", err)
		}
		if err := w.claims.put(t.Context(), w.cfg.entity(), time.Now()); err != nil {
			t.Errorf("claim over a pair of which one link has ended: %v", err)
		}
	}
	if err := r.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// The pair that is opened before it is needed is not waited for without an end.
func TestRequests_AreNotHeldUpByAnOpeningThatIsNotAnswered(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		n := newNode(nil, "$management", &running{}, func(ctx context.Context, _ time.Time) error {
			<-ctx.Done()
			return ctx.Err()
		})
		opened := make(chan struct{})
		go func() {
			defer close(opened)
			n.ready(ctx, 30*time.Second)
		}()
		limit := time.NewTimer(time.Hour)
		defer limit.Stop()
		select {
		case <-opened:
		case <-limit.C:
			t.Error("the opening still has the turn")
		}
	})
}

// A claim that nobody answers, on a connection that answers other things, has that
// replaced: without it no session is granted there any more.
func TestClaims_ThatAreNotAnsweredEndTheConnection(t *testing.T) {
	t.Parallel()
	cfg := at(t, servers, "unanswered")
	cfg.answerTime = 100 * time.Millisecond
	s := open(t, cfg)
	w, err := s.endpoints[0].connected(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	silent, err := newPair(t.Context(), w.conn, "$cbs") // nobody reads its answers
	if err != nil {
		t.Fatal(err)
	}
	w.claims.cbs.mu.Lock()
	w.claims.cbs.pair = silent
	w.claims.cbs.mu.Unlock()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := w.claims.put(ctx, cfg.entity(), time.Now()); err == nil {
		t.Fatal("a claim without an answer: got nil, want an error")
	}
	select {
	case <-w.conn.Done():
	case <-time.NewTimer(20 * time.Second).C:
		t.Fatal("the connection is still there")
	}
	sandboxtest.Send(t, servers, "unanswered", messages("b", 1, 1)...)
	if err := mustAccept(t, s).Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// A claim for $management that has ended although it should not have is put again by
// the request that is refused for it.
func TestRequests_ThatAreRefusedForTheirClaimPutItAgain(t *testing.T) {
	t.Parallel()
	guarded := sandboxtest.StartWith(t, sandboxtest.Topics("claim"), "--check-sas")
	cfg := at(t, guarded, "claim")
	cfg.tokenLife = 3 * time.Second
	s := open(t, cfg)
	w, err := s.endpoints[0].connected(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.management.open(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.stop() // nobody puts the claim again in time
	<-time.NewTimer(cfg.tokenLife + time.Second).C
	request := &amqp.Message{ApplicationProperties: map[string]any{"operation": "com.microsoft:renew-session-lock"}}
	if _, err := w.management.ask(t.Context(), request); err == nil || isUnauthorized(err) {
		t.Errorf("a request once the claim has ended: got %v, want that no session is named", err)
	}
}
