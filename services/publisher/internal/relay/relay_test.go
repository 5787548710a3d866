package relay_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"changerelay/pkg/contract"
	"changerelay/services/publisher/internal/checkpoint"
	"changerelay/services/publisher/internal/relay"
	"changerelay/services/publisher/internal/relay/relaytest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is a relay in a bubble with its surroundings.
type rig struct {
	*relay.Relay
	source     *relaytest.Source
	topic      *relaytest.Topic
	parks      *relaytest.Parks
	checkpoint *relaytest.Checkpoint
	counters   *relay.Counters
	tracer     *relaytest.Tracer
	mayAct     atomic.Pointer[error]

	stopping chan struct{}
	end      context.CancelCauseFunc
	done     chan error
}

type discard struct{}

func (discard) Observe(float64) {}

func newRig(change ...func(*relay.Config)) *rig {
	r := &rig{
		source:     relaytest.NewSource(),
		topic:      &relaytest.Topic{},
		parks:      &relaytest.Parks{},
		checkpoint: &relaytest.Checkpoint{},
		counters:   relay.NewCounters(discard{}),
		tracer:     &relaytest.Tracer{},
		stopping:   make(chan struct{}),
		done:       make(chan error, 1),
	}
	config := relay.Config{
		Term:               3,
		MaxInFlight:        1000,
		MaxInFlightBytes:   1 << 30,
		Senders:            64,
		BatchSize:          10,
		BatchBytes:         1 << 20,
		SendTimeout:        10 * time.Second,
		ParkTimeout:        5 * time.Second,
		Patience:           time.Minute,
		CheckpointInterval: 250 * time.Millisecond,
		DrainTimeout:       10 * time.Second,
	}
	for _, c := range change {
		c(&config)
	}
	r.Relay = relay.New(config, relay.Deps{
		Source:     r.source,
		Mapper:     relaytest.Mapper{},
		Sender:     r.topic,
		Parker:     r.parks,
		Checkpoint: r.checkpoint,
		MayAct: func() error {
			if err := r.mayAct.Load(); err != nil {
				return *err
			}
			return nil
		},
		Counters: r.counters,
		Tracer:   r.tracer,
		Log:      zerolog.Nop(),
	})
	return r
}

func (r *rig) start(t *testing.T) {
	ctx, end := context.WithCancelCause(t.Context())
	r.end = end
	go func() { r.done <- r.Run(ctx, r.stopping) }()
}

// stop stops the relay in order and returns what Run returned.
func (r *rig) stop() error {
	close(r.stopping)
	return <-r.done
}

// add adds changes first to last of aggregates named by name, one batch each.
func (r *rig) add(first, last int, name func(n int) string) {
	for n := first; n <= last; n++ {
		r.source.Add(relaytest.Change(n, name(n)))
	}
}

func hot(int) string    { return "hot" }
func each(n int) string { return fmt.Sprint("aggregate ", n) }

func TestRelay_ChangesAreSentAndTheCheckpointFollows(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig()
		r.add(1, 100, each)
		r.start(t)
		time.Sleep(time.Second)
		if got := r.counters.Sent(); got != 100 {
			t.Errorf("sent %d, want 100", got)
		}
		if got := r.checkpoint.Last(); got != 100 {
			t.Errorf("checkpoint is at %d, want 100", got)
		}
		for _, m := range r.topic.Messages() {
			if term := m.Properties["cloudEvents_term"]; term != int64(3) {
				t.Fatalf("message %s is of term %v, want 3", m.ID, term)
			}
		}
		if err := r.stop(); err != nil {
			t.Errorf("Run = %v, want nil", err)
		}
	})
}

