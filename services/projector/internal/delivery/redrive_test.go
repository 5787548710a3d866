package delivery_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"changerelay/services/projector/internal/delivery"
	"changerelay/services/projector/internal/projection"
	"changerelay/services/projector/internal/readmodel/readmodeltest"
	"changerelay/services/projector/internal/session"
)

// mended fails an event until it is mended.
type mended struct {
	projection.Projections
	bad  int64
	done atomic.Bool
}

func (m *mended) Decide(c *projection.Change) ([]projection.Write, error) {
	if c.Version.Number == m.bad && !m.done.Load() {
		return nil, errors.New("not mended yet")
	}
	return m.Projections.Decide(c)
}

// stage lets one operation on the store go on at a time, in a drawn order.
type stage struct {
	mu      sync.Mutex
	waiting []chan error // guarded by mu
}

func (s *stage) enter(string) error {
	turn := make(chan error)
	s.mu.Lock()
	s.waiting = append(s.waiting, turn)
	s.mu.Unlock()
	return <-turn
}

// next lets one of those who wait go on; false when nobody waits.
func (s *stage) next(choice int) bool {
	s.mu.Lock()
	if len(s.waiting) == 0 {
		s.mu.Unlock()
		return false
	}
	i := choice % len(s.waiting)
	turn := s.waiting[i]
	s.waiting = append(s.waiting[:i], s.waiting[i+1:]...)
	s.mu.Unlock()
	var err error
	if choice%7 == 6 {
		err = errDown
	}
	turn <- err
	return true
}

// play is one aggregate's messages on their way, with redrives beside them.
type play struct {
	messages  int
	bad       int64
	portions  []int // messages of each batch
	staleFrom int   // where a holder without a lock begins
	choices   []int // of the stage
}

func drawPlay(r *rapid.T) play {
	n := rapid.IntRange(2, 8).Draw(r, "messages")
	return play{
		messages:  n,
		bad:       int64(rapid.IntRange(1, n).Draw(r, "bad")),
		portions:  rapid.SliceOfN(rapid.IntRange(1, 3), n, n).Draw(r, "portions"),
		staleFrom: rapid.IntRange(0, n-1).Draw(r, "stale from"),
		choices:   rapid.SliceOfN(rapid.IntRange(0, 27), 20, 120).Draw(r, "choices"),
	}
}

// Messages of a halted aggregate keep arriving, holders lose their lock and go
// on for a while, operations fail, and two redrives run beside them: in the end
// each event is applied once, in order, and the halt is over.
func TestRedrive_ARedriveLosesNothingWhileMessagesArrive(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		p := drawPlay(r)
		var got string
		synctest.Test(t, func(t *testing.T) { got = p.run(t) })
		var seen []string
		for n := range p.messages {
			seen = append(seen, fmt.Sprint(n+1))
		}
		want := fmt.Sprintf(`{"events":%d}{"last":%d}{"seen":[%s]}`, p.messages, p.messages, strings.Join(seen, ","))
		if got != want {
			r.Fatalf("document:\n got %s\nwant %s", got, want)
		}
	})
}

func (p play) run(t *testing.T) string {
	store, stage := readmodeltest.NewFake(), &stage{}
	store.Fail = stage.enter
	decider := &mended{Projections: parse(t, counting)[:1], bad: p.bad}
	handler := func() *delivery.Handler {
		return newHandler(decider, store)
	}
	versions := make([]int64, p.messages)
	for i := range versions {
		versions[i] = int64(i + 1)
	}
	messages := happened(t, "a", versions...)

	var actors sync.WaitGroup
	actors.Go(func() { hold(t.Context(), handler(), messages, p.portions) })
	actors.Go(func() {
		// It has these messages in hand, and its lock is gone: what it says is not heard.
		_, _ = handler().Hold("a").Apply(t.Context(), messages[:p.staleFrom])
	})
	for range 2 {
		actors.Go(func() {
			for range 3 {
				_, _ = delivery.Redrive(t.Context(), decider, store, store, delivery.Gaps{}, "a")
				time.Sleep(time.Second)
			}
		})
	}
	ended := make(chan struct{})
	go func() { actors.Wait(); close(ended) }()
	for i := 0; ; i++ {
		if i == len(p.choices)/2 {
			decider.done.Store(true)
		}
		synctest.Wait()
		choice := 0
		if i < len(p.choices) {
			choice = p.choices[i]
		}
		if stage.next(choice) {
			continue
		}
		select {
		case <-ended:
		case <-time.After(100 * time.Millisecond):
			continue
		}
		break
	}
	store.Fail = nil
	decider.done.Store(true)
	// Where the holder without a lock has applied what is parked and more, only an
	// operator can say that nothing was lost.
	if done, err := delivery.Redrive(t.Context(), decider, store, store, delivery.Gaps{Lost: true}, "a"); err != nil || !done.Lifted {
		return fmt.Sprintf("the last redrive: %+v, %v", done, err)
	}
	if mark, _ := store.Marked(t.Context(), "orders", "a"); mark != "" {
		return "still marked: " + mark
	}
	text, err := store.Fields(t.Context(), "orders", "a")
	if err != nil {
		return err.Error()
	}
	return text
}

