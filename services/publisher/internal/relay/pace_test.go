package relay_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"changerelay/pkg/contract"
	"changerelay/services/publisher/internal/relay"
	"changerelay/services/publisher/internal/relay/relaytest"
)

// creditTopic allows so many messages in each window of a second, and refuses
// what is beyond them as a whole until the next one, as Service Bus does.
type creditTopic struct {
	limit     int // 0 is none; below, nothing is taken
	roundTrip time.Duration

	mu       sync.Mutex
	broken   bool // whether sends fail otherwise
	window   int64
	left     int
	carried  int
	refused  int            // sends
	last     map[string]int // message of each aggregate
	unsorted int
}

// Send implements relay.Sender. The credits are taken half a round trip before the answer.
func (c *creditTopic) Send(ctx context.Context, messages []contract.Message) (int, error) {
	time.Sleep(c.roundTrip / 2)
	n, err := c.admit(messages)
	time.Sleep(c.roundTrip / 2)
	return n, err
}

func (c *creditTopic) admit(messages []contract.Message) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.broken {
		return 0, &relay.SendError{Class: relay.Transient, Err: relaytest.ErrInjected}
	}
	if window := time.Now().Unix(); window != c.window {
		c.window, c.left = window, c.limit
	}
	if c.limit != 0 && len(messages) > c.left {
		c.refused++
		return 0, &relay.SendError{Class: relay.Throttled, Wait: 2 * time.Second, Err: relaytest.ErrInjected}
	}
	c.left -= len(messages)
	c.carried += len(messages)
	for _, m := range messages {
		n := relaytest.Number(contract.Position(m.ID))
		if c.last[m.SessionID] > n {
			c.unsorted++
		}
		c.last[m.SessionID] = n
	}
	return len(messages), nil
}

func (c *creditTopic) count() (carried, refused int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.carried, c.refused
}

func (c *creditTopic) allow(limit int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.limit, c.left = limit, limit
}

func (c *creditTopic) fail(broken bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.broken = broken
}

// flood is a source with as much as is taken, in the given number of aggregates.
type flood struct {
	aggregates int
	next       int
}

func (f *flood) Read(context.Context) (relay.Batch, error) {
	var batch relay.Batch
	for range 200 {
		f.next++
		batch.Changes = append(batch.Changes, relaytest.Change(f.next, fmt.Sprint(f.next%f.aggregates)))
	}
	return batch, nil
}

type rated struct {
	relay  *relay.Relay
	topic  *creditTopic
	end    context.CancelFunc
	done   chan error
	counts *relay.Counters
}

// startRated runs a relay with the defaults of a publisher.
func startRated(t *testing.T, source relay.Source, topic *creditTopic, change ...func(*relay.Config)) *rated {
	t.Helper()
	topic.last = map[string]int{}
	config := relay.Config{
		Term: 1, MaxInFlight: 10_000, MaxInFlightBytes: 1 << 30, Senders: 256, BatchSize: 100, BatchBytes: 200_000,
		SendTimeout: 15 * time.Second, ParkTimeout: 5 * time.Second, Patience: 2 * time.Minute,
		CheckpointInterval: time.Second, DrainTimeout: 10 * time.Second,
	}
	for _, c := range change {
		c(&config)
	}
	r := &rated{topic: topic, done: make(chan error, 1), counts: relay.NewCounters(discard{})}
	r.relay = relay.New(config, relay.Deps{
		Source: source, Mapper: relaytest.Mapper{}, Sender: topic, Parker: &relaytest.Parks{}, Checkpoint: &relaytest.Checkpoint{},
		MayAct: func() error { return nil }, Counters: r.counts, Log: zerolog.Nop(),
	})
	ctx, end := context.WithCancel(t.Context())
	r.end = end
	go func() { r.done <- r.relay.Run(ctx, make(chan struct{})) }()
	return r
}

func (r *rated) stop(t *testing.T) {
	t.Helper()
	r.end()
	<-r.done
	if r.topic.unsorted > 0 {
		t.Errorf("%d messages were accepted behind later ones of their aggregate", r.topic.unsorted)
	}
}

// carriedIn returns how many messages were accepted in a time from now on.
func (r *rated) carriedIn(d time.Duration) int {
	before, _ := r.topic.count()
	time.Sleep(d)
	after, _ := r.topic.count()
	return after - before
}

