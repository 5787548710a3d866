package relay_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"changerelay/pkg/contract"
	"changerelay/services/publisher/internal/relay"
	"changerelay/services/publisher/internal/relay/relaytest"
)

// fates is what became of changes that were sent again.
type fates map[relay.Fate]int

// resend adds changes first to last as ones that are sent again behind a point.
func (r *rig) resend(into fates, behind relay.Point, first, last int, name func(n int) string) {
	for n := first; n <= last; n++ {
		change := relaytest.Change(n, name(n))
		change.Resent = &relay.Resent{
			Resend: contract.Resend{ID: "r"}, Behind: behind,
			Finished: func(fate relay.Fate, _, _ string) { into[fate]++ },
		}
		r.source.Add(change)
	}
}

func TestResent_LeavesTheCheckpointWhereTheStreamIs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		alone := newRig()
		alone.resend(fates{}, relay.Point{}, 101, 103, hot)
		alone.start(t)
		time.Sleep(time.Second)
		if err := alone.stop(); err != nil || len(alone.checkpoint.Saves()) > 0 {
			t.Errorf("before anything of the stream saved are %v, %v, want nothing", alone.checkpoint.Saves(), err)
		}
		r, became := newRig(func(c *relay.Config) { c.Senders = 1 }), fates{}
		r.resend(became, relay.Point{}, 101, 103, hot)
		r.start(t)
		time.Sleep(time.Second)
		r.add(1, 3, hot)
		r.resend(became, relay.Point{Token: relaytest.Token(3), Position: relaytest.Position(3)}, 104, 106, hot)
		time.Sleep(time.Second)
		r.add(4, 4, func(int) string { return "nothing" })
		r.resend(became, relay.Point{Token: relaytest.Token(4), Position: relaytest.Position(4)}, 107, 107, func(int) string { return "nothing" })
		time.Sleep(time.Second)
		if got := r.checkpoint.Last(); got != 4 {
			t.Errorf("the checkpoint is at %d, want 4", got)
		}
		if became[relay.Accepted] != 6 || became[relay.Passed] != 1 || r.counters.Resent() != 6 || r.counters.Read() != 4 || r.counters.Passed() != 1 {
			t.Errorf("what was sent again became %v; %d counted, and %d read of the stream", became, r.counters.Resent(), r.counters.Read())
		}
		messages := r.topic.Messages()
		if len(messages) != 9 || messages[3].ID != string(relaytest.Position(1)) || messages[0].Properties["cloudEvents_resend"] != "r" {
			t.Errorf("the topic has %d messages, want the resent ones where they were given, with their resend", len(messages))
		}
		if err := r.stop(); err != nil {
			t.Error(err)
		}
	})
}

// TestResent_WhatCannotBeSentIsNotParked has ON_UNMAPPABLE=stop, and a message that
// the topic refuses while it takes others, which holds up its aggregate for less than
// the patience.
func TestResent_WhatCannotBeSentIsNotParked(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, became := newRig(func(c *relay.Config) { c.StopOnUnmappable, c.Patience, c.MaxInFlight = true, time.Hour, 20_000 }), fates{}
		r.topic.Decide = func(m []contract.Message) relaytest.Outcome {
			if slices.ContainsFunc(m, func(m contract.Message) bool { return m.ID == string(relaytest.Position(20_001))+"~r" }) {
				return relaytest.Outcome{Delay: time.Millisecond, Err: failure(relay.Refused)}
			}
			return relaytest.Outcome{Delay: 5 * time.Millisecond}
		}
		r.resend(became, relay.Point{}, 20_000, 20_000, func(int) string { return "unmappable" })
		r.resend(became, relay.Point{}, 20_001, 20_002, hot)
		r.start(t)
		r.add(1, 1, hot)
		r.flow(2, 10*time.Second)
		if became[relay.Failed] != 2 || became[relay.Accepted] != 1 || r.counters.Unresent() != 2 {
			t.Errorf("what was sent again became %v, want two failed", became)
		}
		if kept := r.parks.Kept(); len(kept) > 0 {
			t.Errorf("parked are %+v", kept)
		}
		if got := r.topic.Accepted("hot"); len(got) != 2 {
			t.Errorf("accepted of the aggregate are %v, want the change of the stream, too", got)
		}
		if err := r.stop(); err != nil {
			t.Error(err)
		}
	})
}
