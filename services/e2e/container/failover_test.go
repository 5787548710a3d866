//go:build docker

package container

import (
	"testing"

	"changerelay/services/e2e/internal/check/witness"
)

func TestFailover_AKilledLeaderIsFollowed(t *testing.T) {
	s := start(t, 2)
	stop := s.writing(t)
	old, term := s.sendingLeader(t, 0, 100)
	must(t, old.Kill())
	s.sendingLeader(t, term, 100)
	must(t, old.Start())
	standsBy(t, old)
	stop()
	s.judge(t)
}

func TestFailover_AFrozenLeaderMovesNothingBack(t *testing.T) {
	s := start(t, 2)
	stop := s.writing(t)
	old, term := s.sendingLeader(t, 0, 100)
	must(t, old.Pause())
	s.sendingLeader(t, term, 300)
	must(t, old.Resume())
	standsBy(t, old)
	s.progress(t, 300)
	stop()
	// What the frozen process had on the wire may still arrive: that is allowed,
	// and must change nothing.
	s.judge(t, witness.OverlappingTerms)
}

func TestFailover_ALeaderCutOffIsFollowedAndComesBackAsStandby(t *testing.T) {
	s := start(t, 2)
	stop := s.writing(t)
	old, term := s.sendingLeader(t, 0, 100)
	must(t, old.Cut())
	s.sendingLeader(t, term, 300)
	must(t, old.Heal())
	standsBy(t, old)
	s.progress(t, 300)
	stop()
	s.judge(t, witness.OverlappingTerms)
}

func TestFailover_AProjectorCutOffLosesItsSessionsAndNothingElse(t *testing.T) {
	s := start(t, 2)
	stop := s.writing(t)
	victim := s.projectors[0]
	applies(t, victim)
	must(t, victim.Cut())
	before, err := victim.ProjectorStatus(within(t))
	must(t, err)
	s.progress(t, 500)
	after, err := victim.ProjectorStatus(within(t))
	must(t, err)
	if after.Applied != before.Applied {
		t.Errorf("applied by the projector that is cut off: got %d events, want none", after.Applied-before.Applied)
	}
	must(t, victim.Heal())
	s.progress(t, 500)
	stop()
	s.judge(t)
}

func TestFailover_AKilledProjectorLosesAndDoublesNothing(t *testing.T) {
	s := start(t, 2)
	stop := s.writing(t)
	victim := s.projectors[0]
	applies(t, victim)
	must(t, victim.Kill())
	s.progress(t, 500)
	must(t, victim.Start())
	applies(t, victim)
	stop()
	s.judge(t)
}
