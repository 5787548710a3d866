package chaos

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"changerelay/services/e2e/internal/harness/cluster"
)

// moving answers the first command of a projector as a move does that is refused.
const moving = `#!/bin/sh
echo "$1" >> "$0.asked"
[ "$(wc -l < "$0.asked")" -gt 1 ] && exit 0
echo "projector: it is still in use: $REFUSED" >&2
exit 1
`

// Projectors that could not say goodbye count for a while after their end.
func TestMoveStopped_WaitsForWhoWasKilledJustNowAlone(t *testing.T) {
	t.Parallel()
	for refused, asked := range map[string]int{
		`1 projectors of the group "" live, or were killed less than 45s ago`: 2,
		"it is somebody else's": 1,
	} {
		dir := t.TempDir()
		binary := filepath.Join(dir, "projector")
		if err := os.WriteFile(binary, []byte(moving), 0o700); err != nil { //nolint:gosec // it is run
			t.Fatal(err)
		}
		c := &campaign{out: io.Discard, cluster: cluster.New(cluster.Config{
			Binaries: cluster.Binaries{Projector: binary}, Dir: dir, Backend: &cluster.Endpoints{}, Names: cluster.DefaultNames(), Projectors: 1,
			ProjectorEnv: map[string]string{"REFUSED": refused},
		})}
		if err := c.cluster.LayOut(); err != nil {
			t.Fatal(err)
		}
		_, err := c.moveStopped(t.Context(), c.cluster.Projectors[0], killedBefore, nil)
		if moved := asked == 2; (err == nil) != moved {
			t.Errorf("%s: got %v, want it moved: %t", refused, err, moved)
		}
		text, err := os.ReadFile(binary + ".asked")
		if got := strings.Count(string(text), "move"); err != nil || got != asked {
			t.Errorf("%s: asked %d times, %v, want %d", refused, got, err, asked)
		}
	}
}
