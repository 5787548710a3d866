package relay_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"changerelay/pkg/contract"
	"changerelay/services/publisher/internal/relay"
	"changerelay/services/publisher/internal/relay/relaytest"
)

// TestSend_ARefusedMessageIsParkedThoughNothingElseIsSentAnyMore has the others
// fall silent: the end of a copy, or more changes of one aggregate than the window
// holds, by count or by bytes.
func TestSend_ARefusedMessageIsParkedThoughNothingElseIsSentAnyMore(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		behind func(int) string
		change func(*relay.Config)
	}{
		"the end of all":                  {each, func(*relay.Config) {}},
		"a hot aggregate":                 {hot, func(*relay.Config) {}},
		"a window full of an aggregate":   {hot, func(c *relay.Config) { c.MaxInFlight = 100 }},
		"a window full of its bytes":      {hot, func(c *relay.Config) { c.MaxInFlightBytes = 100 << 10 }},
		"the same in mixed sends":         {hot, func(c *relay.Config) { c.Mixed, c.MaxInFlight = true, 100 }},
		"the end of all, in mixed sends":  {each, func(c *relay.Config) { c.Mixed = true }},
		"a window of one change":          {hot, func(c *relay.Config) { c.MaxInFlight = 1 }},
		"a change larger than the window": {hot, func(c *relay.Config) { c.MaxInFlightBytes = 1 }},
	} {
		for _, class := range []relay.Class{relay.Refused, relay.Transient} {
			t.Run(fmt.Sprint(name, ", ", class), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					r := newRig(func(c *relay.Config) { c.Patience = 10 * time.Minute }, tt.change)
					r.poison(class, 7)
					r.add(1, 6, each)
					r.start(t)
					time.Sleep(time.Second)
					r.add(7, 1000, tt.behind)
					time.Sleep(9 * time.Minute)
					if kept := r.parks.Kept(); len(kept) != 0 {
						t.Fatalf("parked %+v within the patience", kept)
					}
					repeats := r.repeats()
					time.Sleep(30 * time.Minute)
					if kept := r.parks.Kept(); len(kept) != 1 || kept[0].Change.Position != relaytest.Position(7) {
						t.Fatalf("parked %d, want change 7", len(kept))
					}
					if err := r.stop(); err != nil || r.checkpoint.Last() != 1000 || r.topic.Overlaps() != 0 {
						t.Errorf("Run = %v with the checkpoint at %d and %d overlaps, want all finished", err, r.checkpoint.Last(), r.topic.Overlaps())
					}
					if repeats == 0 || repeats > 25 {
						t.Errorf("accepted messages were sent again %d times, want a few", repeats)
					}
				})
			})
		}
	}
}

// repeats is how often messages were sent again that had been accepted.
func (r *rig) repeats() int { return len(r.topic.Messages()) - int(r.counters.Sent()) }

// TestSend_AnOutageEndsWithOneRepeatAtMost has many aggregates fail again and again.
func TestSend_AnOutageEndsWithOneRepeatAtMost(t *testing.T) {
	t.Parallel()
	for _, class := range []relay.Class{relay.Refused, relay.Transient} {
		t.Run(class.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := newRig()
				began := time.Now()
				r.topic.Decide = func([]contract.Message) relaytest.Outcome {
					if since := time.Since(began); since > time.Second && since < time.Hour {
						return relaytest.Outcome{Delay: time.Millisecond, Err: failure(class)}
					}
					return relaytest.Outcome{Delay: time.Millisecond}
				}
				r.add(1, 6, each)
				r.start(t)
				time.Sleep(2 * time.Second)
				r.add(7, 200, each)
				time.Sleep(2 * time.Hour)
				if err := r.stop(); err != nil || r.repeats() > 1 || len(r.parks.Kept()) != 0 || r.counters.Sent() != 200 {
					t.Errorf("Run = %v with %d sent, %d repeats and %d parked, want 200, one and none", err, r.counters.Sent(), r.repeats(), len(r.parks.Kept()))
				}
			})
		})
	}
}

func TestSend_AFailureThatPassesAtOnceRepeatsNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig()
		failed := map[string]bool{}
		r.topic.Decide = func(m []contract.Message) relaytest.Outcome { // under the topic's lock
			if id := m[0].ID; !failed[id] {
				failed[id] = true
				return relaytest.Outcome{Err: failure(relay.Transient)}
			}
			return relaytest.Outcome{}
		}
		r.start(t)
		for n := range 20 {
			r.add(n+1, n+1, each)
			time.Sleep(time.Minute)
		}
		if err := r.stop(); err != nil || r.counters.Sent() != 20 || r.repeats() != 0 {
			t.Errorf("Run = %v with %d sent and %d repeats, want 20 and none", err, r.counters.Sent(), r.repeats())
		}
	})
}

// TestSend_AMessageOfLongAgoIsNotSentAgain waits for a day after the last one that
// was accepted.
func TestSend_AMessageOfLongAgoIsNotSentAgain(t *testing.T) {
	t.Parallel()
	for wait, parked := range map[time.Duration]int{23 * time.Hour: 1, 24*time.Hour + time.Second: 0} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig()
			r.poison(relay.Transient, 7)
			r.add(1, 6, each)
			r.start(t)
			time.Sleep(wait)
			r.add(7, 7, each)
			time.Sleep(30 * time.Minute)
			if got := len(r.parks.Kept()); got != parked || (r.repeats() > 0) != (parked > 0) {
				t.Errorf("parked %d with %d repeats after %s, want %d parked", got, r.repeats(), wait, parked)
			}
			r.end(errors.New("enough"))
			<-r.done
		})
	}
}