func TestRelay_AnAggregateIsSentInBatchesOneAtATime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig()
		r.topic.Decide = func(m []contract.Message) relaytest.Outcome {
			if len(m) > 10 {
				t.Errorf("a send of %d messages, want at most 10", len(m))
			}
			return relaytest.Outcome{Delay: 5 * time.Millisecond}
		}
		r.add(1, 500, hot)
		r.start(t)
		time.Sleep(time.Second)
		if got := r.topic.Accepted("hot"); !slices.Equal(got, numbers(1, 500)) {
			t.Errorf("accepted in the order %v, want 1 to 500", got)
		}
		if got := r.topic.Overlaps(); got != 0 {
			t.Errorf("%d sends overlapped another of their aggregate, want none", got)
		}
		if got := r.topic.Sends(); got > 52 {
			t.Errorf("%d sends for 500 messages, want about 50", got)
		}
		_ = r.stop()
	})
}

func TestRelay_ReadyAggregatesGoInOneSendWhereTheyMayBeMixed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(func(c *relay.Config) { c.Mixed, c.Senders, c.BatchSize = true, 1, 10 })
		var first, failed bool
		var sends [][]string
		r.topic.Decide = func(m []contract.Message) relaytest.Outcome { // under the topic's lock
			sends = append(sends, idsOf(m))
			switch {
			case !first: // with what is there; until everything else is ready
				first = true
				return relaytest.Outcome{Delay: time.Second}
			case !failed:
				failed = true
				return relaytest.Outcome{Err: failure(relay.Transient)}
			default:
				return relaytest.Outcome{}
			}
		}
		r.add(1, 21, each)
		r.start(t)
		time.Sleep(time.Minute)
		if err := r.stop(); err != nil {
			t.Fatal(err)
		}
		if len(sends) != 4 || len(sends[1]) != 10 || !slices.Equal(sends[1], sends[2]) || len(sends[0])+len(sends[3]) != 11 {
			t.Errorf("sends are %v, want some, then ten that fail, the same ten again, and the rest", sends)
		}
	})
}

func TestRelay_MixedSendsFillUpWhileOthersAreUnderWay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(func(c *relay.Config) { c.Mixed, c.BatchSize = true, 10 })
		var sizes []int
		r.topic.Decide = func(m []contract.Message) relaytest.Outcome { // under the topic's lock
			sizes = append(sizes, len(m))
			return relaytest.Outcome{Delay: 5 * time.Second}
		}
		r.start(t)
		for n := 1; n <= 25; n++ {
			r.add(n, n, each)
			synctest.Wait()
		}
		time.Sleep(time.Hour)
		if err := r.stop(); err != nil {
			t.Fatal(err)
		}
		if want := []int{1, 1, 1, 1, 10, 10, 1}; !slices.Equal(sizes, want) {
			t.Errorf("sizes of sends are %v, want %v: a few that are not full, and full ones beside them", sizes, want)
		}
	})
}

func idsOf(messages []contract.Message) []string {
	var ids []string
	for _, m := range messages {
		ids = append(ids, m.ID)
	}
	return ids
}

func TestRelay_AStuckAggregateDoesNotHoldUpOthersNorLetTheCheckpointPass(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig()
		r.topic.Decide = func(m []contract.Message) relaytest.Outcome {
			return relaytest.Outcome{Hang: m[0].SessionID == "stuck"}
		}
		r.add(1, 10, each)
		r.add(11, 11, func(int) string { return "stuck" })
		r.add(12, 200, each)
		r.start(t)
		time.Sleep(5 * time.Second)
		if got := r.counters.Sent(); got != 199 {
			t.Errorf("sent %d, want all but the stuck one, 199", got)
		}
		if got := r.checkpoint.Last(); got != 10 {
			t.Errorf("checkpoint is at %d, want before the stuck change, at 10", got)
		}
		if got := r.Status().InFlight; got != 190 {
			t.Errorf("%d in flight, want 190: the stuck one and what came after", got)
		}
		r.end(errors.New("enough"))
		<-r.done
	})
}

func TestRelay_NothingIsSentWhenTheLeaseCannotBeTrusted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig()
		lost := errors.New("lease lost")
		r.add(1, 5, each)
		r.start(t)
		time.Sleep(time.Second)
		r.mayAct.Store(&lost)
		sends := r.topic.Sends()
		r.add(6, 50, each)
		if err := <-r.done; !errors.Is(err, lost) {
			t.Errorf("Run = %v, want %v", err, lost)
		}
		if got := r.topic.Sends(); got != sends {
			t.Errorf("%d sends after the lease was lost, want none", got-sends)
		}
	})
}

