package relay_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"changerelay/pkg/contract"
	"changerelay/services/publisher/internal/relay"
	"changerelay/services/publisher/internal/relay/relaytest"
)

func failure(class relay.Class) error {
	return &relay.SendError{Class: class, Err: relaytest.ErrInjected}
}

// TestFailure_EveryScheduleKeepsOrderAndLosesNothing sends a few hot and many cold
// aggregates through seeded schedules of slow, failing, partly accepted and
// unanswered sends. Whenever the checkpoint moves, everything up to there must
// be accepted or parked.
func TestFailure_EveryScheduleKeepsOrderAndLosesNothing(t *testing.T) {
	t.Parallel()
	for seed := range uint64(40) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { runSchedule(t, seed) })
		})
	}
}

func runSchedule(t *testing.T, seed uint64) {
	const changes = 600
	random := rand.New(rand.NewPCG(seed, 0))
	r := newRig(func(c *relay.Config) {
		c.MaxInFlight = 1 + random.IntN(200)
		c.Senders = 1 + random.IntN(50)
		c.BatchSize = 1 + random.IntN(8)
		c.Mixed = seed%2 == 1
		c.SendTimeout = time.Second
		c.Patience = 48 * time.Hour // a message that fails by chance again and again is none to be parked
	})
	tooLarge := map[string]bool{}
	r.topic.Decide = func(m []contract.Message) relaytest.Outcome { // under the topic's lock
		delay := time.Duration(random.IntN(20)) * time.Millisecond
		if large := slices.IndexFunc(m, func(m contract.Message) bool { return tooLarge[m.ID] }); large >= 0 {
			return relaytest.Outcome{Delay: delay, Err: failure(relay.TooLarge), Accept: large}
		}
		switch random.IntN(10) {
		case 0:
			return relaytest.Outcome{Delay: delay, Err: relaytest.ErrInjected}
		case 1:
			return relaytest.Outcome{Delay: delay, Err: failure(relay.Throttled), Accept: random.IntN(4)}
		case 2:
			return relaytest.Outcome{Delay: delay, Err: failure(relay.Blocked), Accept: len(m), Lost: true}
		case 3:
			return relaytest.Outcome{Hang: true}
		default:
			return relaytest.Outcome{Delay: delay}
		}
	}
	aggregates := map[string][]int{}
	for n := 1; n <= changes; n++ {
		name := fmt.Sprint("hot ", random.IntN(3))
		switch random.IntN(20) {
		case 0:
			name = "unmappable"
		case 1:
			name = "nothing"
		case 2, 3, 4, 5, 6, 7, 8, 9, 10:
			name = each(n)
		}
		if name != "nothing" && random.IntN(40) == 0 {
			tooLarge[string(relaytest.Position(n))] = true
		} else {
			aggregates[name] = append(aggregates[name], n)
		}
		r.source.Add(relaytest.Change(n, name))
	}
	reached := 0
	r.checkpoint.Fault = func(n int) error {
		for ; reached < n; reached++ {
			next := reached + 1
			if !r.topic.Has(next) && !r.parks.Has(next) && !slices.Contains(aggregates["nothing"], next) {
				t.Errorf("checkpoint moved to %d before change %d was accepted or parked", n, next)
			}
		}
		return nil
	}
	r.start(t)
	for range 24 * 60 * 6 { // a day: ten seconds at a time
		if r.checkpoint.Last() == changes {
			break
		}
		time.Sleep(10 * time.Second)
	}
	if got := r.checkpoint.Last(); got != changes {
		t.Fatalf("checkpoint stands at %d of %d after a day", got, changes)
	}
	if err := r.stop(); err != nil {
		t.Errorf("Run = %v, want nil", err)
	}
	delete(aggregates, "unmappable")
	delete(aggregates, "nothing")
	for name, want := range aggregates {
		if got := r.topic.Accepted(name); !slices.Equal(got, want) {
			t.Errorf("%s was first accepted in the order %v, want %v", name, got, want)
		}
	}
	if got := r.topic.Overlaps(); got != 0 {
		t.Errorf("%d sends overlapped another of their aggregate, want none", got)
	}
	for _, span := range r.tracer.Spans() {
		if span.Ends != 1 || span.Late != 0 {
			t.Errorf("the span of %s ended %d times and heard of %d things after, want 1 and 0", span.MessageID, span.Ends, span.Late)
		}
	}
}

