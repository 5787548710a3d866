package relay_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"changerelay/pkg/contract"
	"changerelay/services/publisher/internal/relay"
	"changerelay/services/publisher/internal/relay/relaytest"
)

// sized names aggregates whose changes have so much data.
func sized(bytes int) func(n int) string {
	return func(n int) string { return fmt.Sprintf("%d bytes %d", bytes, n) }
}

// TestNarrow_MessagesThatShareANarrowLinkAreSentAndNotParked has a backlog of as many
// aggregates, of which the window holds sixteen, for a link over which one message of
// a megabyte is sent in time, and four at once are not.
func TestNarrow_MessagesThatShareANarrowLinkAreSentAndNotParked(t *testing.T) {
	t.Parallel()
	const rate, during = 100_000, 15 * time.Minute
	for size, mixed := range map[int]bool{1_000_000: false, 999_000: true, 200_000: false} {
		t.Run(fmt.Sprintf("%d bytes, mixed %v", size, mixed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := newRig(func(c *relay.Config) {
					c.Mixed, c.SendTimeout, c.Patience = mixed, 15*time.Second, 10*time.Minute
					c.MaxInFlightBytes = int64(16 * (size + 4<<10))
				})
				r.topic.Link = &relaytest.Link{Rate: rate}
				r.add(1, 1+int(rate*during.Seconds())/size, sized(size))
				r.start(t)
				time.Sleep(during)
				if kept := r.parks.Kept(); len(kept) != 0 {
					t.Errorf("parked %d, the first because %s: want none", len(kept), kept[0].Reason)
				}
				want := int64(0.9*rate*during.Seconds()) / int64(size)
				if got := r.counters.Sent(); got < want {
					t.Errorf("sent %d after %d retries, want %d, nine tenths of what the link takes", got, r.counters.Retries(), want)
				}
				_ = r.stop()
			})
		})
	}
}

// TestNarrow_SmallMessagesHaveTheTimeForWhatTheyCarryBesideTheirBodies has a backlog of
// several of each aggregate, with as many senders as there are aggregates.
func TestNarrow_SmallMessagesHaveTheTimeForWhatTheyCarryBesideTheirBodies(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(func(c *relay.Config) {
			c.SendTimeout, c.Senders, c.BatchSize, c.MaxInFlight = 15*time.Second, 400, 100, 4_000
		})
		r.topic.Link = &relaytest.Link{Rate: 100_000}
		r.add(1, 4_000, func(n int) string { return sized(200)(n % 400) })
		r.start(t)
		time.Sleep(time.Minute)
		if sent, retries := r.counters.Sent(), r.counters.Retries(); sent != 4_000 || retries != 0 {
			t.Errorf("sent %d of 4,000 after %d retries, want all after none", sent, retries)
		}
		_ = r.stop()
	})
}

// TestNarrow_ALargeMessageHasItsTurnAmongSmallOnes has more small ones for all the time
// that would fit in beside others while the large one does not.
func TestNarrow_ALargeMessageHasItsTurnAmongSmallOnes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(func(c *relay.Config) { c.SendTimeout = 15 * time.Second })
		r.topic.Link = &relaytest.Link{Rate: 100_000}
		r.add(1, 199, sized(10_000))
		r.add(200, 200, sized(1_000_000))
		r.add(201, 1_000, sized(10_000))
		r.start(t)
		time.Sleep(time.Minute)
		if !r.topic.Has(200) || r.counters.Retries() != 0 {
			t.Errorf("of %d messages that were sent the large one is %v with %d retries, want it in its turn", r.counters.Sent(), r.topic.Has(200), r.counters.Retries())
		}
		_ = r.stop()
	})
}

// TestNarrow_ATopicThatAnswersSlowlyIsNotTakenForANarrowOne has a topic far away, or under
// load, over links that are wide.
func TestNarrow_ATopicThatAnswersSlowlyIsNotTakenForANarrowOne(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const size, during = 200_000, 2 * time.Minute
		r := newRig(func(c *relay.Config) { c.SendTimeout, c.MaxInFlightBytes = 15*time.Second, 64*size })
		r.topic.Decide = func([]contract.Message) relaytest.Outcome { return relaytest.Outcome{Delay: 5 * time.Second} }
		r.add(1, 2_000, sized(size))
		r.start(t)
		time.Sleep(during)
		if sent := r.counters.Sent() * size; sent < 100<<20 {
			t.Errorf("sent %d MiB in %v, want at least 100", sent>>20, during)
		}
		_ = r.stop()
	})
}

