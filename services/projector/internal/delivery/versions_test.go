package delivery_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/delivery"
	"changerelay/services/projector/internal/session"
)

const gapWait = 10 * time.Second

// linkedFixture is a handler that waits for missing versions.
func linkedFixture(t *testing.T) *fixture {
	t.Helper()
	return newFixture(t, waiting(gapWait))
}

// enqueued is happened with messages that were enqueued now.
func enqueued(t *testing.T, aggregate string, versions ...int64) []session.Message {
	t.Helper()
	messages := happened(t, aggregate, versions...)
	for i := range messages {
		messages[i].EnqueuedAt = time.Now()
	}
	return messages
}

func (f *fixture) applied(t *testing.T, messages ...session.Message) {
	t.Helper()
	verdicts, err := f.Hold("a").Apply(t.Context(), messages)
	if err != nil || !slices.Equal(verdicts, make([]session.Verdict, len(messages))) {
		t.Fatalf("got %v and %v, want %d completed", verdicts, err, len(messages))
	}
}

// counted is the document after n events in order.
func counted(n int) string {
	seen := make([]string, n)
	for i := range seen {
		seen[i] = fmt.Sprint(i + 1)
	}
	return fmt.Sprintf(`{"events":%d}{"last":%d}{"seen":[%s]}`, n, n, strings.Join(seen, ","))
}

// A halt for dead letters is for those who put them back: what follows without a gap
// is parked behind them, and is not applied before they are.
func TestGaps_AHaltForDeadLettersIsLeftToThem(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := linkedFixture(t)
		f.applied(t, enqueued(t, "a", 1)...)
		r := newReturning(t, f.store)
		r.Gaps.Versions = f.store
		letters := r.letters.put(happened(t, "a", 2)...)
		//nolint:contextcheck // what happens meanwhile is another's
		_, redriven, err := r.Run(t.Context(), [][]delivery.Letter{letters}, func(context.Context, []*delivery.Letter) error {
			// Parked behind what was put back, they follow what is applied.
			f.applied(t, enqueued(t, "a", 2, 3)...)
			if text := r.orders(t); text != counted(1) {
				t.Errorf("before the dead letters are taken away: got %s, want nothing applied", text)
			}
			if halt, err := f.store.Halted(t.Context(), "a"); err != nil || halt == "" {
				t.Errorf("before the dead letters are taken away: got halt %q and %v, want it halted", halt, err)
			}
			return nil
		})
		if err != nil || len(redriven) != 1 || redriven[0].Applied != 2 || !redriven[0].Lifted || r.orders(t) != counted(3) {
			t.Errorf("got %+v, %v and %s, want both applied then", redriven, err, r.orders(t))
		}
	})
}

func TestGaps_AnEventWaitsForTheOneBeforeIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := linkedFixture(t)
		verdicts, err := f.Hold("a").Apply(t.Context(), enqueued(t, "a", 1, 2, 4))
		if len(verdicts) != 2 || !errors.Is(err, session.ErrNotYet) || !strings.Contains(err.Error(), "version 4 follows 2") {
			t.Errorf("got %d verdicts and %v, want two, and that version 3 is waited for", len(verdicts), err)
		}
		// The next holder knows what this one has reached.
		if verdicts, err := f.Hold("a").Apply(t.Context(), enqueued(t, "a", 4)); len(verdicts) != 0 || !errors.Is(err, session.ErrNotYet) {
			t.Errorf("got %d verdicts and %v, want none, and that version 3 is waited for", len(verdicts), err)
		}
		f.applied(t, enqueued(t, "a", 4, 5, 3)...)
		if got := f.fields(t, "orders", "a"); got != counted(5) {
			t.Errorf("document:\n got %s\nwant %s", got, counted(5))
		}
	})
}

// What fills a version is ahead of nothing, and nothing is missing before it; nor does it
// make up for a live event of the same version, which is missing still.
func TestGaps_WhatFillsAVersionIsNoneOfThem(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, waiting(gapWait), func(_ *delivery.Config, d *delivery.Deps) { d.Filling = fillsNothing{} })
		f.applied(t, enqueued(t, "a", 1)...)
		hold := f.Hold("a")
		if verdicts, err := hold.Apply(t.Context(), resent(t, "/orders_v2", enqueued(t, "a", 3))); err != nil || len(verdicts) != 1 {
			t.Errorf("what fills a version, behind a hole: got %v and %v, want it completed", verdicts, err)
		}
		if verdicts, err := hold.Apply(t.Context(), enqueued(t, "a", 4)); len(verdicts) != 0 || !errors.Is(err, session.ErrNotYet) {
			t.Errorf("a live event behind it: got %v and %v, want that version 2 is waited for", verdicts, err)
		}
		if got := f.fields(t, "orders", "a"); got != counted(1) {
			t.Errorf("document:\n got %s\nwant %s", got, counted(1))
		}
	})
}