func TestFailure_AnOutageIsTriedByOneSendAtATimeAndEndsByItself(t *testing.T) {
	t.Parallel()
	for _, class := range []relay.Class{relay.Transient, relay.Throttled, relay.Blocked} {
		t.Run(class.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := newRig()
				var out atomic.Bool
				out.Store(true)
				r.topic.Decide = func([]contract.Message) relaytest.Outcome {
					if out.Load() {
						return relaytest.Outcome{Err: failure(class), Delay: time.Millisecond}
					}
					return relaytest.Outcome{Delay: time.Millisecond}
				}
				r.add(1, 500, each)
				r.start(t)
				time.Sleep(10 * time.Minute)
				// The first 64 sends find the outage together; the pauses grow in ten
				// tries, and are half of the longest one, 15s, at least.
				if got := r.topic.Sends(); got > 64+10+40 {
					t.Errorf("%d sends in an outage of 10 minutes, want few", got)
				}
				status := r.Status()
				if status.Outage.Class != class || !errors.Is(status.Outage.Err, relaytest.ErrInjected) {
					t.Errorf("outage is %+v, want class %s", status.Outage, class)
				}
				out.Store(false)
				time.Sleep(40 * time.Second) // a throttled topic is filled slowly
				if got := r.counters.Sent(); got != 500 {
					t.Errorf("sent %d after the outage, want 500", got)
				}
				if got := r.Status().Outage; !got.Since.IsZero() {
					t.Errorf("outage is %+v afterwards, want none", got)
				}
				if got := r.checkpoint.Last(); got != 500 {
					t.Errorf("checkpoint is at %d, want 500", got)
				}
				_ = r.stop()
			})
		})
	}
}

// TestPause_AThrottledTopicIsTriedByOneMessage wants a second, which a window
// lasts, to be tried out, and then the pauses that the service asks for.
func TestPause_AThrottledTopicIsTriedByOneMessage(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ asked, want time.Duration }{
		"as long as it says":                {4 * time.Second, 4 * time.Second},
		"two seconds where it says no time": {0, 2 * time.Second},
	} {
		for _, mixed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, mixed %v", name, mixed), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					r := newRig(func(c *relay.Config) { c.Senders, c.Mixed = 1, mixed })
					var times []time.Time
					r.topic.Decide = func(m []contract.Message) relaytest.Outcome { // under the topic's lock
						times = append(times, time.Now())
						if len(times) > 1 && len(m) != 1 {
							t.Errorf("try %d is of %d messages, want one", len(times)-1, len(m))
						}
						return relaytest.Outcome{Err: &relay.SendError{Class: relay.Throttled, Wait: tt.asked, Err: relaytest.ErrInjected}}
					}
					r.source.Add(relaytest.Change(1, "hot"), relaytest.Change(2, "hot"), relaytest.Change(3, "cold"))
					r.start(t)
					time.Sleep(3 * time.Minute)
					r.end(errors.New("enough"))
					<-r.done
					if early := times[4].Sub(times[0]); early < time.Second || early > 1500*time.Millisecond {
						t.Errorf("the first four tries took %s, want the rest of a second's window and little more", early)
					}
					for i := 5; i < len(times); i++ {
						if pause := times[i].Sub(times[i-1]); pause < tt.want || pause > 30*time.Second {
							t.Errorf("pause %d is %s, want between %s and 30s", i, pause, tt.want)
						}
					}
				})
			})
		}
	}
}

func TestFailure_AnUnmappableChangeIsParkedBeforeTheCheckpointPasses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig()
		began := time.Now()
		r.parks.Fault = func() error {
			if time.Since(began) < time.Minute {
				return relaytest.ErrInjected
			}
			return nil
		}
		r.add(1, 3, each)
		r.add(4, 4, func(int) string { return "unmappable" })
		r.add(5, 9, each)
		r.start(t)
		time.Sleep(50 * time.Second)
		if got := r.checkpoint.Last(); got != 3 {
			t.Errorf("checkpoint is at %d while the change cannot be parked, want 3", got)
		}
		time.Sleep(time.Minute)
		kept := r.parks.Kept()
		if len(kept) != 1 || kept[0].Reason != "has no aggregate id" || kept[0].Term != 3 {
			t.Errorf("parked %+v, want the change with its reason and term", kept)
		}
		if got := r.checkpoint.Last(); got != 9 || r.counters.Parked() != 1 {
			t.Errorf("checkpoint is at %d with %d parked, want 9 and 1", got, r.counters.Parked())
		}
		_ = r.stop()
	})
}