// hold applies all messages in portions, each until every one has its verdict.
func hold(ctx context.Context, h *delivery.Handler, messages []session.Message, portions []int) {
	for i := 0; len(messages) > 0; i++ {
		portion := messages[:min(portions[i], len(messages))]
		for len(portion) > 0 {
			verdicts, _ := h.Hold("a").Apply(ctx, portion)
			portion, messages = portion[len(verdicts):], messages[len(verdicts):]
		}
	}
}

func TestRedrive_AHaltLiftedMeanwhileLetsTheRestBeApplied(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		if _, err := f.store.Halt(t.Context(), delivery.Halt{Event: *readmodeltest.Event("a", 1)}); err != nil {
			t.Fatal(err)
		}
		f.store.Fail = func(operation string) error {
			if operation != "park" {
				return nil
			}
			_, err := f.store.Lift(t.Context(), "a")
			return err
		}
		verdicts, err := f.Hold("a").Apply(t.Context(), happened(t, "a", 2, 3))
		if err != nil || len(verdicts) != 2 {
			t.Fatalf("got %v and %v, want two verdicts", verdicts, err)
		}
		if got := f.fields(t, "orders", "a"); got != `{"events":2}{"last":3}{"seen":[2,3]}` {
			t.Errorf("document: got %s, want both applied", got)
		}
	})
}

func TestRedrive_ARedriveStopsAtWhatFailsAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := readmodeltest.NewFake()
		decider := &mended{Projections: parse(t, counting), bad: 2}
		h := newHandler(decider, store)
		if _, err := h.Hold("a").Apply(t.Context(), happened(t, "a", 1, 2, 3)); err != nil {
			t.Fatal(err)
		}
		done, err := delivery.Redrive(t.Context(), decider, store, store, delivery.Gaps{}, "a")
		if err != nil || done.Lifted || done.FailedEventID != "a-2" || !strings.Contains(done.Reason, "not mended") {
			t.Errorf("redrive: got %+v and %v, want it stopped at a-2", done, err)
		}
		if there, err := store.Unpark(t.Context(), readmodeltest.Event("a", 2)); err != nil || !there {
			t.Fatalf("discard: got %t and %v", there, err)
		}
		done, err = delivery.Redrive(t.Context(), decider, store, store, delivery.Gaps{}, "a")
		if err != nil || !done.Lifted || done.Applied != 1 {
			t.Errorf("redrive: got %+v and %v, want the last one applied and the halt lifted", done, err)
		}
		if got, _ := store.Fields(t.Context(), "orders", "a"); got != `{"events":2}{"last":3}{"seen":[1,3]}` {
			t.Errorf("document: got %s", got)
		}
	})
}

// A redrive that comes only half way leaves a document that is newer than
// before, and still older than its events.
func TestRedrive_DocumentsAreMarkedUntilTheHaltIsLifted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := readmodeltest.NewFake()
		decider := &mended{Projections: parse(t, counting), bad: 2}
		h := newHandler(decider, store)
		if _, err := h.Hold("a").Apply(t.Context(), happened(t, "a", 1, 2, 3, 4)); err != nil {
			t.Fatal(err)
		}
		marked := func(when string, want bool) {
			t.Helper()
			if mark, err := store.Marked(t.Context(), "orders", "a"); err != nil || (mark != "") != want {
				t.Errorf("%s: got mark %q and %v, want one: %t", when, mark, err, want)
			}
		}
		marked("halted", true)
		decider.bad = 4
		if done, err := delivery.Redrive(t.Context(), decider, store, store, delivery.Gaps{}, "a"); err != nil || done.Applied != 2 || done.Lifted {
			t.Fatalf("redrive: got %+v and %v, want two applied and no halt lifted", done, err)
		}
		marked("redriven half way", true)
		decider.done.Store(true)
		if done, err := delivery.Redrive(t.Context(), decider, store, store, delivery.Gaps{}, "a"); err != nil || !done.Lifted {
			t.Fatalf("redrive: got %+v and %v, want the halt lifted", done, err)
		}
		marked("lifted", false)
	})
}

