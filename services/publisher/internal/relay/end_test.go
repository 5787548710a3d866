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

// TestIntake_EverythingThatASourceGaveBeforeItsEndIsSent gives a window of 100
// batches of 256 at once, as a copy does, to a topic that takes them slowly. It
// is killed a few times on the way, and goes on from the checkpoint.
func TestIntake_EverythingThatASourceGaveBeforeItsEndIsSent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const changes = 20_000
		end := errors.New("nothing more")
		topic := &relaytest.Topic{Decide: func([]contract.Message) relaytest.Outcome {
			return relaytest.Outcome{Delay: 50 * time.Millisecond}
		}}
		reached := 0
		for killed := 0; reached < changes; killed++ {
			r := newRig(func(c *relay.Config) { c.MaxInFlight, c.Senders = 100, 10 })
			r.topic.Decide = topic.Decide
			for n := reached + 1; n <= changes; n += 256 {
				var batch []relay.Change
				for i := n; i < n+256 && i <= changes; i++ {
					batch = append(batch, relaytest.Change(i, fmt.Sprint("aggregate ", i%50)))
				}
				r.source.Add(batch...)
			}
			r.source.Fail(end)
			r.start(t)
			if killed < 3 {
				time.Sleep(time.Second)
				r.end(errors.New("killed"))
			}
			err := <-r.done
			for _, m := range r.topic.Messages() {
				if _, err := topic.Send(t.Context(), []contract.Message{m}); err != nil {
					t.Fatal(err)
				}
			}
			if reached = r.checkpoint.Last(); killed >= 3 && (!errors.Is(err, end) || reached != changes) {
				t.Fatalf("Run = %v with the checkpoint at %d, want the end of the source and %d", err, reached, changes)
			}
		}
		for aggregate := range 50 {
			name := fmt.Sprint("aggregate ", aggregate)
			if got := topic.Accepted(name); len(got) != changes/50 || !slices.IsSorted(got) {
				t.Errorf("%s has %d changes, want %d in order", name, len(got), changes/50)
			}
		}
	})
}
