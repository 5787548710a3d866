package relay_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"changerelay/pkg/contract"
	"changerelay/services/publisher/internal/relay"
	"changerelay/services/publisher/internal/relay/relaytest"
)

// poison makes the topic refuse sends with change n, and take 5 ms for others.
func (r *rig) poison(class relay.Class, n int) {
	r.topic.Decide = func(m []contract.Message) relaytest.Outcome {
		has := slices.ContainsFunc(m, func(m contract.Message) bool { return m.ID == string(relaytest.Position(n)) })
		if has {
			return relaytest.Outcome{Delay: time.Millisecond, Err: failure(class)}
		}
		return relaytest.Outcome{Delay: 5 * time.Millisecond}
	}
}

// TestSend_AMessageThatIsAlwaysRefusedIsParkedAndHoldsUpItsAggregateOnly
// refuses one message in the midst of its aggregate's, and in a batch of them.
func TestSend_AMessageThatIsAlwaysRefusedIsParkedAndHoldsUpItsAggregateOnly(t *testing.T) {
	t.Parallel()
	for _, class := range []relay.Class{relay.Refused, relay.Transient} {
		for _, mixed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, mixed %v", class, mixed), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					r := newRig(func(c *relay.Config) { c.Mixed, c.MaxInFlight, c.Patience = mixed, 20_000, 10*time.Second })
					r.poison(class, 7)
					r.add(1, 15, hot)
					r.start(t)
					r.flow(16, 8*time.Second)
					if got := r.topic.Accepted("hot"); !slices.Equal(got, numbers(1, 6)) {
						t.Errorf("of the refused message's aggregate %v were accepted within the patience, want those before it", got)
					}
					if kept := r.parks.Kept(); len(kept) != 0 {
						t.Fatalf("parked %+v within the patience", kept)
					}
					if got := r.counters.Sent(); got < 700 {
						t.Errorf("sent %d of others meanwhile, want nearly all of 800", got)
					}
					r.flow(10_000, 10*time.Second)
					kept := r.parks.Kept()
					if len(kept) != 1 || kept[0].Change.Position != relaytest.Position(7) || kept[0].AggregateID != "hot" ||
						!strings.Contains(kept[0].Reason, "while other messages were accepted") {
						t.Fatalf("parked %+v, want change 7 with the reason", kept)
					}
					want := slices.DeleteFunc(numbers(1, 15), func(n int) bool { return n == 7 })
					if got := r.topic.Accepted("hot"); !slices.Equal(got, want) {
						t.Errorf("accepted %v, want all but 7 in order", got)
					}
					if err := r.stop(); err != nil || r.checkpoint.Last() != 10_999 || r.topic.Overlaps() != 0 {
						t.Errorf("Run = %v with the checkpoint at %d and %d overlaps, want all finished", err, r.checkpoint.Last(), r.topic.Overlaps())
					}
				})
			})
		}
	}
}

// flow adds 100 changes of others a second for a while, numbered from first on.
func (r *rig) flow(first int, during time.Duration) {
	for n := range int(during / (10 * time.Millisecond)) {
		r.add(first+n, first+n, each)
		time.Sleep(10 * time.Millisecond)
	}
}

func TestSend_AnOutageThatComesAndGoesParksNothing(t *testing.T) {
	t.Parallel()
	for _, class := range []relay.Class{relay.Transient, relay.Throttled, relay.Blocked, relay.Refused} {
		t.Run(class.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := newRig(func(c *relay.Config) { c.Patience, c.MaxInFlight = 5*time.Second, 20_000 })
				began := time.Now()
				r.topic.Decide = func([]contract.Message) relaytest.Outcome {
					if out := time.Since(began) / (3 * time.Second) % 2; out == 1 {
						return relaytest.Outcome{Delay: time.Millisecond, Err: failure(class)}
					}
					return relaytest.Outcome{Delay: 5 * time.Millisecond}
				}
				r.start(t)
				r.flow(1, 30*time.Second)
				if kept := r.parks.Kept(); len(kept) != 0 {
					t.Errorf("parked %d in outages, want none", len(kept))
				}
				time.Sleep(time.Hour)
				if err := r.stop(); err != nil || r.counters.Sent() != 3_000 {
					t.Errorf("Run = %v with %d sent, want all 3,000", err, r.counters.Sent())
				}
			})
		})
	}
}

func TestSend_WhatIsNoMessagesFaultIsNeverParked(t *testing.T) {
	t.Parallel()
	for _, class := range []relay.Class{relay.Throttled, relay.Blocked} {
		t.Run(class.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := newRig(func(c *relay.Config) { c.MaxInFlight, c.Patience = 20_000, 5*time.Second })
				r.poison(class, 7)
				r.add(1, 15, each)
				r.start(t)
				r.flow(16, 30*time.Second)
				if kept := r.parks.Kept(); len(kept) != 0 {
					t.Errorf("parked %+v, want nothing", kept)
				}
				r.end(errors.New("enough"))
				<-r.done
			})
		})
	}
}

// TestSend_ARefusedMessageIsParkedThoughTheWindowIsFullBehindIt lets in what
// fills the window in a second.
func TestSend_ARefusedMessageIsParkedThoughTheWindowIsFullBehindIt(t *testing.T) {
	t.Parallel()
	for _, window := range []int{1, 100, 1000} {
		t.Run(fmt.Sprint("window of ", window), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := newRig(func(c *relay.Config) { c.MaxInFlight = window })
				r.poison(relay.Refused, 7)
				r.add(1, 5000, each)
				r.start(t)
				time.Sleep(2 * time.Minute)
				if kept := r.parks.Kept(); len(kept) != 1 || kept[0].Change.Position != relaytest.Position(7) {
					t.Errorf("parked %d after two patiences, want change 7", len(kept))
				}
				time.Sleep(10 * time.Second)
				if err := r.stop(); err != nil || r.checkpoint.Last() != 5000 {
					t.Errorf("Run = %v with the checkpoint at %d, want 5000", err, r.checkpoint.Last())
				}
			})
		})
	}
}

