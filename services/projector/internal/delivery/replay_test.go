package delivery_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"changerelay/services/projector/internal/projection"
	"changerelay/services/projector/internal/readmodel/readmodeltest"
	"changerelay/services/projector/internal/session"
)

var errDown = errors.New("not primary")

// Whatever a broker may deliver, in whatever portions, and wherever the store
// or the process fails in between, the read model ends up as if each event had
// been applied once, in order.
//
// What a broker may deliver of one aggregate: its events in order, and at any
// point a run of earlier ones again, from a stale sender or after a holder that
// settled nothing. What it may not deliver is an event before one that comes
// before it: the engine gives such a session back.
func TestReplay_AnyReplayEndsUpTheSame(t *testing.T) {
	t.Parallel()
	projections := parse(t, counting+`
- name: shared
  collection: shared
  key: '"all"'
  on:
    Happened:
      inc: {sum: data.n}
`)
	rapid.Check(t, func(r *rapid.T) {
		events := drawEvents(r)
		want := replay(t, r, projections, events, schedule{inOrder(len(events))}, false)
		got := replay(t, r, projections, events, drawSchedule(r, len(events)), true)
		if got != want {
			r.Fatalf("read model:\n got %s\nwant %s", got, want)
		}
	})
}

type drawn struct {
	kind string
	data string
}

func drawEvents(r *rapid.T) []drawn {
	return rapid.SliceOfN(rapid.Custom(func(r *rapid.T) drawn {
		switch rapid.IntRange(0, 9).Draw(r, "kind") {
		case 0:
			return drawn{"Ended", `{}`}
		case 1:
			return drawn{"NotFollowed", `{}`}
		default:
			return drawn{"Happened", fmt.Sprintf(`{"n":%d}`, rapid.IntRange(0, 99).Draw(r, "n"))}
		}
	}), 1, 12).Draw(r, "events")
}

// schedule is what is delivered: portions of events' places.
type schedule [][]int

func inOrder(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

func drawSchedule(r *rapid.T, n int) schedule {
	var all []int
	for next := 0; next < n; {
		if next > 0 && rapid.IntRange(0, 3).Draw(r, "rewind") == 0 {
			from := rapid.IntRange(0, next-1).Draw(r, "from")
			to := rapid.IntRange(from, next-1).Draw(r, "to")
			for i := from; i <= to; i++ {
				all = append(all, i)
			}
			continue
		}
		all = append(all, next)
		next++
	}
	var s schedule
	for len(all) > 0 {
		k := rapid.IntRange(1, len(all)).Draw(r, "portion")
		s = append(s, all[:k])
		all = all[k:]
	}
	return s
}

// replay delivers a schedule and returns the read model. With failures the
// store fails now and then, before or after it has stored a write, and what has
// no verdict comes again to another holder.
func replay(t *testing.T, r *rapid.T, projections projection.Projections, events []drawn, s schedule, failures bool) string {
	t.Helper()
	store := readmodeltest.NewFake()
	// A portion fails a few times, at drawn places.
	budget, place := 0, 0
	fails := func() error {
		if place--; place >= 0 || budget == 0 {
			return nil
		}
		budget--
		place = rapid.IntRange(0, 20).Draw(r, "next failure")
		return errDown
	}
	store.Fail = func(string) error { return fails() }
	store.StoredBut = fails
	h := newHandler(projections, store)
	for _, portion := range s {
		if failures {
			budget = rapid.IntRange(0, 4).Draw(r, "failures")
			place = rapid.IntRange(0, 20).Draw(r, "first failure")
		}
		var messages []session.Message
		for _, i := range portion {
			messages = append(messages, message(t, "a", int64(i+1), events[i].kind, events[i].data))
		}
		for len(messages) > 0 {
			verdicts, err := h.Hold("a").Apply(context.Background(), messages)
			if err != nil && !errors.Is(err, errDown) {
				r.Fatalf("apply: %v", err)
			}
			messages = messages[len(verdicts):]
		}
	}
	orders, _ := store.Fields(context.Background(), "orders", "a")
	totals, _ := store.Fields(context.Background(), "totals", "a")
	shared, _ := store.Fields(context.Background(), "shared", "all")
	return orders + " " + totals + " " + shared
}
