package scenario

import (
	"path/filepath"
	"testing"
	"time"

	"changerelay/services/e2e/internal/harness/clock"
	"changerelay/services/e2e/internal/harness/cluster"
)

// One publisher's clock is an hour ahead of the servers', the other's an hour
// behind, and each follows the other: the one ahead takes no lease before its
// time, and the one behind does not wait for hours.
func TestClock_PublishersWhoseClocksAreHoursApartFollowEachOther(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	root, err := cluster.Root()
	if err != nil {
		t.Fatal(err)
	}
	overlay, err := clock.Overlay(t.Context(), filepath.Join(dir, "clock"))
	if err != nil {
		t.Fatal(err)
	}
	clocked, err := cluster.BuildOver(t.Context(), root, filepath.Join(dir, "bin"), overlay)
	if err != nil {
		t.Fatal(err)
	}
	c := cluster.New(configure(t, nil))
	closeAtEnd(t, c)
	if err := c.StartServers(within(t)); err != nil {
		t.Fatal(err)
	}
	r := watched(t, c)
	clocks := map[*cluster.Node]clock.Wrong{
		c.Publishers[0]: {Ahead: time.Hour, Then: time.Hour},
		c.Publishers[1]: {Ahead: -time.Hour, Then: -time.Hour},
	}
	start := func(p *cluster.Node) {
		if err := p.StartAs(clocked.Publisher, clocks[p].Environment()...); err != nil {
			t.Fatal(err)
		}
	}
	for p := range clocks {
		start(p)
	}
	for _, p := range c.Projectors {
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
	}
	r.awaitWork(t)
	stop := r.writing(t, rate)
	var term int64
	for range 3 {
		var leader *cluster.Node
		leader, term = r.sendingLeader(t, term)
		r.awaitSends(t, term, 500)
		leader.Kill()
		r.leader(t, term)
		start(leader)
	}
	stop()
	r.judge(t)
}
