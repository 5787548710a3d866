package witness

import "changerelay/services/e2e/internal/campaign/mutation/guard"

// Forgiving are guards of what need not come since operators have left it out.
func Forgiving() []guard.Guard {
	const (
		witness = "services/e2e/internal/check/witness"
		chaos   = "services/e2e/internal/campaign/chaos"
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
			Cut:     "return g.To.After(g.From)",
			With:    "return true",
			Package: witness,
			Tests:   []string{"TestForgive_TakesNothingForALineThatIsNoGap"},
		},
		{
			Name:    "witness: no line forgives what its stream had passed",
			File:    witness + "/gaps.go",
			Cut:     " && !at.Before(g.passed)",
			Package: witness,
			Tests:   []string{"TestForgive_TakesNothingThatACheckpointHadPassed"},
		},
		{
			Name:    "witness: a line that is announced forgives no loss",
			File:    witness + "/gaps.go",
			Cut:     " && !g.Unfinished",
			Package: witness,
			Tests:   []string{"TestForgive_TakesNothingThatACheckpointHadPassed"},
		},
		{
			Name:    "witness: a line of the ledger is held against the cluster time of a change",
			File:    witness + "/gaps.go",
			Cut:     "at, known = w.documents.writtenAt(e)",
			With:    "at, known = w.Ledger.WrittenAt(e.Aggregate, e.Version)",
			Package: witness,
			Tests:   []string{"TestForgive_GoesByTheClusterTimeOfChangesThatAreDocuments"},
		},
		{
			Name:    "witness: a cluster time that was seen is held against the ledger without slack",
			File:    witness + "/gaps.go",
			Cut:     "return at, 0, known",
			With:    "return at, gapSlack, known",
			Package: witness,
			Tests:   []string{"TestForgive_GoesByTheClusterTimeOfChangesThatAreDocuments"},
		},
		{
			Name:    "witness: a line that no command has made forgives no loss",
			File:    witness + "/gaps.go",
			Cut:     "case made(g, done.Moves):",
			With:    "case made(g, done.Moves), g.operators():",
			Package: witness,
			Tests:   []string{"TestForgive_TakesNothingForALineOfNoCommand"},
		},
		{
			Name:    "witness: a line that no command has made is found",
			File:    witness + "/gaps.go",
			Cut:     "\t\t\tunknown.Add(\"%s to %s of %q (%s), by no command\", g.From.Format(time.TimeOnly), g.To.Format(time.TimeOnly), g.Stream, g.Decision)\n",
			Package: witness,
			Tests:   []string{"TestForgive_TakesNothingForALineOfNoCommand"},
		},
		{
			Name:    "witness: a line is of the command that ran when it was made",
			File:    witness + "/doings.go",
			Cut:     " && !g.At.Before(m.From.Truncate(time.Millisecond)) && !g.At.After(m.To)",
			Package: witness,
			Tests:   []string{"TestForgive_TakesNothingForALineOfNoCommand"},
		},
		{
			Name:    "witness: a line is of the command that decides it",
			File:    witness + "/doings.go",
			Cut:     "m.Decision == g.Decision && ",
			Package: witness,
			Tests:   []string{"TestForgive_TakesNothingForALineOfNoCommand"},
		},
		{
			Name:    "witness: a ledger's line about an aggregate forgives what was deleted alone",
			File:    witness + "/decisions.go",
			Cut:     "how.Deleted && d.aggregates",
			With:    "d.aggregates",
			Package: witness,
			Tests:   []string{"TestForgive_TakesWhatAnOperatorHasLeftOut"},
		},
		{
			Name:    "witness: what another group leaves out is its own",
			File:    witness + "/decisions.go",
			Cut:     "d, there := groups[line.Group]",
			With:    "d, there := groups[ownGroup]",
			Package: witness,
			Tests:   []string{"TestForgive_TakesWhatAnOperatorHasLeftOut"},
		},
		{
			Name:    "witness: a parked change that a line names is one that somebody has given up",
			File:    witness + "/decisions.go",
			Cut:     "\t\t\tfound.Add(\"parked change %s\", id)\n",
			Package: witness,
			Tests:   []string{"TestForgive_TakesWhatAnOperatorHasLeftOut"},
		},
		{
			Name:    "witness: an aggregate of which a line says that messages are gone is one of which some are",
			File:    witness + "/decisions.go",
			Cut:     "\t\t\tfound.Add(\"messages of %s that are gone\", aggregate)\n",
			Package: witness,
			Tests:   []string{"TestForgive_TakesWhatAnOperatorHasLeftOut"},
		},
		{
			Name:    "chaos: what is discarded is given up by the group that has parked it",
			File:    chaos + "/aside.go",
			Cut:     "c.giveUp(n.Settings()[readModelGroup], ",
			With:    "c.giveUp(ownGroup, ",
			Package: chaos,
			Tests:   []string{"TestDiscard_IsNotedOfTheGroupThatHasParkedIt"},
		},
		{
			Name:    "chaos: an event whose id looks like a flag can be discarded",
			File:    chaos + "/aside.go",
			Cut:     "\"discard\", \"--\", o.aggregate, event}",
			With:    "\"discard\", o.aggregate, event}",
			Package: chaos,
			Tests:   []string{"TestDiscard_IsNotedOfTheGroupThatHasParkedIt"},
		},
		{
			Name:    "chaos: how an event was given up is not forgotten",
			File:    chaos + "/doings.go",
			Cut:     "slices.Concat(before.Changes, how.Changes), Deleted: before.Deleted || how.Deleted",
			With:    "slices.Concat(how.Changes, before.Changes[:0]), Deleted: how.Deleted",
			Package: chaos,
			Tests:   []string{"TestGiveUp_KeepsHowAnEventWasGivenUp"},
		},
		{
			Name:    "witness: parked changes that are gone are forgiven by their names",
			File:    witness + "/decisions.go",
			Cut:     "\t\tcase lost:\n\t\t\tadd(listedLost.FindStringSubmatch(g.Error), \", \")\n",
			Package: witness,
			Tests:   []string{"TestForgive_TakesWhatAnOperatorHasLeftOut"},
		},
	}
}