func TestSend_AFewRefusalsParkNothingHoweverShortThePatience(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(func(c *relay.Config) { c.Patience = 0 })
		refusals := 0
		r.topic.Decide = func(m []contract.Message) relaytest.Outcome { // under the topic's lock
			if m[0].SessionID == "hot" && refusals < 5 {
				refusals++
				return relaytest.Outcome{Err: failure(relay.Refused)}
			}
			return relaytest.Outcome{Delay: 5 * time.Millisecond}
		}
		r.add(1, 1, hot)
		r.start(t)
		r.flow(2, 20*time.Second)
		if err := r.stop(); err != nil || len(r.parks.Kept()) != 0 || !r.topic.Has(1) {
			t.Errorf("Run = %v with %d parked after five refusals, want the message accepted", err, len(r.parks.Kept()))
		}
	})
}

func TestSend_MoreRefusedMessagesThanSendersDoNotHoldUpOthers(t *testing.T) {
	t.Parallel()
	for _, mixed := range []bool{false, true} {
		t.Run(fmt.Sprint("mixed ", mixed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := newRig(func(c *relay.Config) {
					c.Mixed, c.Senders, c.MaxInFlight, c.Patience = mixed, 4, 20_000, time.Hour
				})
				poisoned := func(m contract.Message) bool { return relaytest.Number(contract.Position(m.ID)) <= 20 }
				r.topic.Decide = func(m []contract.Message) relaytest.Outcome {
					if slices.ContainsFunc(m, poisoned) {
						return relaytest.Outcome{Delay: time.Millisecond, Err: failure(relay.Refused)}
					}
					return relaytest.Outcome{Delay: 5 * time.Millisecond}
				}
				r.add(1, 20, each)
				r.start(t)
				r.flow(21, 30*time.Second)
				if got := r.counters.Sent(); got < 2_500 {
					t.Errorf("sent %d of others in half a minute, want nearly all of 3,000", got)
				}
				r.end(errors.New("enough"))
				<-r.done
			})
		})
	}
}

// TestSend_AMessageThatFailsIsNotMixedWithOthers has one sender gather whatever
// is ready: with fresh messages in each send that fails, none would be at fault.
func TestSend_AMessageThatFailsIsNotMixedWithOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(func(c *relay.Config) { c.Mixed, c.Senders, c.MaxInFlight, c.Patience = true, 1, 20_000, 10*time.Second })
		r.poison(relay.Transient, 7)
		r.add(1, 15, each)
		r.start(t)
		r.flow(16, 30*time.Second)
		if got := r.counters.Sent(); got < 2_500 {
			t.Errorf("sent %d in half a minute, want nearly all of 3,000", got)
		}
		if kept := r.parks.Kept(); len(kept) != 1 || kept[0].Change.Position != relaytest.Position(7) {
			t.Errorf("parked %+v, want change 7", kept)
		}
		r.end(errors.New("enough"))
		<-r.done
	})
}

func TestSend_TheTimeForASendGrowsWithItsSize(t *testing.T) {
	t.Parallel()
	for size, want := range map[int]time.Duration{
		0: 15 * time.Second, 1 << 20: 15 * time.Second, 1<<20 + 1: 30 * time.Second, 100 << 20: 25 * time.Minute,
	} {
		if got := relay.SendTimeout(15*time.Second, size); got != want {
			t.Errorf("a send of %d bytes may take %s, want %s", size, got, want)
		}
	}
}

// TestSend_ALargeMessageHasTheTimeItNeeds has the topic take 1 s for each 100 KiB.
func TestSend_ALargeMessageHasTheTimeItNeeds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(func(c *relay.Config) { c.SendTimeout = 15 * time.Second })
		r.topic.Decide = func(m []contract.Message) relaytest.Outcome {
			return relaytest.Outcome{Delay: time.Duration(len(m[0].Body)/(100<<10)) * time.Second}
		}
		r.add(1, 1, sized(3<<20))
		r.start(t)
		time.Sleep(time.Minute)
		if err := r.stop(); err != nil || r.counters.Sent() != 1 || r.counters.Retries() != 0 {
			t.Errorf("Run = %v with %d sent and %d retries, want one send", err, r.counters.Sent(), r.counters.Retries())
		}
	})
}

// TestPark_AnAttemptHasTimeForItsSize parks a change of 3 MiB where an attempt takes so long.
func TestPark_AnAttemptHasTimeForItsSize(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		takes, parked time.Duration
	}{
		"its size is enough": {takes: 14 * time.Second, parked: 14 * time.Second},
		"the third attempt":  {takes: 59 * time.Second, parked: 3 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := newRig(func(c *relay.Config) { c.ParkTimeout = 5 * time.Second })
				r.parks.Takes = tt.takes
				large := relaytest.Change(1, "unmappable")
				large.Raw = append(large.Raw, make([]byte, 2<<20)...)
				r.source.Add(large)
				r.start(t)
				time.Sleep(tt.parked)
				synctest.Wait()
				if !r.parks.Has(1) {
					t.Errorf("the change is not parked after %s, want it to be", tt.parked)
				}
				_ = r.stop()
			})
		})
	}
}
