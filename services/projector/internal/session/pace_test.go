package session_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"changerelay/services/projector/internal/session"
)

// purse is what a broker allows in a second: receiving and settling a message cost
// one each, and where nothing is left settlements and accepts are refused.
type purse struct {
	mu     sync.Mutex
	each   int
	left   int
	second time.Time
}

func newPurse(b *broker, each int) *purse {
	p := &purse{each: each}
	b.onAccept = func(context.Context, int) error { return p.refuse(0) }
	b.onSettle = func(context.Context, *receiver, session.Message) error { return p.refuse(1) }
	b.onReceive = func(r *receiver) error {
		for {
			b.mu.Lock()
			n := len(r.queue.messages)
			b.mu.Unlock()
			wait := p.take(n)
			if wait == 0 {
				return nil
			}
			time.Sleep(wait)
		}
	}
	return p
}

// take takes credits, or tells in what time there are new ones.
func (p *purse) take(n int) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if passed := time.Since(p.second); passed >= time.Second {
		p.second, p.left = time.Now(), min(p.left, 0)+p.each
	}
	if p.left <= 0 {
		return time.Until(p.second.Add(time.Second))
	}
	p.left -= n
	return 0
}

func (p *purse) refuse(n int) error {
	if p.take(n) > 0 {
		return throttled(2 * time.Second)
	}
	return nil
}

// Under a limit the projector does nearly what the broker allows, with few refusals,
// and no session is given back for them.
func TestPace_IsNearWhatTheBrokerAllows(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		slots, messages, credits int
		answer                   time.Duration // of a receive
	}{
		{slots: 24, messages: 10, credits: 400},
		{slots: 32, messages: 2, credits: 400},
		{slots: 24, messages: 20, credits: 400},
		{slots: 24, messages: 20, credits: 400, answer: 20 * time.Millisecond},
	} {
		t.Run(fmt.Sprintf("%d sessions of %d messages, %d credits, %v", tt.slots, tt.messages, tt.credits, tt.answer), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				sessions := 20 * tt.credits / tt.messages
				b := newBroker()
				b.lockTime = 5 * time.Minute
				for i := range sessions {
					b.put(fmt.Sprintf("order-%05d", i), tt.messages)
				}
				newPurse(b, tt.credits)
				receive := b.onReceive
				b.onReceive = func(r *receiver) error {
					time.Sleep(tt.answer)
					return receive(r)
				}
				cfg := session.Defaults()
				cfg.MaxBytes, cfg.KeepTime, cfg.MaxSessions = 1<<40, 0, tt.slots
				engine, stop := run(t, cfg, b, newHandler(b))
				c := engine.Counts()
				refused := func() int64 { return c.SettlesThrottled.Load() + c.AcceptsFailed.Load() }
				time.Sleep(10 * time.Second) // what all slots brought before there was a limit is refused
				first, began, left := refused(), time.Now(), float64(b.left())
				until(t, "everything is settled", func() bool { return b.left() == 0 })
				took := time.Since(began).Seconds()
				_ = stop()
				if rate := left / took; rate < 0.9*float64(tt.credits)/2 {
					t.Errorf("%.0f messages a second, want nearly %d", rate, tt.credits/2)
				}
				if a := float64(refused()-first) / took; first == 0 || a > 1 {
					t.Errorf("%d refusals at first, and then %.1f a second, want some, and then hardly any", first, a)
				}
				if accepts, _, _ := b.counts(); accepts != sessions || c.GivenBack.Load() != 0 {
					t.Errorf("%d sessions taken %d times, and %d given back; want each once", sessions, accepts, c.GivenBack.Load())
				}
			})
		})
	}
}

// Where the limit is gone the pace is, in time, and where it was never met there is none.
func TestPace_GrowsWhenTheLimitIsGone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBroker()
		b.lockTime = 5 * time.Minute
		for i := range 100 {
			b.put(fmt.Sprintf("order-%04d", i), 10)
		}
		p := newPurse(b, 100)
		cfg := session.Defaults()
		cfg.MaxBytes, cfg.KeepTime, cfg.MaxSessions = 1<<40, 0, 24
		engine, stop := run(t, cfg, b, newHandler(b))
		until(t, "half is settled", func() bool { return b.left() <= 500 })
		if engine.Counts().SettlesThrottled.Load() == 0 {
			t.Error("nothing was throttled at the limit")
		}
		p.mu.Lock()
		p.each = 1 << 40
		p.mu.Unlock()
		for i := range 200 {
			b.put(fmt.Sprintf("later-%04d", i), 25)
		}
		began := time.Now()
		until(t, "everything is settled", func() bool { return b.left() == 0 })
		if took := time.Since(began); took > time.Minute {
			t.Errorf("5,500 messages without a limit took %s, want the pace doubled again and again", took)
		}
		_ = stop()
	})
}

