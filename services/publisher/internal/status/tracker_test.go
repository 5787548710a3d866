package status

import (
	"errors"
	"strings"
	"testing"
	"time"

	"changerelay/services/publisher/internal/changestream"
	"changerelay/services/publisher/internal/lease"
	"changerelay/services/publisher/internal/relay"
)

// TestReady_FollowsFactsAndTheirAges looks at each fact when it is young, and when
// it is older than the grace.
func TestReady_FollowsFactsAndTheirAges(t *testing.T) {
	t.Parallel()
	failure := errors.New("refused")
	for name, tt := range map[string]struct {
		at    func(since time.Time) snapshot
		young bool // whether it is ready then
		says  string
	}{
		"all is well": {func(time.Time) snapshot { return snapshot{state: statePublishing} }, true, ""},
		"a claim that fails": {func(since time.Time) snapshot {
			return snapshot{state: stateClaiming, claiming: since, err: failure}
		}, true, "without a claim: refused"},
		"a claim without an answer": {func(since time.Time) snapshot { return snapshot{state: stateClaiming, claiming: since} }, true, "no answer yet"},
		"a place that is looked for": {func(since time.Time) snapshot {
			return snapshot{state: stateResuming, resuming: since, unread: since}
		}, true, "resuming since 20"},
		"a source that is dead": {func(since time.Time) snapshot {
			return snapshot{state: stateUnread, unread: since, err: failure}
		}, true, "cannot be read since 20"},
		"a token that stands still": {func(since time.Time) snapshot {
			return snapshot{state: stateStill, still: since, err: errStill}
		}, true, "nothing newer since 20"},
		"sends that fail": {func(since time.Time) snapshot {
			return snapshot{state: stateBlocked, outage: relay.Outage{Class: relay.Transient, Err: failure, Since: since}}
		}, true, "sending fails"},
		"a topic that is closed": {func(since time.Time) snapshot {
			return snapshot{state: stateBlocked, outage: relay.Outage{Class: relay.Blocked, Err: failure, Since: since}}
		}, false, "sending fails"},
		"a state database that refuses": {func(since time.Time) snapshot {
			return snapshot{state: stateUnsaved, unsaved: since, relay: relay.Status{Unsaved: relay.Unsaved{Err: failure, Since: since}}}
		}, true, "does not store since 20"},
		"a lease that cannot be had": {func(since time.Time) snapshot {
			return snapshot{state: StateStandby, err: failure, election: lease.State{LastError: "refused", FailingSince: since}}
		}, true, "neither taken nor renewed since 20"},
		"a halt": {func(time.Time) snapshot { return snapshot{state: StateHalted} }, false, "halted"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := tt.at(time.Now()).unready(); (err == nil) != tt.young {
				t.Errorf("at once it is not ready because of %v, want ready: %v", err, tt.young)
			}
			err := tt.at(time.Now().Add(-2 * outageGrace)).unready()
			if (err == nil) != (tt.says == "") || err != nil && !strings.Contains(err.Error(), tt.says) {
				t.Errorf("after a minute it is not ready because of %v, want %q", err, tt.says)
			}
		})
	}
}

func TestTracker_WhatReadsIsToldFromWhatFails(t *testing.T) {
	t.Parallel()
	long := time.Now().Add(-time.Minute)
	for name, tt := range map[string]struct {
		reading changestream.State
		want    string
	}{
		"a poll that has just begun":    {changestream.State{Unread: time.Now()}, statePublishing},
		"a stream that is being opened": {changestream.State{Opening: long, Unread: long}, stateResuming},
		"a poll without an answer":      {changestream.State{Unread: long}, stateUnread},
		"errors for a moment":           {changestream.State{Err: errUnknown, Unread: time.Now()}, statePublishing},
		"errors for a minute":           {changestream.State{Err: errUnknown, Unread: long}, stateUnread},
		"a token that moved of late":    {changestream.State{Still: time.Now().Add(-20 * time.Second), Answered: time.Now()}, statePublishing},
		"a token that stands still":     {changestream.State{Still: long, Answered: time.Now(), Unread: time.Now()}, stateStill},
		"a token that is not asked for": {changestream.State{Still: long, Answered: long.Add(2 * time.Second)}, statePublishing},
		"no answer at all since then":   {changestream.State{Still: long, Unread: long}, stateUnread},
		"no errors any more":            {changestream.State{}, statePublishing},
	} {
		b := &Tracker{reading: func() changestream.State { return tt.reading }, loop: &relay.Relay{}}
		s := snapshot{election: lease.State{Role: lease.Leader}}
		b.read(&s)
		if got := b.stateOf(s); got != tt.want {
			t.Errorf("%s: state is %q, want %q", name, got, tt.want)
		}
	}
}

// TestTracker_WhatIsNotStoredIsSaidAfterAMoment looks at a state database that refuses.
func TestTracker_WhatIsNotStoredIsSaidAfterAMoment(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		since time.Time
		want  string
	}{{time.Time{}, statePublishing}, {time.Now(), statePublishing}, {time.Now().Add(-time.Minute), stateUnsaved}} {
		b := &Tracker{}
		s := snapshot{election: lease.State{Role: lease.Leader}}
		s.relay.Unsaved = relay.Unsaved{Err: errUnknown, Since: tt.since}
		s.notStored()
		b.loop = &relay.Relay{}
		if got := b.stateOf(s); got != tt.want {
			t.Errorf("since %s: state is %q, want %q", tt.since, got, tt.want)
		}
	}
}

// TestTracker_ATermThatEndedIsNotPublishing has a leader without a next term: the
// place that it reached, and so the lag, stay known.
func TestTracker_ATermThatEndedIsNotPublishing(t *testing.T) {
	t.Parallel()
	reached := time.Now().Add(-time.Hour)
	b := &Tracker{
		loop:      relay.New(relay.Config{MaxInFlight: 1}, relay.Deps{}),
		reachedAt: relay.Point{Token: []byte("t"), AsOf: reached},
	}
	b.Failed(errUnknown)
	s := snapshot{election: lease.State{Role: lease.Leader}}
	b.reached(&s)
	if got := b.stateOf(s); got != stateClaiming || !s.lagKnown || s.lag < time.Hour || b.claiming.IsZero() {
		t.Errorf("state is %q with a lag of %s, want claiming and an hour", got, s.lag)
	}
}