// An operator redrives thousands of aggregates in the time of some; one that fails
// holds up no other.
func TestRedrive_ManyAggregatesGoSideBySide(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		var aggregates []string
		for n := range 100 {
			aggregate := fmt.Sprintf("a%02d", n)
			aggregates = append(aggregates, aggregate)
			if _, err := f.store.Halt(t.Context(), delivery.Halt{Event: *readmodeltest.Event(aggregate, 1)}); err != nil {
				t.Fatal(err)
			}
			for _, m := range happened(t, aggregate, 1, 2) {
				e := *readmodeltest.Event(aggregate, m.SequenceNumber)
				if err := f.store.Park(t.Context(), []delivery.Parked{{Message: m, Event: e}}); err != nil {
					t.Fatal(err)
				}
			}
		}
		var now, most atomic.Int64
		f.store.Fail = func(operation string) error {
			if operation != "write" {
				return nil
			}
			most.Store(max(most.Load(), now.Add(1)))
			time.Sleep(time.Second)
			now.Add(-1)
			return nil
		}
		began := time.Now()
		var told []string
		err := delivery.RedriveAll(t.Context(), deadEnd{parse(t, counting)[:1], "a07-2"}, f.store, f.store, delivery.Gaps{}, aggregates, func(done delivery.Redriven) error {
			told = append(told, done.AggregateID)
			if want := done.AggregateID != "a07"; done.Lifted != want || want && done.Applied != 2 {
				t.Errorf("got %+v", done)
			}
			return nil
		})
		if err != nil || !slices.Equal(told, aggregates) {
			t.Errorf("got %v and %v, want each told of in order", told, err)
		}
		if most.Load() < 10 || most.Load() > 20 {
			t.Errorf("got %d side by side, want some, and not all", most.Load())
		}
		if took := time.Since(began); took > 20*time.Second {
			t.Errorf("took %s, want it done side by side", took)
		}
		if open, most := f.store.Pages(); open != 0 || most > 16 {
			t.Errorf("got %d pages of messages left open and %d at once, want none, and one of each that is redriven", open, most)
		}
		if got := f.fields(t, "orders", "a99"); got != `{"events":2}{"last":2}{"seen":[1,2]}` {
			t.Errorf("document: got %s, want both in order", got)
		}
	})
}

// deadEnd fails one event.
type deadEnd struct {
	projection.Projections
	id string
}

func (d deadEnd) Decide(c *projection.Change) ([]projection.Write, error) {
	if c.ID == d.id {
		return nil, errors.New("never")
	}
	return d.Projections.Decide(c)
}

// parkedOne is a store in which one event is parked, and nothing else.
func parkedOne(t *testing.T, kind string) *readmodeltest.Fake {
	t.Helper()
	store := readmodeltest.NewFake()
	if _, err := store.Halt(t.Context(), delivery.Halt{Event: *readmodeltest.Event("a", 1)}); err != nil {
		t.Fatal(err)
	}
	m := message(t, "a", 1, kind, `{"n":1}`)
	if err := store.Park(t.Context(), []delivery.Parked{{Message: m, Event: *readmodeltest.Event("a", 1)}}); err != nil {
		t.Fatal(err)
	}
	return store
}

// What an older release has parked does not say who followed it: that nobody does
// here is no reason to take it away, and that somebody does is one to apply it.
func TestRedrive_WhereItWasNotNotedWhoFollowedAnEvent(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		kind       string
		followedBy []string
		gaps       delivery.Gaps
		want       delivery.Redriven
		reason     string
	}{
		"nobody follows it here":             {"Unheard", nil, delivery.Gaps{}, delivery.Redriven{AggregateID: "a", FailedEventID: "a-1"}, "it was not noted whether one did"},
		"nobody does, and that is accepted":  {"Unheard", nil, delivery.Gaps{Unfollowed: true}, delivery.Redriven{AggregateID: "a", PassedBy: 1, Lifted: true}, ""},
		"somebody follows it here":           {"Happened", nil, delivery.Gaps{}, delivery.Redriven{AggregateID: "a", Applied: 1, Lifted: true}, ""},
		"it was noted that nobody did":       {"Unheard", []string{}, delivery.Gaps{}, delivery.Redriven{AggregateID: "a", PassedBy: 1, Lifted: true}, ""},
		"it was noted that another one does": {"Happened", []string{"gone"}, delivery.Gaps{}, delivery.Redriven{AggregateID: "a", FailedEventID: "a-1"}, `projection "gone" followed`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := parkedOne(t, tt.kind)
			store.FollowedBy = tt.followedBy
			done, err := delivery.Redrive(t.Context(), parse(t, counting), store, store, tt.gaps, "a")
			reason := done.Reason
			done.Reason = ""
			if err != nil || done != tt.want || !strings.Contains(reason, tt.reason) || (reason == "") != (tt.reason == "") {
				t.Errorf("got %+v, %q and %v, want %+v and %q", done, reason, err, tt.want, tt.reason)
			}
		})
	}
}

// A stop in the middle of an expression says nothing about the event: it has not
// failed again, and stays parked.
func TestRedrive_AStopInterruptsAnExpressionAndBlamesNothing(t *testing.T) {
	t.Parallel()
	store := parkedOne(t, "Happened")
	ctx, stop := context.WithCancelCause(t.Context())
	decider := &stopping{parse(t, long), stop}
	done, err := delivery.Redrive(ctx, decider, store, store, delivery.Gaps{}, "a")
	if !errors.Is(err, errStopped) || done != (delivery.Redriven{AggregateID: "a"}) {
		t.Errorf("got %+v and %v, want the stop", done, err)
	}
	if parked, err := store.Parked(t.Context(), "a"); err != nil || len(parked) != 1 {
		t.Errorf("parked: got %v and %v, want it still", parked, err)
	}
}