func TestPace_ABacklogLeavesAtTheLimit(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		limit, aggregates int
		seconds           int
		sends             float64 // a second, at most
		roundTrip         time.Duration
		mixed             bool
	}{
		"50 a second, one aggregate":               {50, 1, 30, 200, 40 * time.Millisecond, false},
		"50 a second, each its own":                {50, 1 << 30, 30, 200, 5 * time.Millisecond, false},
		"500 a second, mixed":                      {500, 1 << 30, 30, 200, 5 * time.Millisecond, true},
		"500 a second, 100 of an aggregate":        {500, 100, 30, 200, 5 * time.Millisecond, false},
		"1000 a second, each its own, far":         {1000, 1 << 30, 30, 1010, 40 * time.Millisecond, false},
		"1000 a second, three aggregates, far":     {1000, 3, 60, 200, 40 * time.Millisecond, false},
		"1000 a second, 10 of an aggregate, mixed": {1000, 1000, 30, 200, 5 * time.Millisecond, true},
		"5000 a second, each its own":              {5000, 1 << 30, 10, 5010, 5 * time.Millisecond, false},
		"5000 a second, 100 of an aggregate, far":  {5000, 100, 10, 200, 40 * time.Millisecond, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				topic := &creditTopic{limit: tt.limit, roundTrip: tt.roundTrip}
				r := startRated(t, &flood{aggregates: tt.aggregates}, topic, func(c *relay.Config) { c.Mixed = tt.mixed })
				early := r.carriedIn(10 * time.Second)
				_, before := topic.count()
				sendsBefore := r.counts.Sends()
				share := float64(r.carriedIn(time.Duration(tt.seconds)*time.Second)) / float64(tt.seconds*tt.limit)
				_, after := topic.count()
				refusals := float64(after-before) / float64(tt.seconds)
				t.Logf("%.3f of the limit in the first ten seconds, then %.3f with %.1f refusals a second", float64(early)/float64(10*tt.limit), share, refusals)
				if got := float64(r.counts.Sends()-sendsBefore) / float64(tt.seconds); got > tt.sends {
					t.Errorf("%.0f sends a second, want %.0f at most", got, tt.sends)
				}
				if share < 0.95 {
					t.Errorf("carried %.3f of the limit, want 0.95", share)
				}
				if refusals > max(3, float64(tt.limit)/500) {
					t.Errorf("%.1f refusals a second, want a few", refusals)
				}
				r.stop(t)
			})
		})
	}
}

// inflow is a source that has a burst, and then so many changes a second.
type inflow struct {
	perSecond int
	burst     atomic.Int64
	next      int
}

func (f *inflow) Read(ctx context.Context) (relay.Batch, error) {
	time.Sleep(10 * time.Millisecond)
	var batch relay.Batch
	for range f.perSecond/100 + int(f.burst.Swap(0)) {
		f.next++
		batch.Changes = append(batch.Changes, relaytest.Change(f.next, fmt.Sprint(f.next)))
	}
	return batch, ctx.Err()
}

func TestPace_AfterABurstTheRateIsBackAtTheLimitWithinFiveSeconds(t *testing.T) {
	t.Parallel()
	for _, limit := range []int{500, 1000} {
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				topic := &creditTopic{limit: limit, roundTrip: 10 * time.Millisecond}
				source := &inflow{perSecond: limit * 4 / 5}
				r := startRated(t, source, topic)
				time.Sleep(30*time.Second + 370*time.Millisecond)
				if _, refused := topic.count(); refused > 0 || r.relay.Status().Pace != 0 {
					t.Fatalf("%d sends were refused below the limit, pace %.0f", refused, r.relay.Status().Pace)
				}
				source.burst.Store(5000)
				for refused := 0; refused == 0; _, refused = topic.count() {
					time.Sleep(time.Millisecond)
				}
				first := float64(r.carriedIn(5*time.Second)) / float64(5*limit)
				drain := max(5000/(limit/5)-10, 1)
				share := float64(r.carriedIn(time.Duration(drain)*time.Second)) / float64(drain*limit)
				t.Logf("%.3f of the limit in the first five seconds, then %.3f; in flight %d, pace %.0f", first, share, r.relay.Status().InFlight, r.relay.Status().Pace)
				if drained := r.relay.Status().InFlight < limit/10; share < 0.95 && !drained {
					t.Errorf("carried %.3f of the limit after five seconds, want 0.95", share)
				}
				time.Sleep(15 * time.Second)
				if got := r.relay.Status().InFlight; got > limit/10 {
					t.Errorf("%d changes are in flight, want the burst drained", got)
				}
				time.Sleep(20 * time.Second)
				_, before := topic.count()
				source.burst.Store(5000)
				again := float64(r.carriedIn(5*time.Second)) / float64(5*limit)
				_, after := topic.count()
				if again < 0.95 && r.relay.Status().InFlight > limit/10 || after-before > 100 {
					t.Errorf("carried %.3f of the limit in the five seconds of a second burst with %d sends refused, want 0.95 and few, as the limit is known", again, after-before)
				}
				r.stop(t)
			})
		})
	}
}

func TestPace_FollowsTheLimitWithinSeconds(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ to, within, least, most int }{
		"raised":  {to: 1000, within: 12, least: 930, most: 1000},
		"lifted":  {to: 0, within: 12, least: 5000, most: 1 << 30},
		"lowered": {to: 50, within: 5, least: 46, most: 50},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				topic := &creditTopic{limit: 500, roundTrip: 25 * time.Millisecond}
				r := startRated(t, &flood{aggregates: 1 << 30}, topic)
				time.Sleep(time.Minute)
				topic.allow(tt.to)
				time.Sleep(time.Duration(tt.within) * time.Second)
				if got := r.carriedIn(3*time.Second) / 3; got < tt.least || got > tt.most {
					t.Errorf("carried %d a second after %ds, want %d to %d", got, tt.within, tt.least, tt.most)
				}
				r.stop(t)
			})
		})
	}
}