func TestRelay_ALostLeaseCutsSendsOffAndKeepsWhatWasAccepted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig()
		r.topic.Decide = func(m []contract.Message) relaytest.Outcome {
			return relaytest.Outcome{Hang: relaytest.Number(contract.Position(m[0].ID)) > 5}
		}
		r.add(1, 50, each)
		r.start(t)
		synctest.Wait()
		lost := errors.New("lease lost")
		before := time.Now()
		r.end(lost)
		if err := <-r.done; !errors.Is(err, lost) {
			t.Errorf("Run = %v, want %v", err, lost)
		}
		if took := time.Since(before); took != 0 {
			t.Errorf("took %s to end, want no time", took)
		}
		if got := r.checkpoint.Last(); got != 5 {
			t.Errorf("checkpoint is at %d, want 5", got)
		}
	})
}

func TestRelay_ASupersededCheckpointEndsTheRelayAndIsNotTriedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig()
		refusals := 0
		r.checkpoint.Fault = func(int) error {
			refusals++
			return fmt.Errorf("save: %w", checkpoint.ErrSuperseded)
		}
		r.add(1, 5, each)
		r.start(t)
		if err := <-r.done; !errors.Is(err, checkpoint.ErrSuperseded) {
			t.Errorf("Run = %v, want ErrSuperseded", err)
		}
		if refusals != 1 {
			t.Errorf("%d saves after being superseded, want only the refused one", refusals)
		}
	})
}

func TestRelay_AFailedSaveIsMadeAgainWithTheThenLatestPoint(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig()
		began := time.Now()
		r.checkpoint.Fault = func(int) error {
			if time.Since(began) < 5*time.Second {
				return relaytest.ErrInjected
			}
			return nil
		}
		r.add(1, 5, each)
		r.start(t)
		time.Sleep(4 * time.Second)
		r.add(6, 9, each)
		time.Sleep(4 * time.Second)
		if got := r.checkpoint.Saves(); !slices.Equal(got, []int{9}) {
			t.Errorf("saves are %v, want one at 9", got)
		}
		_ = r.stop()
	})
}

func TestRelay_SavesAreSpacedOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig()
		r.start(t)
		for n := range 1000 {
			r.add(n+1, n+1, each)
			time.Sleep(10 * time.Millisecond)
		}
		if got := len(r.checkpoint.Saves()); got < 30 || got > 41 {
			t.Errorf("%d saves in 10s, want one each 250ms", got)
		}
		_ = r.stop()
		if got := r.checkpoint.Last(); got != 1000 {
			t.Errorf("the last save is at %d, want 1000", got)
		}
	})
}

func TestRelay_AnIdleStreamAdvancesTheCheckpointWithoutHurry(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig()
		r.start(t)
		for n := range 60 {
			r.source.Idle(n + 1)
			time.Sleep(time.Second)
		}
		if got := len(r.checkpoint.Saves()); got < 5 || got > 7 {
			t.Errorf("%d saves in a minute of idling, want one each 10s", got)
		}
		_ = r.stop()
		if got := r.checkpoint.Last(); got != 60 {
			t.Errorf("the last save is at %d, want 60", got)
		}
	})
}

func TestRelay_AnIdleTokenIsNotUsedWhileAChangeIsInFlight(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig()
		r.topic.Decide = func([]contract.Message) relaytest.Outcome { return relaytest.Outcome{Delay: 9 * time.Second} }
		r.start(t)
		r.add(1, 1, each)
		synctest.Wait()
		for range 8 {
			r.source.Idle(50)
			time.Sleep(time.Second)
		}
		if got := r.checkpoint.Saves(); len(got) != 0 {
			t.Errorf("saved %v while the first change is in flight, want nothing", got)
		}
		time.Sleep(10 * time.Second)
		if got := r.checkpoint.Last(); got != 1 {
			t.Errorf("checkpoint is at %d, want at the change, 1", got)
		}
		_ = r.stop()
	})
}

