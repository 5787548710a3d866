//go:build docker

package container

import (
	"slices"
	"testing"

	"changerelay/services/e2e/internal/harness/docker"
)

func TestRollout_ARollingRestartLosesNothing(t *testing.T) {
	s := start(t, 2)
	stop := s.writing(t)
	_, term := s.sendingLeader(t, 0, 100)
	for _, c := range s.publishers {
		terminate(t, c)
		must(t, c.Start())
		_, term = s.sendingLeader(t, term-1, 100)
	}
	for _, c := range s.projectors {
		terminate(t, c)
		must(t, c.Start())
		applies(t, c)
	}
	stop()
	s.judge(t)
}

func TestRollout_ScalingUnderLoadLosesNothing(t *testing.T) {
	s := start(t, 1)
	stop := s.writing(t)
	s.sendingLeader(t, 0, 100)
	s.addProjectors(t, 3)
	for _, c := range s.projectors {
		applies(t, c)
	}
	for _, c := range slices.Backward(s.projectors[1:]) {
		terminate(t, c)
	}
	s.progress(t, 300)
	stop()
	s.judge(t)
}

// terminate asks a container to stop, which it does in good order.
func terminate(t *testing.T, c *docker.Container) {
	t.Helper()
	if status, err := c.Terminate(within(t)); status != 0 || err != nil {
		t.Errorf("exit of %s after SIGTERM: got %d, %v, want 0", c.Name, status, err)
	}
}