// An accept that is refused at the end of a window, in which others were answered,
// waits by itself: it is answered while no other is on its way, which would tell
// that the broker takes them again.
func TestAccept_OneThatIsThrottledBesideOthersStopsNone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBroker()
		for i := range 100 {
			b.put(fmt.Sprintf("order-%04d", i), 10)
		}
		var tries atomic.Int64
		b.onAccept = func(context.Context, int) error {
			if tries.Add(1) == 10 {
				time.Sleep(50 * time.Millisecond)
				return throttled(time.Minute)
			}
			return nil
		}
		h := newHandler(b)
		h.apply = func(_ context.Context, _ string, messages []session.Message) ([]session.Verdict, error) {
			time.Sleep(100 * time.Millisecond)
			return make([]session.Verdict, len(messages)), nil
		}
		began := time.Now()
		engine, stop := run(t, small(), b, h)
		until(t, "everything is settled", func() bool { return b.left() == 0 })
		if took := time.Since(began); took > 30*time.Second || engine.Counts().AcceptsFailed.Load() != 1 {
			t.Errorf("took %s with %d accepts refused, want the others to go on beside one", took, engine.Counts().AcceptsFailed.Load())
		}
		_ = stop()
	})
}

// What comes of receives that had no pace to keep is no debt that all settlements wait for:
// a first refusal while hardly anything goes, where others use the credits, sets the slowest pace.
func TestPace_AFirstRefusalWhileLittleGoesHoldsUpNothingForLong(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBroker()
		b.lockTime = 5 * time.Minute
		const sessions, messages = 64, 100
		b.put("a", 1) // it is granted first
		for i := range sessions - 1 {
			b.put(fmt.Sprintf("order-%04d", i), messages)
		}
		refused := make(chan struct{})
		var once sync.Once
		b.onSettle = func(context.Context, *receiver, session.Message) error {
			err := error(nil)
			once.Do(func() {
				close(refused)
				err = throttled(2 * time.Second)
			})
			return err
		}
		b.onReceive = func(r *receiver) error {
			if r.id != "a" {
				<-refused
				time.Sleep(100 * time.Millisecond)
			}
			return nil
		}
		cfg := session.Defaults()
		cfg.MaxBytes, cfg.KeepTime, cfg.MaxSessions, cfg.AcceptFloor = 1<<40, 0, sessions, sessions
		engine, stop := run(t, cfg, b, newHandler(b))
		<-refused
		time.Sleep(10 * time.Second)
		if done, least := engine.Counts().Completed.Load(), int64(sessions*messages/4); done < least {
			t.Errorf("%d messages are completed 10 s after one was refused, want at least %d", done, least)
		}
		until(t, "everything is settled", func() bool { return b.left() == 0 })
		_ = stop()
	})
}

// A subscription that refuses every settlement is tried about as often as it asks for,
// however many messages wait, and they go on when it no longer refuses.
func TestPace_WhereEverySettlementIsRefusedFewAreTried(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBroker()
		b.lockTime = 5 * time.Minute
		for i := range 32 {
			b.put(fmt.Sprintf("order-%04d", i), 50)
		}
		const pause = 10 * time.Second
		var tries atomic.Int64
		var mended atomic.Bool
		b.onSettle = func(context.Context, *receiver, session.Message) error {
			tries.Add(1)
			time.Sleep(5 * time.Millisecond)
			if mended.Load() {
				return nil
			}
			return throttled(pause)
		}
		cfg := session.Defaults()
		cfg.MaxBytes, cfg.KeepTime, cfg.MaxSessions = 1<<40, 0, 32
		_, stop := run(t, cfg, b, newHandler(b))
		time.Sleep(time.Minute) // what all slots try before there is a pace is refused
		before := tries.Load()
		time.Sleep(10 * time.Minute)
		if got, most := tries.Load()-before, int64(2*10*time.Minute/pause); got < most/4 || got > most {
			t.Errorf("settlements tried in ten minutes: got %d, want one or two for each pause of %s", got, pause)
		}
		mended.Store(true)
		time.Sleep(2*pause + 5*time.Second)
		if left := b.left(); left > 0 {
			t.Errorf("%d messages are left though nothing is refused any more", left)
		}
		_ = stop()
	})
}