func TestRelay_AStopFinishesWhatIsInFlightAndReadsNoMore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig()
		r.topic.Decide = func([]contract.Message) relaytest.Outcome { return relaytest.Outcome{Delay: time.Second} }
		r.add(1, 30, each)
		r.start(t)
		synctest.Wait()
		close(r.stopping)
		synctest.Wait()
		r.add(31, 60, each)
		before := time.Now()
		if err := <-r.done; err != nil {
			t.Errorf("Run = %v, want nil", err)
		}
		if took := time.Since(before); took != time.Second {
			t.Errorf("the stop took %s, want what the sends take, 1s", took)
		}
		if got := r.checkpoint.Last(); got != 30 || r.counters.Sent() != 30 {
			t.Errorf("sent %d with the checkpoint at %d, want 30 and 30", r.counters.Sent(), got)
		}
	})
}

func TestRelay_AStopDoesNotWaitForeverForATopicThatHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(func(c *relay.Config) { c.SendTimeout = time.Hour })
		r.topic.Decide = func(m []contract.Message) relaytest.Outcome {
			return relaytest.Outcome{Hang: relaytest.Number(contract.Position(m[0].ID)) == 4}
		}
		r.add(1, 30, each)
		r.start(t)
		synctest.Wait()
		before := time.Now()
		if err := r.stop(); err != nil {
			t.Errorf("Run = %v, want nil", err)
		}
		if took := time.Since(before); took != 10*time.Second {
			t.Errorf("the stop took %s, want the drain timeout, 10s", took)
		}
		if got := r.checkpoint.Last(); got != 3 {
			t.Errorf("checkpoint is at %d, want before the hanging change, at 3", got)
		}
	})
}

// TestRelay_AStopThatTakesTooLongSavesWhatIsFinished has a send that hangs, and
// saves that fail before the last one, or including it.
func TestRelay_AStopThatTakesTooLongSavesWhatIsFinished(t *testing.T) {
	t.Parallel()
	for name, fails := range map[string]bool{"the last save succeeds": false, "the last save fails": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				const drain = 10*time.Second + 100*time.Millisecond // between two saves
				r := newRig(func(c *relay.Config) { c.SendTimeout, c.DrainTimeout = time.Hour, drain })
				r.topic.Decide = func(m []contract.Message) relaytest.Outcome {
					return relaytest.Outcome{Hang: relaytest.Number(contract.Position(m[0].ID)) == 4}
				}
				began := time.Now()
				r.checkpoint.Fault = func(int) error {
					if fails || time.Since(began) < drain {
						return relaytest.ErrInjected
					}
					return nil
				}
				r.add(1, 30, each)
				r.start(t)
				synctest.Wait()
				if err := r.stop(); errors.Is(err, relaytest.ErrInjected) != fails {
					t.Errorf("Run = %v, want the failure of the last save: %v", err, fails)
				}
				if got := r.checkpoint.Last(); (got == 3) == fails {
					t.Errorf("checkpoint is at %d, want it before the hanging change, at 3: %v", got, !fails)
				}
			})
		})
	}
}

func TestRelay_ASourceThatCannotGoOnEndsTheRelayAfterWhatItGave(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig()
		r.topic.Decide = func([]contract.Message) relaytest.Outcome { return relaytest.Outcome{Delay: time.Second} }
		gone := errors.New("history lost")
		r.add(1, 20, each)
		r.source.Fail(gone)
		r.start(t)
		if err := <-r.done; !errors.Is(err, gone) {
			t.Errorf("Run = %v, want %v", err, gone)
		}
		if got := r.checkpoint.Last(); got != 20 {
			t.Errorf("checkpoint is at %d, want 20", got)
		}
	})
}

func numbers(first, last int) []int {
	var all []int
	for n := first; n <= last; n++ {
		all = append(all, n)
	}
	return all
}
