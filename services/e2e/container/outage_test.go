//go:build docker

package container

import (
	"context"
	"fmt"
	"testing"

	"changerelay/services/e2e/internal/check/witness"
	"changerelay/services/e2e/internal/harness/docker"
)

// A database that is away, and comes back under another address, holds the relay
// up and makes it lose nothing. Whoever led may be followed meanwhile.
func TestOutage_ADatabaseCutOffHoldsUpAndLosesNothing(t *testing.T) {
	s := start(t, 2)
	stop := s.writing(t)
	old, _ := s.sendingLeader(t, 0, 100)
	must(t, host.Database.Cut())
	// Its own clock ends the lead, for nobody can renew.
	await(t, "the leader to stop leading", func(ctx context.Context) (bool, string) {
		status, err := old.PublisherStatus(ctx)
		return err == nil && !status.Leads(), fmt.Sprint(status.Role, err)
	})
	must(t, host.Database.Heal())
	s.progress(t, 500)
	stop()
	s.judge(t, witness.OverlappingTerms)
}

func TestOutage_ABrokerCutOffHoldsUpAndLosesNothing(t *testing.T) {
	s := start(t, 2)
	stop := s.writing(t)
	leader, _ := s.sendingLeader(t, 0, 100)
	must(t, host.Broker.Cut())
	await(t, "the leader to stop sending, with changes in flight", stuck(leader))
	must(t, host.Broker.Heal())
	s.progress(t, 500)
	stop()
	s.judge(t, witness.OverlappingTerms)
}

// stuck asks whether a publisher has sent nothing between two questions, though
// there is something to send.
func stuck(c *docker.Container) func(context.Context) (bool, string) {
	last := int64(-1)
	return func(ctx context.Context) (bool, string) {
		s, err := c.PublisherStatus(ctx)
		same := err == nil && s.Sent == last && s.InFlight > 300
		last = s.Sent
		return same, fmt.Sprintf("%d sent, %d in flight, %v", s.Sent, s.InFlight, err)
	}
}
