package liars

import (
	"os/exec"
	"path"
	"slices"
	"testing"

	"changerelay/services/e2e/internal/check/validate"
	"changerelay/services/e2e/internal/check/witness"
	"changerelay/services/e2e/internal/harness/cluster"
)

func fault(name string) witness.Violation {
	return witness.Violation{Name: name, Findings: validate.Findings{Count: 1}}
}

func TestJudge_ALieMustBeFoundAndTheTruthLeftAlone(t *testing.T) {
	t.Parallel()
	lie, truth := Lie{Finds: []string{witness.UnlikeSource, witness.LostBeforeTopic}}, Lie{}
	tests := []struct {
		name  string
		lie   Lie
		found []witness.Violation
		good  bool
	}{
		{name: "a lie that is found", lie: lie, found: []witness.Violation{fault(witness.LostBeforeTopic), fault(witness.UnlikeSource), fault(witness.OutOfOrder)}, good: true},
		{name: "a lie of which half is found", lie: lie, found: []witness.Violation{fault(witness.LostBeforeTopic)}},
		{name: "a lie of which nothing is found", lie: lie},
		{name: "nothing found in the truth", lie: truth, good: true},
		{name: "something found in the truth", lie: truth, found: []witness.Violation{fault(witness.OutOfOrder)}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if err := tt.lie.judge(tt.found); (err == nil) != tt.good {
				t.Errorf("got %v, want an error: %v", err, !tt.good)
			}
		})
	}
}

// The places that are changed are in the sources of today, and the change fits there.
func TestLies_EachHasItsPlace(t *testing.T) {
	t.Parallel()
	root, err := cluster.Root()
	if err != nil {
		t.Fatal(err)
	}
	for _, lie := range Lies() {
		overlay, err := lie.Change.Overlay(root, t.TempDir())
		if err != nil {
			t.Errorf("%s: %v", lie.Name, err)
			continue
		}
		build := exec.CommandContext(t.Context(), "go", "build", "-overlay", overlay, "./"+path.Dir(lie.Change.File))
		build.Dir = root
		if output, err := build.CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s", lie.Name, err, output)
		}
		if len(lie.Finds) == 0 {
			t.Errorf("%s: nothing is to be found", lie.Name)
		}
	}
}

// A relay that lies is tried beside one that does not, in the same campaign.
func TestTruths_AreOfAllThatLiesAreTriedIn(t *testing.T) {
	t.Parallel()
	repairs := func(l Lie) bool { return l.Repairs }
	if !slices.ContainsFunc(truths(ofRepairs()), repairs) || slices.ContainsFunc(truths(ofEvents()), repairs) {
		t.Error("want operators who repair read models with the lies about these, and with no others")
	}
}
