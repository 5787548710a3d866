package scenario

import (
	"testing"
	"time"

	"changerelay/services/e2e/internal/harness/cluster"
)

// TestStop_OrderlyStopsLeaveNothingOnTheServers hands over from one publisher to
// the other and back, restarts every projector, and stops them all.
func TestStop_OrderlyStopsLeaveNothingOnTheServers(t *testing.T) {
	t.Parallel()
	r := start(t, nil)
	stop := r.writing(t, rate)
	term := int64(0)
	for range 2 * len(r.Publishers) {
		leader, now := r.sendingLeader(t, term)
		r.restart(t, leader)
		term = now
	}
	for _, projector := range r.Projectors {
		r.restart(t, projector)
	}
	_, last := r.sendingLeader(t, term)
	r.awaitSends(t, last, 200)
	stop()
	r.judge(t)
	for _, err := range r.witness.StopAtWork(within(t), r.writer, append(r.Publishers, r.Projectors...)...) {
		t.Error(err)
	}
	left, err := r.witness.AtStop(within(t), time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range left {
		if f.Count > 0 {
			t.Errorf("%s: got %d, want 0: %v", f.Name, f.Count, f.Samples)
		}
	}
	if len(left) == 0 {
		t.Error("nothing was looked at")
	}
}

// restart stops a service in good order and starts it again.
func (r *relay) restart(t *testing.T, n *cluster.Node) {
	t.Helper()
	for _, err := range cluster.Stop(within(t), n) {
		t.Fatal(err)
	}
	if err := n.Start(); err != nil {
		t.Fatal(err)
	}
}
