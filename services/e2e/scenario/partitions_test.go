package scenario

import (
	"context"
	"fmt"
	"testing"

	"changerelay/services/e2e/internal/check/witness"
	"changerelay/services/e2e/internal/harness/cluster"
)

func TestPartitions_PublishersShareThePartitionsOverAKillAndAReturn(t *testing.T) {
	t.Parallel()
	c := cluster.New(configure(t, func(c *cluster.Config) {
		c.PublisherEnv = map[string]string{"PARTITIONS": "4"}
	}))
	closeAtEnd(t, c)
	if err := c.StartServers(within(t)); err != nil {
		t.Fatal(err)
	}
	r := watched(t, c)
	if err := c.StartServices(); err != nil {
		t.Fatal(err)
	}
	r.awaitPublishing(t, 2, 2)
	stop := r.writing(t, rate)
	await(t, "events to be applied", r.appliedMore(500))
	r.Publishers[0].Kill()
	r.awaitPublishing(t, -1, 4)
	await(t, "the survivor to carry all partitions", r.appliedMore(1000))
	if err := r.Publishers[0].Start(); err != nil {
		t.Fatal(err)
	}
	r.awaitPublishing(t, 2, 2)
	await(t, "both to carry on", r.appliedMore(500))
	stop()
	// Each partition counts its own terms.
	r.judge(t, witness.OverlappingTerms)
}

// awaitPublishing waits until each publisher publishes as many partitions; -1
// asks nothing.
func (r *relay) awaitPublishing(t *testing.T, counts ...int) {
	t.Helper()
	for i, want := range counts {
		if want < 0 {
			continue
		}
		await(t, fmt.Sprintf("%s to publish %d partitions", r.Publishers[i].Name, want), func(ctx context.Context) (bool, string) {
			s, err := r.Publishers[i].PublisherStatus(ctx)
			return err == nil && s.Publishing() == want, fmt.Sprint(s.Publishing(), err)
		})
	}
}
