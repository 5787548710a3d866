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

	"changerelay/services/projector/internal/delivery"
	"changerelay/services/projector/internal/projection"
	"changerelay/services/projector/internal/readmodel/readmodeltest"
	"changerelay/services/projector/internal/session"
)

// failing fails some versions.
type failing struct {
	projection.Projections
	versions []int64
}

func (f failing) Decide(c *projection.Change) ([]projection.Write, error) {
	if slices.Contains(f.versions, c.Version.Number) {
		return nil, errors.New("not mended yet")
	}
	return f.Projections.Decide(c)
}

// stand is one aggregate's session, the replicas that may take it, and an operator.
type stand struct {
	store    *readmodeltest.Fake
	orders   projection.Projections
	replicas []*replica
	queue    []session.Message
}

func newStand(t *testing.T, replicas, messages int, bad ...int64) *stand {
	t.Helper()
	s := &stand{store: readmodeltest.NewFake(), orders: parse(t, counting)[:1]}
	for range replicas {
		s.replicas = append(s.replicas, newReplicaOf(failing{s.orders, bad}, s.store))
	}
	for n := range int64(messages) {
		s.queue = append(s.queue, happened(t, "a", n+1)...)
	}
	return s
}

// read has a replica read its list once.
func (s *stand) read(t *testing.T, replica int) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.replicas[replica].halts.Run(ctx) }()
	synctest.Wait()
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// take gives a replica the session's next message; what has a verdict is gone.
func (s *stand) take(ctx context.Context, t *testing.T, replica int) {
	if len(s.queue) == 0 {
		return
	}
	verdicts, err := s.replicas[replica].Hold("a").Apply(ctx, s.queue[:1])
	if err != nil && ctx.Err() == nil {
		t.Errorf("apply: %v", err)
	}
	s.queue = s.queue[len(verdicts):]
}

// cut is take by a replica that dies as soon as it has stored a halt.
func (s *stand) cut(t *testing.T, replica int) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var halts atomic.Bool
	s.store.Fail = func(operation string) error {
		if operation == "halt" && halts.CompareAndSwap(false, true) {
			time.AfterFunc(time.Millisecond, cancel)
		}
		return nil
	}
	s.take(ctx, t, replica)
	s.store.Fail = nil
}

// redrive is the operator's, with the projection mended.
func (s *stand) redrive(t *testing.T) {
	if _, err := delivery.Redrive(t.Context(), s.orders, s.store, s.store, delivery.Gaps{}, "a"); err != nil {
		t.Error(err)
	}
}

// finish has everything applied, and returns what the document has seen.
func (s *stand) finish(t *testing.T) string {
	for len(s.queue) > 0 {
		s.take(t.Context(), t, 0)
	}
	s.redrive(t)
	text, err := s.store.Fields(t.Context(), "orders", "a")
	if err != nil {
		t.Error(err)
	}
	return text
}

func allOf(n int) string {
	var seen []string
	for i := range n {
		seen = append(seen, fmt.Sprint(i+1))
	}
	return fmt.Sprintf(`{"events":%d}{"last":%d}{"seen":[%s]}`, n, n, strings.Join(seen, ","))
}

// Every schedule of five steps: two replicas read their lists and take the
// session; an operator redrives. No event is applied over a parked
// one, so in the end all are applied, in order.
func TestHalt_InEveryScheduleNothingIsAppliedOverWhatIsParked(t *testing.T) {
	t.Parallel()
	steps := []struct {
		name string
		do   func(t *testing.T, s *stand)
	}{
		{"0 reads", func(t *testing.T, s *stand) { s.read(t, 0) }},
		{"1 reads", func(t *testing.T, s *stand) { s.read(t, 1) }},
		{"0 takes", func(t *testing.T, s *stand) { s.take(t.Context(), t, 0) }},
		{"1 takes", func(t *testing.T, s *stand) { s.take(t.Context(), t, 1) }},
		{"redrive", func(t *testing.T, s *stand) { s.redrive(t) }},
	}
	const length, messages = 5, 5
	schedules := 1
	for range length {
		schedules *= len(steps)
	}
	for schedule := range schedules {
		var names []string
		var got string
		synctest.Test(t, func(t *testing.T) {
			s := newStand(t, 2, messages, 1, 2)
			for i, rest := 0, schedule; i < length; i, rest = i+1, rest/len(steps) {
				step := steps[rest%len(steps)]
				names = append(names, step.name)
				step.do(t, s)
			}
			got = s.finish(t)
		})
		if want := allOf(messages); got != want {
			t.Fatalf("%s:\n got %s\nwant %s", strings.Join(names, ", "), got, want)
		}
	}
}

// A replica that knows of an earlier halt has not waited for the later one, which
// another has stored.
func TestHalt_ALaterHaltByAnotherReplicaIsWaitedFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStand(t, 3, 4, 1, 2)
		s.take(t.Context(), t, 0) // halts at 1
		s.redrive(t)
		s.read(t, 2)
		s.cut(t, 1)               // halts at 2, and is gone
		s.take(t.Context(), t, 0) // parks 2
		s.take(t.Context(), t, 2) // its list is older than the halt
		if got := s.finish(t); got != allOf(4) {
			t.Errorf("document: got %s, want %s", got, allOf(4))
		}
	})
}

func TestHalt_MoreHaltsThanTheListHoldsAreStillFound(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStand(t, 1, 0)
		for n := range 1001 {
			e := readmodeltest.Event(fmt.Sprintf("a%04d", n), 1)
			if _, err := s.store.Halt(t.Context(), delivery.Halt{Event: *e}); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := s.store.Halt(t.Context(), delivery.Halt{Event: *readmodeltest.Event("z", 1)}); err != nil {
			t.Fatal(err)
		}
		s.read(t, 0)
		for aggregate, want := range map[string]bool{"a0000": true, "a1000": true, "z": true, "free": false} {
			if got, err := s.replicas[0].halts.Halted(t.Context(), aggregate); err != nil || got != want {
				t.Errorf("%s: got halted %t and %v, want %t", aggregate, got, err, want)
			}
		}
		if n, known := s.replicas[0].halts.Count(); n != 1001 || !known {
			t.Errorf("count: got %d and %t, want one more than the list holds", n, known)
		}
	})
}

// An operator may run redrives one after another, while a failed event has halted
// its aggregate and the replicas are waited for: a halt that was lifted then would
// come at once again, and that for ever.
func TestHandler_ARedriveFindsParkedWhatItsHaltIsFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStand(t, 1, 3, 1)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		taken := make(chan struct{})
		var operator sync.WaitGroup
		operator.Go(func() {
			for {
				select {
				case <-taken:
					return
				case <-time.After(100 * time.Millisecond):
				}
				redriven, err := delivery.Redrive(ctx, failing{s.orders, []int64{1}}, s.store, s.store, delivery.Gaps{}, "a")
				if err != nil || redriven.Lifted {
					t.Errorf("a redrive of what fails again: got %+v and error %v, want it to stop there", redriven, err)
				}
			}
		})
		s.take(ctx, t, 0)
		close(taken)
		operator.Wait()
		if ctx.Err() != nil || len(s.queue) != 2 {
			t.Errorf("%d messages are left and the context says %v, want the failed one parked and completed", len(s.queue), ctx.Err())
		}
		if halts := s.replicas[0].Counts().Halts.Load(); halts != 1 {
			t.Errorf("the aggregate was halted %d times, want once", halts)
		}
	})
}