// A missing version that comes behind what fills a version, which waits for the end of the
// halt, ends it: neither waits for the other.
func TestGaps_TheMissingEventComesBehindWhatFillsAVersion(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, waiting(gapWait), func(_ *delivery.Config, d *delivery.Deps) { d.Filling = fillsNothing{} })
		f.applied(t, enqueued(t, "a", 1, 2)...)
		late := enqueued(t, "a", 4)
		time.Sleep(gapWait)
		f.applied(t, late...)
		if got := f.parked(t, "a"); !slices.Equal(got, []int64{4}) {
			t.Fatalf("parked: got %v, want 4", got)
		}
		again := resent(t, "/orders_v2", enqueued(t, "a", 1, 2, 3, 4, 5))
		if verdicts, err := f.Hold("a").Apply(t.Context(), slices.Concat(again, enqueued(t, "a", 5))); len(verdicts) != 0 || !errors.Is(err, session.ErrNotYet) {
			t.Errorf("without it: got %v and %v, want all to wait", verdicts, err)
		}
		f.applied(t, slices.Concat(again, enqueued(t, "a", 5, 3))...)
		if got := f.fields(t, "orders", "a"); got != counted(5) {
			t.Errorf("document:\n got %s\nwant %s", got, counted(5))
		}
		if halt, err := f.store.Halted(t.Context(), "a"); err != nil || halt != "" || len(f.parked(t, "a")) != 0 {
			t.Errorf("got halt %q and %v, want it lifted, and nothing parked", halt, err)
		}
	})
}

func TestGaps_AfterTheWaitAnAggregateIsHaltedUntilTheMissingEventComes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := linkedFixture(t)
		f.applied(t, enqueued(t, "a", 1, 2)...)
		late := enqueued(t, "a", 4, 5)
		time.Sleep(gapWait)
		f.applied(t, late...)
		if got := f.parked(t, "a"); !slices.Equal(got, []int64{4, 5}) {
			t.Fatalf("parked: got %v, want 4 and 5", got)
		}
		if got := f.Counts().Halts.Load(); got != 1 {
			t.Errorf("halts: got %d, want 1", got)
		}
		f.applied(t, enqueued(t, "a", 7)...)
		f.applied(t, enqueued(t, "a", 3)...)
		if got := f.parked(t, "a"); !slices.Equal(got, []int64{7}) {
			t.Errorf("parked once version 3 has come: got %v, want 7 alone, which waits for 6", got)
		}
		f.applied(t, enqueued(t, "a", 6)...)
		f.applied(t, enqueued(t, "a", 8)...)
		if got := f.fields(t, "orders", "a"); got != counted(8) {
			t.Errorf("document:\n got %s\nwant %s", got, counted(8))
		}
		if halted, err := f.store.Halted(t.Context(), "a"); err != nil || halted != "" {
			t.Errorf("halted: got %q and %v, want not", halted, err)
		}
	})
}

func TestGaps_ARedriveStopsAtAGapUnlessGapsAreAccepted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := linkedFixture(t)
		f.applied(t, enqueued(t, "a", 1)...)
		late := enqueued(t, "a", 3, 4, 6)
		time.Sleep(gapWait)
		f.applied(t, late...)
		decider := parse(t, counting)
		done, err := delivery.Redrive(t.Context(), decider, f.store, f.store, delivery.Gaps{Versions: f.store}, "a")
		if err != nil || done.Lifted || done.FailedEventID != "a-3" || !strings.Contains(done.Reason, "version gap") {
			t.Errorf("got %+v and %v, want it stopped before version 3 for the gap", done, err)
		}
		var left []string
		note := func(e *contract.Event, why string) { left = append(left, e.ID+": "+why) }
		done, err = delivery.Redrive(t.Context(), decider, f.store, f.store, delivery.Gaps{Versions: f.store, Accept: true, Left: note}, "a")
		if err != nil || !done.Lifted || done.Applied != 3 {
			t.Errorf("accepting gaps: got %+v and %v, want three applied and the halt lifted", done, err)
		}
		// The ledger names what follows a gap, and nothing else.
		if want := []string{"a-3: version gap: version 3 follows 1", "a-6: version gap: version 6 follows 4"}; !slices.Equal(left, want) {
			t.Errorf("left out: got %q, want %q", left, want)
		}
		f.applied(t, enqueued(t, "a", 7)...)
		if got, want := f.fields(t, "orders", "a"), `{"events":5}{"last":7}{"seen":[1,3,4,6,7]}`; got != want {
			t.Errorf("document:\n got %s\nwant %s", got, want)
		}
	})
}