// TestPace_IsSharedWithOthers has others take up to half of the credits of each
// second, as they may in a namespace.
func TestPace_IsSharedWithOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		topic := &creditTopic{limit: 1000, roundTrip: 10 * time.Millisecond}
		r := startRated(t, &flood{aggregates: 1 << 30}, topic)
		random, left := rand.New(rand.NewPCG(1, 2)), 0
		const seconds = 100
		for range seconds {
			limit := 500 + random.IntN(500)
			left += limit
			topic.allow(limit)
			time.Sleep(time.Second)
		}
		carried, refused := topic.count()
		if share := float64(carried) / float64(left); share < 0.65 || refused > 4*seconds {
			t.Errorf("carried %.3f of what was left and had %d sends refused in %d s, want 0.65 and a few a second", share, refused, seconds)
		}
		r.stop(t)
	})
}

// TestPace_RefusalsThatComeAndGoDoNotMakePausesGrow has a topic that is too busy
// for three seconds out of eight.
func TestPace_RefusalsThatComeAndGoDoNotMakePausesGrow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		topic := &creditTopic{roundTrip: 10 * time.Millisecond}
		r := startRated(t, &inflow{perSecond: 100}, topic)
		for range 40 {
			topic.allow(-1)
			time.Sleep(3 * time.Second)
			topic.allow(0)
			time.Sleep(5 * time.Second)
		}
		if got := r.relay.Status().InFlight; got > 500 {
			t.Errorf("%d changes are in flight, want no backlog", got)
		}
		r.stop(t)
	})
}

// TestPace_AnOutageThatIsNoLimitIsSoonOver has a topic that refuses everything
// for a while at a time of little traffic, and takes everything afterwards.
func TestPace_AnOutageThatIsNoLimitIsSoonOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		topic := &creditTopic{roundTrip: 10 * time.Millisecond}
		source := &inflow{perSecond: 100}
		r := startRated(t, source, topic)
		time.Sleep(10 * time.Second)
		topic.allow(-1)
		source.burst.Store(3000)
		time.Sleep(20 * time.Second)
		if outage := r.relay.Status().Outage; outage.Class != relay.Throttled || outage.Since.IsZero() {
			t.Errorf("outage is %+v, want it told", outage)
		}
		topic.allow(0)
		time.Sleep(30 * time.Second)
		if got := r.relay.Status().InFlight; got > 10 {
			t.Errorf("%d changes are in flight half a minute later, want all sent", got)
		}
		r.stop(t)
	})
}

// TestPace_AnOutageThatBecomesALimitIsNoTimeInWhichAllWasAllowed has a topic that fails
// after ten minutes, and is too busy when it answers again.
func TestPace_AnOutageThatBecomesALimitIsNoTimeInWhichAllWasAllowed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const perSecond = 100
		topic := &creditTopic{roundTrip: 10 * time.Millisecond}
		r := startRated(t, &inflow{perSecond: perSecond}, topic)
		time.Sleep(10 * time.Minute)
		topic.fail(true)
		time.Sleep(10 * time.Second)
		topic.allow(-1)
		topic.fail(false)
		for r.relay.Status().Outage.Class != relay.Throttled {
			time.Sleep(10 * time.Millisecond)
		}
		topic.allow(0)
		for !r.relay.Status().Outage.Since.IsZero() {
			time.Sleep(10 * time.Millisecond)
		}
		if got := r.relay.Status().Pace; got == 0 || got > perSecond {
			t.Errorf("the pace is %.0f a second, want one, and no more than was ever sent", got)
		}
		r.stop(t)
	})
}

func TestPace_IsForgottenWhenTheTopicHasNotRefusedForLong(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		topic := &creditTopic{limit: 100, roundTrip: 10 * time.Millisecond}
		source := &inflow{perSecond: 100}
		source.burst.Store(500)
		r := startRated(t, source, topic)
		for range 500 {
			time.Sleep(10 * time.Millisecond)
			if got := r.relay.Status().Outage; !got.Since.IsZero() {
				t.Errorf("outage is %+v, want none while messages flow", got)
				break
			}
		}
		if got := r.relay.Status().Pace; got < 50 || got > 200 {
			t.Errorf("pace is %.0f, want about 100", got)
		}
		topic.allow(0)
		time.Sleep(9 * time.Minute)
		if got := r.relay.Status().Pace; got == 0 {
			t.Error("there is no pace nine minutes after the last refusal")
		}
		time.Sleep(2 * time.Minute)
		if got := r.relay.Status().Pace; got != 0 {
			t.Errorf("pace is %.0f eleven minutes after the last refusal, want none", got)
		}
		r.stop(t)
	})
}