func TestFailure_AMessageThatIsTooLargeIsParkedAndItsAggregateGoesOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig()
		r.topic.Decide = func(m []contract.Message) relaytest.Outcome {
			large := slices.IndexFunc(m, func(m contract.Message) bool { return m.ID == string(relaytest.Position(7)) })
			if large >= 0 {
				return relaytest.Outcome{Err: failure(relay.TooLarge), Accept: large}
			}
			return relaytest.Outcome{}
		}
		r.add(1, 20, hot)
		r.start(t)
		time.Sleep(time.Second)
		want := slices.DeleteFunc(numbers(1, 20), func(n int) bool { return n == 7 })
		if got := r.topic.Accepted("hot"); !slices.Equal(got, want) {
			t.Errorf("accepted %v, want all but 7", got)
		}
		kept := r.parks.Kept()
		if len(kept) != 1 || kept[0].Change.Position != relaytest.Position(7) || kept[0].AggregateID != "hot" {
			t.Errorf("parked %+v, want change 7 of hot", kept)
		}
		if got := r.checkpoint.Last(); got != 20 || r.topic.Sends() > 21 {
			t.Errorf("checkpoint is at %d after %d sends, want 20 after few", got, r.topic.Sends())
		}
		_ = r.stop()
	})
}

func TestFailure_UnderStopAChangeThatCannotBeSentEndsTheRelayInFrontOfIt(t *testing.T) {
	t.Parallel()
	for name, unsendable := range map[string]string{"unmappable": "unmappable", "too large": "large"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := newRig(func(c *relay.Config) { c.StopOnUnmappable = true })
				r.topic.Decide = func(m []contract.Message) relaytest.Outcome {
					if m[0].SessionID == "large" {
						return relaytest.Outcome{Err: failure(relay.TooLarge), Delay: time.Second}
					}
					return relaytest.Outcome{Delay: time.Millisecond}
				}
				r.add(1, 5, each)
				r.add(6, 6, func(int) string { return unsendable })
				r.add(7, 9, each)
				r.start(t)
				err := <-r.done
				refused, ok := errors.AsType[*relay.UnsendableError](err)
				if !ok || refused.Position != relaytest.Position(6) {
					t.Errorf("Run = %v, want an UnsendableError at change 6", err)
				}
				if got := r.checkpoint.Last(); got != 5 {
					t.Errorf("checkpoint is at %d, want in front of the change, at 5", got)
				}
				if kept := r.parks.Kept(); len(kept) != 0 {
					t.Errorf("parked %+v, want nothing", kept)
				}
			})
		})
	}
}

func TestPark_TooManyEndTheRelayInFrontOfTheNext(t *testing.T) {
	t.Parallel()
	for name, unsendable := range map[string]string{"unmappable": "unmappable", "too large": "large"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := newRig()
				r.parks.Limit = 3
				r.topic.Decide = func(m []contract.Message) relaytest.Outcome {
					if m[0].SessionID == "large" {
						return relaytest.Outcome{Err: failure(relay.TooLarge)}
					}
					return relaytest.Outcome{}
				}
				r.add(1, 5, each)
				r.add(6, 20, func(int) string { return unsendable })
				r.start(t)
				err := <-r.done
				over, ok := errors.AsType[*relay.OverparkedError](err)
				if !ok || over.Position != relaytest.Position(9) {
					t.Errorf("Run = %v, want an OverparkedError at change 9", err)
				}
				if kept := r.parks.Kept(); len(kept) != 3 || r.checkpoint.Last() != 8 {
					t.Errorf("parked %d with the checkpoint at %d, want 3 and 8", len(kept), r.checkpoint.Last())
				}
			})
		})
	}
}