// TestSend_AnOutageAtTheBeginningLeavesBatchesWhole has nothing accepted yet, and
// one aggregate to send of.
func TestSend_AnOutageAtTheBeginningLeavesBatchesWhole(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig()
		began, failed := time.Now(), 0
		r.topic.Decide = func([]contract.Message) relaytest.Outcome { // under the topic's lock
			if time.Since(began) < time.Minute {
				failed++
				return relaytest.Outcome{Delay: time.Millisecond, Err: failure(relay.Transient)}
			}
			return relaytest.Outcome{}
		}
		r.add(1, 20, hot)
		r.start(t)
		time.Sleep(10 * time.Minute)
		if err := r.stop(); err != nil || r.counters.Sent() != 20 || r.topic.Sends()-failed != 2 {
			t.Errorf("Run = %v with %d sent in %d sends, want 20 in two batches", err, r.counters.Sent(), r.topic.Sends()-failed)
		}
	})
}

// TestSend_AMessageIsNotParkedWhileTheTopicTakesNoOther has the topic refuse, from
// some time on, all that was accepted before as well.
func TestSend_AMessageIsNotParkedWhileTheTopicTakesNoOther(t *testing.T) {
	t.Parallel()
	for _, class := range []relay.Class{relay.Refused, relay.Transient} {
		t.Run(class.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := newRig()
				began := time.Now()
				r.topic.Decide = func([]contract.Message) relaytest.Outcome {
					if time.Since(began) < time.Second {
						return relaytest.Outcome{}
					}
					return relaytest.Outcome{Delay: time.Millisecond, Err: failure(class)}
				}
				r.add(1, 6, each)
				r.start(t)
				time.Sleep(2 * time.Second)
				r.add(7, 20, hot)
				time.Sleep(2 * time.Hour)
				if kept := r.parks.Kept(); len(kept) != 0 || r.Status().Outage.Class != class {
					t.Errorf("parked %+v with the outage %+v, want nothing parked and the refusal said", kept, r.Status().Outage)
				}
				r.end(errors.New("enough"))
				<-r.done
			})
		})
	}
}

// TestSend_WithoutAnyProofOneMessageIsGivenUpAndNoSecond has nothing accepted yet.
func TestSend_WithoutAnyProofOneMessageIsGivenUpAndNoSecond(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		class      relay.Class
		ill        int // of the first changes
		name       func(int) string
		want, sent int
	}{
		"one is refused":                    {relay.Refused, 1, hot, 1, 19},
		"all are refused":                   {relay.Refused, 20, hot, 1, 0},
		"several aggregates are refused":    {relay.Refused, 20, each, 0, 0},
		"the connection fails, it may pass": {relay.Transient, 1, hot, 0, 0},
		"the topic is closed to us":         {relay.Blocked, 1, hot, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := newRig()
				r.topic.Decide = func(m []contract.Message) relaytest.Outcome {
					if relaytest.Number(contract.Position(m[0].ID)) <= tt.ill {
						return relaytest.Outcome{Delay: time.Millisecond, Err: failure(tt.class)}
					}
					return relaytest.Outcome{Delay: time.Millisecond}
				}
				r.add(1, 20, tt.name)
				r.start(t)
				time.Sleep(5 * time.Minute)
				if kept := r.parks.Kept(); len(kept) != 0 || r.Status().Outage.Class != tt.class {
					t.Errorf("parked %d after five patiences with the outage %+v, want nothing parked and the failure said", len(kept), r.Status().Outage)
				}
				time.Sleep(time.Hour)
				if kept, sent := len(r.parks.Kept()), int(r.counters.Sent()); kept != tt.want || sent != tt.sent {
					t.Errorf("parked %d and sent %d, want %d and %d", kept, sent, tt.want, tt.sent)
				}
				r.end(errors.New("enough"))
				<-r.done
			})
		})
	}
}

// TestSend_WhatIsSentAloneIsNeverMixedWithOthers has a batch of an aggregate sent
// apart, while many others wait to be sent in mixed batches.
func TestSend_WhatIsSentAloneIsNeverMixedWithOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(func(c *relay.Config) { c.Mixed, c.Senders, c.MaxInFlight, c.Patience = true, 2, 20_000, 5*time.Second })
		poisoned, alone := string(relaytest.Position(7)), false
		r.topic.Decide = func(m []contract.Message) relaytest.Outcome { // under the topic's lock
			if !slices.ContainsFunc(m, func(m contract.Message) bool { return m.ID == poisoned }) {
				return relaytest.Outcome{Delay: 50 * time.Millisecond}
			}
			if alone && len(m) > 1 {
				t.Errorf("the refused message is sent with %d others, want it alone", len(m)-1)
			}
			alone = alone || len(m) == 1
			return relaytest.Outcome{Delay: time.Millisecond, Err: failure(relay.Refused)}
		}
		r.add(1, 15, hot)
		r.add(16, 10_000, each)
		r.start(t)
		time.Sleep(10 * time.Minute)
		if err := r.stop(); err != nil || len(r.parks.Kept()) != 1 || r.checkpoint.Last() != 10_000 {
			t.Errorf("Run = %v with %d parked and the checkpoint at %d, want one and 10,000", err, len(r.parks.Kept()), r.checkpoint.Last())
		}
	})
}
