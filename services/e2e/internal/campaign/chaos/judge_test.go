package chaos

import (
	"slices"
	"testing"

	"changerelay/services/e2e/internal/check/witness"
)

// Mistakes that leave checkpoints alone allow no more than faults do.
func TestOperatorsMean_WhatAMovedCheckpointBringsAboutWhereOneWasMoved(t *testing.T) {
	t.Parallel()
	for _, f := range slices.Concat(operators(), restores(), []fault{{name: advised}}) {
		c := &campaign{cfg: Config{Operators: "all"}, done: map[string]int{f.name: 1}}
		moves := slices.Contains(movesCheckpoints, f.name)
		for _, kind := range operatorsMay {
			if got := c.operatorsMean(kind) != ""; got != moves {
				t.Errorf("%s, after %q: got it allowed: %t, want %t", kind, f.name, got, moves)
			}
		}
		if c.operatorsMean(witness.LedgerGaps) == "" || c.operatorsMean(witness.LostBeforeTopic) != "" {
			t.Errorf("after %q: got gaps in the ledger not allowed, or a loss, want the first alone", f.name)
		}
	}
	for _, name := range []string{"operator: parked message discarded", "operator: checkpoint set into the future", "operator: start in the future", "operator: projectors moved", groupBeside, "operator: replay of what is parked"} {
		if slices.Contains(movesCheckpoints, name) {
			t.Errorf("%q is among what moves checkpoints", name)
		}
	}
	for _, name := range movesCheckpoints {
		known := func(f fault) bool { return f.name == name }
		if name != advised && !slices.ContainsFunc(slices.Concat(operators(), restores()), known) {
			t.Errorf("%q is no mistake", name)
		}
	}
	faults := &campaign{done: map[string]int{"SIGKILL of the leader": 1}}
	if why := faults.operatorsMean(witness.OutOfOrder); why != "" {
		t.Errorf("without operators: got %q, want nothing allowed", why)
	}
}