func TestGaps_ARepeatedVersionWaitsForNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := linkedFixture(t)
		f.applied(t, enqueued(t, "a", 1, 2)...)
		f.applied(t, enqueued(t, "a", 1, 3)...) // a repeat, and the next
		f.applied(t, enqueued(t, "a", 2, 3, 4, 1)...)
		if got := f.fields(t, "orders", "a"); got != counted(4) {
			t.Errorf("document:\n got %s\nwant %s", got, counted(4))
		}
	})
}

func TestGaps_AVersionIsNotedOnlyAfterItIsStored(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := linkedFixture(t)
		f.applied(t, enqueued(t, "a", 1)...)
		f.store.Fail = func(operation string) error {
			if operation == "write" {
				return errDown
			}
			return nil
		}
		if verdicts, err := f.Hold("a").Apply(t.Context(), enqueued(t, "a", 2)); len(verdicts) != 0 || !errors.Is(err, errDown) {
			t.Errorf("got %d verdicts and %v, want none and %v", len(verdicts), err, errDown)
		}
		f.store.Fail = nil
		if got, err := f.store.LastVersion(t.Context(), "a"); err != nil || got.Number != 1 {
			t.Errorf("version: got %v and %v, want 1", got, err)
		}
		f.store.Fail = func(operation string) error {
			if operation == "advance version" {
				return errDown
			}
			return nil
		}
		if verdicts, err := f.Hold("a").Apply(t.Context(), enqueued(t, "a", 2)); len(verdicts) != 0 || !errors.Is(err, errDown) {
			t.Errorf("version not noted: got %d verdicts and %v, want none and %v", len(verdicts), err, errDown)
		}
		f.store.Fail = nil
		f.applied(t, enqueued(t, "a", 2, 3)...)
		if got := f.fields(t, "orders", "a"); got != counted(3) {
			t.Errorf("document:\n got %s\nwant %s", got, counted(3))
		}
	})
}

// However late versions come, and whatever fails on the way, each event counts
// once and in order, and in the end no aggregate is halted.
func TestGaps_HoweverVersionsComeTheyAreAppliedInOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		n := rapid.IntRange(2, 8).Draw(r, "events")
		rest := make([]int64, n-1)
		for i := range rest {
			rest[i] = int64(i + 2)
		}
		// The first event is what the others are counted from.
		order := append([]int64{1}, rapid.Permutation(rest).Draw(r, "order")...)
		pauses := rapid.SliceOfN(rapid.IntRange(0, 15), n, n).Draw(r, "seconds before each")
		sizes := rapid.SliceOfN(rapid.IntRange(1, 4), 1, 8).Draw(r, "batches")
		fails := rapid.SliceOfN(rapid.IntRange(0, 5), 1, 20).Draw(r, "fails where 0")
		var got string
		synctest.Test(t, func(t *testing.T) { got = deliver(t, order, pauses, sizes, fails) })
		if want := counted(n); got != want {
			r.Fatalf("document:\n got %s\nwant %s", got, want)
		}
	})
}

// deliver plays a session: messages come in an order, with pauses, and are
// applied in batches by one holder after another.
func deliver(t *testing.T, order []int64, pauses, sizes, fails []int) string {
	f := linkedFixture(t)
	operations := 0
	f.store.Fail = func(string) error {
		if operations++; operations < 200 && fails[operations%len(fails)] == 0 {
			return errDown
		}
		return nil
	}
	var queue []session.Message
	for round := 0; len(order) > 0 || len(queue) > 0; round++ {
		if len(order) > 0 {
			time.Sleep(time.Duration(pauses[len(order)-1]) * time.Second)
			queue, order = append(queue, enqueued(t, "a", order[0])...), order[1:]
		} else {
			time.Sleep(time.Second)
		}
		batch := queue[:min(len(queue), sizes[round%len(sizes)])]
		verdicts, _ := f.Hold("a").Apply(t.Context(), batch)
		queue = queue[len(verdicts):]
	}
	f.store.Fail = nil
	return f.fields(t, "orders", "a")
}

