package sessionlink

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/sandboxtest"
	"changerelay/services/projector/internal/session"
)

// completes is a handler that completes everything.
type completes struct{}

func (completes) Hold(string) session.Applier { return completes{} }

func (completes) Apply(_ context.Context, messages []session.Message) ([]session.Verdict, error) {
	return make([]session.Verdict, len(messages)), nil
}

// backlog sends messages of so many bytes to sessions, and returns how many.
func backlog(t *testing.T, e *sandboxtest.Endpoints, topic string, sessions, messages, bytes int) int64 {
	t.Helper()
	var all []contract.Message
	body := []byte(strings.Repeat("x", bytes))
	for i := range messages {
		for s := range sessions {
			id := fmt.Sprint("s", s)
			all = append(all, contract.Message{ID: fmt.Sprint(id, "/", i), SessionID: id, PartitionKey: id, Subject: "Happened", Body: body})
		}
	}
	sandboxtest.Send(t, e, topic, all...)
	return int64(len(all))
}

// A backlog comes once over a link that carries in a lock's time what a few sessions
// have, however it is spread over sessions: renewals and settlements are not behind it.
func TestSubscription_DrainsABacklogOverANarrowLink(t *testing.T) {
	t.Parallel()
	const perSecond, besideBody = 300_000, 450
	shapes := map[string]struct{ sessions, messages, bytes int }{
		"one-long":     {1, 40, 50_000},
		"some-long":    {6, 7, 50_000},
		"many-of-one":  {40, 1, 50_000},
		"many-of-five": {200, 5, 2_000},
	}
	fiveSeconds := strings.ReplaceAll(string(sandboxtest.Topics(slices.Sorted(maps.Keys(shapes))...)), "PT10S", "PT5S")
	e := sandboxtest.StartWith(t, sandboxtest.Config(fiveSeconds))
	waiting := map[string]int64{}
	for topic, shape := range shapes {
		waiting[topic] = backlog(t, e, topic, shape.sessions, shape.messages, shape.bytes)
	}
	e.Become(t, fmt.Sprintf(`{"base":"loopback","service_bus":{"round_trip":"5ms","bytes_per_second":%d}}`, perSecond))
	for topic, shape := range shapes {
		t.Run(topic, func(t *testing.T) {
			t.Parallel()
			s := open(t, at(t, e, topic))
			w, err := s.endpoints[0].connected(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			engine := session.New(session.Defaults(), s, completes{}, zerolog.New(zerolog.NewTestWriter(t)))
			ctx, stop := context.WithCancel(t.Context())
			ran := make(chan error, 1)
			began := time.Now()
			go func() { ran <- engine.Run(ctx) }()
			done := engine.Counts()
			tick := time.NewTicker(10 * time.Millisecond)
			defer tick.Stop()
			for done.Completed.Load()+done.SettlesFailed.Load() < waiting[topic] && ctx.Err() == nil {
				<-tick.C
			}
			took := time.Since(began)
			stop()
			if err := <-ran; err != nil {
				t.Error(err)
			}
			size := waiting[topic] * int64(shape.bytes+besideBody)
			carried := float64(w.pace.carried.Load()) / float64(size)
			t.Logf("%.2f of the link, carried %.2f times", float64(size)/took.Seconds()/perSecond, carried)
			if carried > 1.2 {
				t.Errorf("%.2f times the messages came, in %d holds, want them once", carried, done.Accepted.Load())
			}
		})
	}
}
