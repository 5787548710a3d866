package crashpoint

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"changerelay/services/e2e/internal/harness/cluster"
)

// However the seed draws, each step comes by that has to do with no resend.
func TestConfig_StepsOfTransactionsComeByInEveryMode(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"--plain"}, {"--seed", "1"}, {"--seed", "2"}, {"--seed", "3"}, {"--seed", "4"}} {
		c, err := Parse(args, os.Stderr)
		if err != nil {
			t.Fatal(err)
		}
		commits := slices.ContainsFunc(c.steps(), func(s Step) bool { return strings.HasPrefix(s.Name, "commit a batch") })
		if !commits || !c.mode().Keyed {
			t.Errorf("%q: a step of transactions %t, documents that are written in some %t, want both", args, commits, c.mode().Keyed)
		}
	}
}

func TestSteps_TheProofsSayHowManyThereAre(t *testing.T) {
	t.Parallel()
	root, err := cluster.Root()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, "docs", "proofs.md"))
	if err != nil {
		t.Fatal(err)
	}
	said := regexp.MustCompile(`SIGKILL at each of ([0-9]+) moments`).FindSubmatch(text)
	if said == nil || string(said[1]) != strconv.Itoa(len(Steps())) {
		t.Errorf("docs/proofs.md says %q, want %d moments", said, len(Steps()))
	}
}
