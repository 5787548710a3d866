package chaos

import (
	"io"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"changerelay/services/e2e/internal/harness/cluster/clustertest"
)

// withStandIns is a campaign whose services end with the status when they are asked to stop.
func withStandIns(t *testing.T, status int) *campaign {
	t.Helper()
	return &campaign{out: io.Discard, taken: map[string]bool{}, cluster: clustertest.StandIns(t, status)}
}

func TestEndings_AServiceThatStopsWithAFailureIsFound(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]int{0: 0, 1: 1, 2: 1} {
		for name, stop := range map[string]func(*campaign) error{
			"a stop": func(c *campaign) error { return c.halt(t.Context(), c.cluster.Projectors[0]) },
			"SIGTERM": func(c *campaign) error {
				_, undo, err := terminate(projector)(t.Context(), c, rand.New(rand.NewPCG(1, 1)))
				if err == nil {
					err = undo(t.Context())
				}
				return err
			},
		} {
			c := withStandIns(t, status)
			clustertest.Up(t, c.cluster.Projectors[0])
			if err := stop(c); err != nil || len(c.vanished) != want {
				t.Errorf("%s, status %d: got %q, %v; want %d", name, status, c.vanished, err, want)
			}
		}
	}
}

func TestEndings_AServiceThatIsGoneBeforeItIsStoppedIsFound(t *testing.T) {
	t.Parallel()
	c := withStandIns(t, 0)
	n := c.cluster.Publishers[0]
	clustertest.Up(t, n)
	n.Kill()
	if err := c.halt(t.Context(), n); err != nil || len(c.vanished) != 1 {
		t.Errorf("got %q, %v; want the one that is gone", c.vanished, err)
	}
}

func TestEndings_OnlyARefusalOfSettingsIsNoFault(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]int{refused: 0, 0: 1, 2: 1} {
		c := withStandIns(t, status)
		n := c.cluster.Publishers[0]
		clustertest.Up(t, n)
		if err := n.Terminate(); err != nil {
			t.Fatal(err)
		}
		if _, err := n.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := c.redeploy(t.Context()); err != nil || len(c.vanished) != want {
			t.Errorf("status %d: got %q, %v; want %d", status, c.vanished, err, want)
		}
	}
}

// What was opened after the last kill, or cut, nobody may leave behind.
func TestLastBlow_IsTheEndOfWhatMayLeaveCursorsBehind(t *testing.T) {
	t.Parallel()
	at := func(second int) time.Time { return time.Date(2026, 1, 1, 0, 0, second, 0, time.UTC) }
	const command = "operator: checkpoint reset"
	for name, test := range map[string]struct {
		operators string
		kinds     []string // of which each ends a second later
		killed    time.Time
		want      time.Time
	}{
		"nothing":                        {"", nil, time.Time{}, time.Time{}},
		"faults":                         {"", []string{killedLeader, "cut connection"}, time.Time{}, at(1)},
		"operators who kill nobody":      {"all", []string{command}, time.Time{}, time.Time{}},
		"operators who kill a publisher": {"all", []string{anotherState, command}, time.Time{}, at(0)},
		"a service that does not stop":   {"all", []string{anotherState, command}, at(5), at(5)},
	} {
		c := &campaign{cfg: Config{Operators: test.operators}, killed: test.killed}
		for i, kind := range test.kinds {
			c.sufferings = append(c.sufferings, suffering{kind: kind, to: at(i)})
		}
		if !test.want.IsZero() {
			test.want = test.want.Add(2 * serversWrong)
		}
		if got := c.lastBlow(); !got.Equal(test.want) {
			t.Errorf("%s: got %v, want %v", name, got, test.want)
		}
	}
	for _, kind := range killing {
		if !slices.ContainsFunc(operators(), func(f fault) bool { return f.name == kind }) {
			t.Errorf("%q is no mistake", kind)
		}
	}
}