// TestStatus_SaysWhatTheStateDatabaseDoesNotStore has it refuse a save, or a change that
// is to be parked, for a minute.
func TestStatus_SaysWhatTheStateDatabaseDoesNotStore(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"checkpoint": "save the checkpoint: ",
		"park":       "park the change at position " + string(relaytest.Position(2)) + ": ",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var down atomic.Bool
				down.Store(true)
				fault := func() error {
					if down.Load() {
						return relaytest.ErrInjected
					}
					return nil
				}
				r := newRig()
				if name == "park" {
					r.parks.Fault = fault
				} else {
					r.checkpoint.Fault = func(int) error { return fault() }
				}
				r.add(1, 1, each)
				r.add(2, 2, func(int) string { return "unmappable" })
				r.add(3, 3, each)
				began := time.Now()
				r.start(t)
				time.Sleep(time.Minute)
				got := r.Status().Unsaved
				if got.Err == nil || !strings.HasPrefix(got.Err.Error(), want) || got.Since.Sub(began) > time.Second {
					t.Errorf("after a minute it says %v since %s, want %q since the beginning, %s", got.Err, got.Since, want, began)
				}
				down.Store(false)
				time.Sleep(time.Minute)
				if got := r.Status().Unsaved; got.Err != nil || r.checkpoint.Last() != 3 {
					t.Errorf("with the checkpoint at %d it says %v, want 3 and nothing", r.checkpoint.Last(), got.Err)
				}
				if err := r.stop(); err != nil {
					t.Errorf("Run = %v, want nil", err)
				}
			})
		})
	}
}

// TestPark_WhatIsBeingParkedTakesRoom has many changes of different aggregates be refused by
// the topic at once, where it takes time to park one.
func TestPark_WhatIsBeingParkedTakesRoom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig()
		r.parks.Limit, r.parks.Takes = 3, time.Second
		r.topic.Decide = func([]contract.Message) relaytest.Outcome {
			return relaytest.Outcome{Err: failure(relay.TooLarge)}
		}
		r.add(1, 20, each)
		r.start(t)
		err := <-r.done
		if _, ok := errors.AsType[*relay.OverparkedError](err); !ok {
			t.Errorf("Run = %v, want an OverparkedError", err)
		}
		if kept := r.parks.Kept(); len(kept) != 3 {
			t.Errorf("parked %d, want 3", len(kept))
		}
	})
}

// TestPark_WhatWaitsAlreadyTakesNoRoom reads changes again that were parked before.
func TestPark_WhatWaitsAlreadyTakesNoRoom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig()
		r.parks.Limit = 4
		for n := 1; n <= 3; n++ {
			if err := r.parks.Park(t.Context(), relay.Parked{Change: relay.Change{Position: relaytest.Position(n)}}); err != nil {
				t.Fatal(err)
			}
		}
		r.add(1, 10, func(int) string { return "unmappable" })
		r.start(t)
		err := <-r.done
		over, ok := errors.AsType[*relay.OverparkedError](err)
		if !ok || over.Position != relaytest.Position(5) {
			t.Errorf("Run = %v, want an OverparkedError at change 5", err)
		}
		if n := r.counters.Parked(); n != 1 {
			t.Errorf("counted %d as parked, want the one that was not before", n)
		}
	})
}

func TestFailure_TheWindowIsBoundedInCountAndBytes(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		limit func(*relay.Config)
		most  int
	}{
		"count": {func(c *relay.Config) { c.MaxInFlight = 20 }, 20},
		"bytes": {func(c *relay.Config) { c.MaxInFlightBytes = 20 << 10 }, 10},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := newRig(tt.limit)
				r.topic.Decide = func([]contract.Message) relaytest.Outcome { return relaytest.Outcome{Hang: true} }
				r.add(1, 500, each)
				r.start(t)
				synctest.Wait()
				if got := r.Status().InFlight; got < tt.most-1 || got > tt.most {
					t.Errorf("%d in flight, want about %d", got, tt.most)
				}
				// One batch is with the mapper and one waits behind it.
				if got := r.source.Taken(); got > tt.most+3 {
					t.Errorf("%d changes read, want reading to wait", got)
				}
				r.end(errors.New("enough"))
				<-r.done
			})
		})
	}
}

// TestSave_ASaveThatComesToTakeLongerHasTheTimeForIt has a state database whose majority
// is behind by more than a save usually takes.
func TestSave_ASaveThatComesToTakeLongerHasTheTimeForIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig()
		r.checkpoint.Takes = 4500 * time.Millisecond
		r.add(1, 100, each)
		r.start(t)
		time.Sleep(time.Minute)
		if got := r.Status().Unsaved; r.checkpoint.Last() != 100 || got.Err != nil {
			t.Errorf("after a minute the checkpoint is at %d, and %v is not saved; want 100 and nothing", r.checkpoint.Last(), got.Err)
		}
		if err := r.stop(); err != nil {
			t.Errorf("Run = %v, want nil", err)
		}
	})
}