// TestNarrow_OneThatIsNeverAnsweredHoldsUpTheOthersLessThanHalfOfTheTime has little to send
// beside it, so that nothing shows how much the link would take.
func TestNarrow_OneThatIsNeverAnsweredHoldsUpTheOthersLessThanHalfOfTheTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const seconds = 300
		r := newRig(func(c *relay.Config) {
			c.SendTimeout, c.Patience, c.MaxInFlight = 15*time.Second, 10*time.Minute, 10_000
		})
		r.topic.Decide = func(m []contract.Message) relaytest.Outcome {
			return relaytest.Outcome{Hang: len(m[0].Body) > 500_000}
		}
		r.add(1, 1, sized(1_000_000))
		r.start(t)
		held, before := 0, int64(0)
		for n := range seconds {
			r.add(2+20*n, 21+20*n, each)
			time.Sleep(time.Second)
			if now := r.counters.Sent(); now == before {
				held++
			} else {
				before = now
			}
		}
		if held >= seconds/2 {
			t.Errorf("nothing was sent in %d of %d seconds, want less than half", held, seconds)
		}
		_ = r.stop()
	})
}

// TestNarrow_OneThatIsNeverAnsweredHoldsUpALargerOneNoLonger has among the others now and
// then one that does not fit in beside what may be under way in any case, and one or more
// that are never answered.
func TestNarrow_OneThatIsNeverAnsweredHoldsUpALargerOneNoLonger(t *testing.T) {
	t.Parallel()
	for _, silent := range []int{1, 3} {
		t.Run(fmt.Sprint(silent), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				const seconds = 600
				r := newRig(func(c *relay.Config) {
					c.SendTimeout, c.Patience, c.MaxInFlight = 15*time.Second, 10*time.Minute, 100_000
				})
				r.topic.Decide = func(m []contract.Message) relaytest.Outcome {
					return relaytest.Outcome{Hang: len(m[0].Body) > 700_000}
				}
				r.add(1, silent, sized(1_000_000))
				r.start(t)
				held, before := 0, int64(0)
				for n := range seconds {
					first := silent + 1 + 20*n
					r.add(first, first+18, each)
					r.add(first+19, first+19, sized(600_000/(1+n%5*1_000)))
					time.Sleep(time.Second)
					if now := r.counters.Sent(); now == before {
						held++
					} else {
						before = now
					}
				}
				if held >= seconds/2 {
					t.Errorf("nothing was sent in %d of %d seconds, want less than half", held, seconds)
				}
				_ = r.stop()
			})
		})
	}
}

// TestNarrow_AVeryLargeMessageSaysNothingOfWhatGoesOverInTime has others behind each, which
// have less time.
func TestNarrow_AVeryLargeMessageSaysNothingOfWhatGoesOverInTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(func(c *relay.Config) { c.SendTimeout = 15 * time.Second })
		r.topic.Link = &relaytest.Link{Rate: 100_000}
		r.add(1, 90, func(n int) string {
			if n%15 == 1 {
				return sized(6_000_000)(n)
			}
			return sized(300_000)(n)
		})
		r.start(t)
		time.Sleep(12 * time.Minute)
		if sent, retries := r.counters.Sent(), r.counters.Retries(); sent != 90 || retries != 0 {
			t.Errorf("sent %d of 90 after %d retries, want all after none", sent, retries)
		}
		_ = r.stop()
	})
}

// TestNarrow_WhatFailedInAnOutageIsNotCutByOthers has a backlog in which some have failed
// before, without others that were accepted. How many that are, and in what order they come
// again, differs from outage to outage.
func TestNarrow_WhatFailedInAnOutageIsNotCutByOthers(t *testing.T) {
	t.Parallel()
	const outages, failing = 8, 20
	retries := int64(0)
	for range outages {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(func(c *relay.Config) {
				c.SendTimeout, c.Patience, c.MaxInFlightBytes = 15*time.Second, 10*time.Minute, 30<<20
			})
			r.topic.Link = &relaytest.Link{Rate: 100_000}
			sends := 0
			r.topic.Decide = func([]contract.Message) relaytest.Outcome { // under the topic's lock
				if sends++; sends <= failing {
					return relaytest.Outcome{Err: &relay.SendError{Class: relay.Transient, Err: errors.New("a test")}}
				}
				return relaytest.Outcome{}
			}
			r.add(1, 60, sized(1_000_000))
			r.start(t)
			time.Sleep(20 * time.Minute)
			if sent := r.counters.Sent(); sent != 60 {
				t.Errorf("sent %d of 60, want all", sent)
			}
			retries += r.counters.Retries()
			_ = r.stop()
		})
	}
	if most := int64(outages * failing); retries > most {
		t.Errorf("%d retries in %d outages of %d failures, want at most %d", retries, outages, failing, most)
	}
}
