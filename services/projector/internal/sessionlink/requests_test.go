package sessionlink

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/go-amqp"

	"changerelay/services/projector/internal/sandboxtest"
	"changerelay/services/projector/internal/session"
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

// silence has a connection's $management answer nothing over the pair in use.
func silence(t *testing.T, w *wire) {
	t.Helper()
	if _, err := w.management.open(t.Context()); err != nil {
		t.Fatal(err)
	}
	p, err := newPair(t.Context(), w.conn, w.management.address, &w.running) // nobody reads its answers
	if err != nil {
		t.Fatal(err)
	}
	p.stop = func() {}
	w.management.mu.Lock()
	defer w.management.mu.Unlock()
	w.management.pair.stop()
	w.management.pair = p
}

// slowly applies as slowly as it is told to.
type slowly time.Duration

func (s slowly) Hold(string) session.Applier { return s }

func (s slowly) Apply(ctx context.Context, messages []session.Message) ([]session.Verdict, error) {
	timer := time.NewTimer(time.Duration(s))
	defer timer.Stop()
	select {
	case <-timer.C:
		return make([]session.Verdict, len(messages)), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Locks are renewed over another pair where nothing is answered over the one in use.
func TestRequests_OfAPairThatAnswersNothingGoOverAnother(t *testing.T) {
	t.Parallel()
	cfg := at(t, servers, "silent")
	cfg.answerTime = 500 * time.Millisecond
	s := open(t, cfg)
	sandboxtest.Send(t, servers, "silent", append(messages("a", 1, 1), messages("b", 1, 1)...)...)
	w, err := s.endpoints[0].connected(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	silence(t, w)
	e := engine(t, session.Defaults(), s, slowly(12*time.Second)) // longer than the lock
	until(t, "both are settled", func() bool { return e.Counts().Completed.Load() == 2 || e.Counts().GivenBack.Load() > 0 })
	if lost := e.Counts().LocksLost.Load(); lost > 0 {
		t.Errorf("got %d locks that were lost, want none", lost)
	}
}

// Locks are renewed where each answer takes longer than what is usually waited for: a slow
// service is not asked over one pair after another until no request is answered any more.
func TestRequests_ThatAreAnsweredLateAreAnswered(t *testing.T) {
	t.Parallel()
	const trip = 600 * time.Millisecond
	s := open(t, far(t, "lateanswers", trip))
	w, err := s.endpoints[0].connected(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.management.open(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.management.patience.least = trip * 5 / 6
	ec := session.Defaults()
	ec.MaxSessions, ec.AcceptFloor = 3, 3
	e := engine(t, ec, s, slowly(12*time.Second)) // longer than the lock
	for _, id := range []string{"a", "b", "c"} {
		sandboxtest.Send(t, servers, "lateanswers", messages(id, 1, 1)...)
		<-time.NewTimer(time.Second).C // between their renewals: less than another pair takes
	}
	until(t, "all are settled", func() bool { return e.Counts().Completed.Load() == 3 || e.Counts().GivenBack.Load() > 0 })
	if lost := e.Counts().LocksLost.Load(); lost > 0 {
		t.Errorf("got %d locks that were lost, want none", lost)
	}
}

// A request is sent again for as long as its time lasts, over one pair after another, until
// there is patience enough for its answer.
func TestRequests_AreSentOverAsManyPairsAsItTakes(t *testing.T) {
	t.Parallel()
	const trip = 200 * time.Millisecond
	cfg := far(t, "pairs", trip)
	sandboxtest.Send(t, servers, "pairs", messages("a", 1, 1)...)
	r := mustAccept(t, open(t, cfg))
	r.wire.management.patience.least = trip / 10 // doubled four times
	if _, err := r.RenewLock(t.Context()); err != nil {
		t.Errorf("renew where an answer takes ten times what is waited for at first: %v", err)
	}
	if got := r.wire.management.patience.lasts(); got < 2*trip {
		t.Errorf("got a patience of %v after an answer that took %v, want twice as long", got, trip)
	}
	if err := r.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// Patience that has grown is bounded, and an answer in good time ends it.
func TestRequests_PatienceGrowsForAsLongAsAnswersAreLate(t *testing.T) {
	t.Parallel()
	p := patience{least: 5 * time.Second}
	for range 10 {
		p.unanswered()
	}
	if got := p.lasts(); got != patienceMost {
		t.Errorf("got %v after ten pairs that answered nothing, want %v", got, patienceMost)
	}
	p.answered(time.Minute)
	if got := p.lasts(); got != patienceMost {
		t.Errorf("got %v after an answer that took a minute, want %v", got, patienceMost)
	}
	p.answered(6 * time.Second)
	if got, want := p.lasts(), 12*time.Second; got != want {
		t.Errorf("got %v after an answer that took half as long, want %v", got, want)
	}
	p.answered(time.Second)
	if got := p.lasts(); got != p.least {
		t.Errorf("got %v after an answer in good time, want %v", got, p.least)
	}
}

// far is a configuration for a topic of a server from which an answer takes as long as trip.
func far(t *testing.T, topic string, trip time.Duration) Config {
	t.Helper()
	cfg := at(t, servers, topic)
	way := sandboxtest.NewProxy(t, cfg.Access.Host)
	way.Slow(0, trip/2)
	way.Open(t)
	cfg.Access.Host = way.Addr
	return cfg
}

// Requests whose time is shorter than what is waited for an answer let a pair go as well.
func TestRequests_ThatAreGivenUpOneAfterAnotherLetThePairGo(t *testing.T) {
	t.Parallel()
	cfg := at(t, servers, "impatient")
	cfg.answerTime = 600 * time.Millisecond
	sandboxtest.Send(t, servers, "impatient", messages("a", 1, 1)...)
	r := mustAccept(t, open(t, cfg))
	silence(t, r.wire)
	renew := func(within time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), within)
		defer cancel()
		_, err := r.RenewLock(ctx)
		return err
	}
	for range 2 {
		if err := renew(cfg.answerTime / 4); err == nil {
			t.Error("renew without an answer: got nil, want an error")
		}
	}
	// Each asks for no longer than half of what a pair has, and together they take longer.
	until(t, "the lock is renewed", func() bool { return renew(cfg.answerTime/2) == nil })
	if err := r.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// A pair that answers stays, however long ago it was first asked.
func TestRequests_APairThatAnswersStays(t *testing.T) {
	t.Parallel()
	cfg := at(t, servers, "answering")
	cfg.answerTime = time.Second
	sandboxtest.Send(t, servers, "answering", messages("a", 1, 1)...)
	r := mustAccept(t, open(t, cfg))
	var before *pair
	for range 3 {
		if _, err := r.RenewLock(t.Context()); err != nil {
			t.Fatal(err)
		}
		now := r.wire.management.current()
		if before != nil && now != before {
			t.Error("got another pair, want the first")
		}
		before = now
		<-time.NewTimer(cfg.answerTime * 5 / 8).C
	}
	if err := r.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// senderCredit is how many requests the sandbox lets a link send before it has answered any.
const senderCredit = 1000

// A request ends with its time also behind another one that cannot be sent.
func TestRequests_EndWithTheirTimeBehindOneThatIsNotTaken(t *testing.T) {
	t.Parallel()
	cfg := at(t, servers, "nocredit")
	way := sandboxtest.NewProxy(t, cfg.Access.Host)
	way.Open(t)
	cfg.Access.Host, cfg.answerTime = way.Addr, time.Hour
	w, err := open(t, cfg).endpoints[0].connected(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p, err := w.management.open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	way.Freeze() // no more credit comes
	ask := func(ctx context.Context) error {
		_, err := p.ask(ctx, &amqp.Message{Value: "anything"}, &patience{})
		return err
	}
	long, stop := context.WithCancel(t.Context())
	first := make(chan error, senderCredit+1)
	for range senderCredit + 1 {
		go func() { first <- ask(long) }()
	}
	until(t, "the last one waits for credit", func() bool { return p.requests() == senderCredit+1 })
	ended := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(long, 200*time.Millisecond)
		defer cancel()
		ended <- ask(ctx)
	}()
	select {
	case err := <-ended:
		if err == nil {
			t.Error("a request that is not taken: got nil, want an error")
		}
	case <-time.NewTimer(20 * time.Second).C:
		t.Error("the request does not end with its time")
	}
	stop()
	for range senderCredit + 1 {
		<-first
	}
	w.replace() // what is frozen does not end by itself
}

func (p *pair) requests() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.waiting)
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
	silent, err := newPair(t.Context(), w.conn, "$cbs", &w.running) // nobody reads its answers
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