func TestGaps_WhatIsStoredBeforeAFailureHasItsVersionNoted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixtureOf(t, parse(t, counting)[:1], waiting(gapWait))
		f.applied(t, enqueued(t, "a", 1)...)
		writes := 0
		f.store.Fail = func(operation string) error {
			if operation != "write" {
				return nil
			}
			if writes++; writes == 2 {
				return errDown
			}
			return nil
		}
		verdicts, err := f.Hold("a").Apply(t.Context(), enqueued(t, "a", 2, 3, 4))
		if len(verdicts) != 1 || !errors.Is(err, errDown) {
			t.Fatalf("got %d verdicts and %v, want one and %v", len(verdicts), err, errDown)
		}
		f.applied(t, enqueued(t, "a", 3, 4)...)
		if got := f.fields(t, "orders", "a"); got != counted(4) {
			t.Errorf("document:\n got %s\nwant %s", got, counted(4))
		}
	})
}

// Between a halt and its redrive others deal with the aggregate's events: a hold that
// has lasted over both goes on behind those.
func TestGaps_AHoldGoesOnBehindWhatWasRedriven(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := linkedFixture(t)
		hold := f.Hold("a")
		apply := func(messages ...session.Message) {
			t.Helper()
			if verdicts, err := hold.Apply(t.Context(), messages); err != nil || !slices.Equal(verdicts, make([]session.Verdict, len(messages))) {
				t.Fatalf("got %v and %v, want %d completed", verdicts, err, len(messages))
			}
		}
		apply(happened(t, "a", 1)...)
		apply(message(t, "a", 2, "Doubled", `{"n":"x"}`))
		mended := parse(t, strings.ReplaceAll(counting, "data.n * 2", "1"))
		if done, err := delivery.Redrive(t.Context(), mended, f.store, f.store, delivery.Gaps{Versions: f.store}, "a"); err != nil || !done.Lifted {
			t.Fatalf("got %+v and %v, want the halt lifted", done, err)
		}
		apply(happened(t, "a", 3)...)
		if mark, err := f.store.Mark(t.Context(), "a"); err != nil || mark != nil {
			t.Errorf("got %+v and %v, want no halt: nothing is missing", mark, err)
		}
	})
}

// While a session goes on, what it misses may be put back by somebody else.
func TestGaps_WhatIsPutBackWhileASessionWaitsIsNotMissing(t *testing.T) {
	t.Parallel()
	for name, wait := range map[string]time.Duration{"while it waits": 0, "when the wait is over": gapWait} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := linkedFixture(t)
				h := f.Hold("a")
				if verdicts, err := h.Apply(t.Context(), enqueued(t, "a", 1, 2, 4)); len(verdicts) != 2 || !errors.Is(err, session.ErrNotYet) {
					t.Fatalf("got %d verdicts and %v, want that version 3 is waited for", len(verdicts), err)
				}
				r := newReturning(t, f.store)
				r.Gaps.Versions = f.store
				if fates, why, redriven := r.run(t, happened(t, "a", 3)...); len(redriven) != 1 || !redriven[0].Lifted {
					t.Fatalf("got %v (%s) and %v, want version 3 put back and applied", fates, why, redriven)
				}
				rest := enqueued(t, "a", 4, 5)
				time.Sleep(wait)
				if verdicts, err := h.Apply(t.Context(), rest); err != nil || len(verdicts) != 2 {
					t.Errorf("got %d verdicts and %v, want the rest applied", len(verdicts), err)
				}
				if got := f.fields(t, "orders", "a"); got != counted(5) {
					t.Errorf("document:\n got %s\nwant %s", got, counted(5))
				}
				// What is missing still is.
				if verdicts, err := h.Apply(t.Context(), enqueued(t, "a", 7)); len(verdicts) != 0 || !errors.Is(err, session.ErrNotYet) || !strings.Contains(err.Error(), "version 7 follows 5") {
					t.Errorf("got %d verdicts and %v, want that version 6 is waited for", len(verdicts), err)
				}
			})
		})
	}
}
