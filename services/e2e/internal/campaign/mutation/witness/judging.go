package witness

import "changerelay/services/e2e/internal/campaign/mutation/guard"

// Judging are guards of what the judges excuse, and of what they must have looked at.
func Judging() []guard.Guard {
	const (
		witness = "services/e2e/internal/check/witness"
	)
	return []guard.Guard{
		{
			Name:    "witness: only a line about a stretch that is not sent forgives a loss",
			File:    witness + "/gaps.go",
			Cut:     "return g.passesOver() && ",
			With:    "return ",
			Package: witness,
			Tests:   []string{"TestForgive_TakesNothingForALineThatIsNoGap"},
		},
		{
			Name:    "witness: a line that accepts settings forgives no loss",
			File:    witness + "/gaps.go",
			Cut:     "return g.To.After(g.From) // at one time, it is the settings that are accepted",
			With:    "return true",
			Package: witness,
			Tests:   []string{"TestForgive_TakesNothingForALineThatIsNoGap"},
		},
		{
			Name:    "witness: a line of one partition forgives no loss of another",
			File:    witness + "/gaps.go",
			Cut:     "h.Sum64()%partitions == index",
			With:    "index < partitions",
			Package: witness,
			Tests:   []string{"TestForgive_TakesNothingForALineThatIsNoGap"},
		},
		{
			Name:    "witness: parked changes that are gone are forgiven by their names",
			File:    witness + "/decisions.go",
			Cut:     "if g.Decision == discarded || g.Decision == lost {",
			With:    "if g.Decision == discarded {",
			Package: witness,
			Tests:   []string{"TestForgive_TakesWhatAnOperatorHasLeftOut"},
		},
	}
}
