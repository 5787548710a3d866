package speed

import (
	"context"
	"fmt"
	"maps"
	"time"

	"changerelay/services/e2e/internal/harness/cluster"
)

// publish runs publishers over all events, and counts from when the first of
// them leads. That is before it has opened the stream and connected to the
// broker, which is against it.
func (s *site) publish(ctx context.Context, publishers int, settings map[string]string) (took, error) {
	env := map[string]string{"START_AT": s.start.UTC().Format(time.RFC3339)}
	maps.Copy(env, settings)
	c, err := s.stage.Services(cluster.Config{
		Publishers: publishers, Lease: cluster.LeaseOf(15 * time.Second), Names: s.stage.Names(topic), Backend: &s.endpoints, PublisherEnv: env,
	})
	if err != nil {
		return took{}, err
	}
	defer c.Close()
	if err := c.StartServices(); err != nil {
		return took{}, err
	}
	cpu := func() (sum time.Duration) {
		for _, p := range c.Publishers {
			sum += p.Usage().CPU
		}
		return sum
	}
	t, err := s.sent(ctx, c, cpu)
	if err != nil {
		return took{}, fmt.Errorf("%w\n%s", err, c.Publishers[0].Log())
	}
	c.Close()
	for _, p := range c.Publishers {
		t.memory = max(t.memory, p.Usage().ResidentBytes)
	}
	return t, nil
}

// sent waits until everything is sent, by the publishers' word and by what waits in the
// subscription, which the broker tells.
func (s *site) sent(ctx context.Context, c *cluster.Cluster, cpu func() time.Duration) (took, error) {
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	var sinceLead func(int) took
	var tenth, nine took // when a tenth was sent, and nine of them
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return took{}, context.Cause(ctx)
		}
		sent := 0
		for _, p := range c.Publishers {
			status, err := p.PublisherStatus(ctx)
			if err == nil && status.Leads() && sinceLead == nil {
				sinceLead = since(cpu)
			}
			sent += int(status.Sent)
		}
		if sinceLead == nil {
			continue
		}
		now := sinceLead(sent)
		if tenth.events == 0 && sent >= s.total/10 {
			tenth = now
		}
		if nine.events == 0 && sent >= s.total*9/10 {
			nine = now
		}
		if sent < s.total {
			continue
		}
		waiting, err := s.stage.Waiting(ctx, topic, "projector")
		if err != nil {
			return took{}, err
		}
		if waiting > int64(s.total) {
			return took{}, fmt.Errorf("%d messages wait in the subscription, of %d events", waiting, s.total)
		}
		if now = sinceLead(s.total); waiting == int64(s.total) {
			now.growth = growth(tenth, nine, now)
			return now, nil
		}
	}
}

// startUp is more than the processor time of a publisher's start, which counts in
// the first tenth.
const startUp = 200 * time.Millisecond

// growth is the processor time of an event of the last tenth over that of one of
// the first; 0 where the tenths are too short to tell.
func growth(tenth, nine, all took) float64 {
	last := all.events - nine.events
	if last < all.events/20 || last <= 0 || tenth.events <= 0 || tenth.client < startUp {
		return 0
	}
	return (all.client - nine.client).Seconds() / float64(last) / (tenth.client.Seconds() / float64(tenth.events))
}
