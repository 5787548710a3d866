package projector

import "changerelay/services/e2e/internal/campaign/mutation/guard"

// verifyGuards are the guards of the comparison with the source, and of what mends single
// aggregates.
func verifyGuards() []guard.Guard {
	const (
		moves    = "TestVerify_ADocumentMayMoveOnAtAnyMoment"
		stays    = "TestVerify_ReportsWhatStaysWrong"
		states   = "TestVerify_OfStatesWaitsUntilBothAgree"
		mends    = "TestMend_LosesNothingThatComesMeanwhile"
		byHand   = "TestVerify_FindsWhatWasDoneByHandAndOffersWhatMendsIt"
		kept     = "TestVerify_OfAFileComparesWhatHasNotChangedSince"
		halted   = "TestVerify_MendsAHaltedAggregateUpToItsHaltWhereThatIsWanted"
		leaves   = "TestVerify_RemovesWhatADeadRunHasLeft"
		replaces = "TestReplace_ChangesNothingThatHasMovedOn"
		rebuilt  = "TestVerify_ComparesWhatReadersSee"
	)
	return []guard.Guard{
		{
			Name:    "verify: documents are read before the source",
			File:    verify + "/look.go",
			Cut:     "\t\tif err := l.begin(ctx); err != nil {\n\t\t\treturn err\n\t\t}\n\t\tl.accounts = nil",
			With:    "\t\tdefer func() { l.accounts = nil }()",
			Package: verify,
			Tests:   []string{moves},
		},
		{
			Name:    "verify: what looks different in passing is looked at carefully",
			File:    verify + "/verify.go",
			Cut:     "\t\t\treturn r.doubt(ctx, aggregate)\n\t\t}\n\t\treturn nil\n\t})\n\tif err",
			With:    "\t\t\treturn r.conclude(aggregate, verdicts)\n\t\t}\n\t\treturn nil\n\t})\n\tif err",
			Package: verify,
			Tests:   []string{moves},
		},
		{
			Name:    "verify: a document is compared at its position",
			File:    verify + "/look.go",
			Cut:     "return e.Sequence <= s.read.Sequence",
			With:    "return true",
			Package: verify,
			Tests:   []string{stays},
		},
		{
			Name:    "verify: what may be right a moment later is looked at again",
			File:    verify + "/verify.go",
			Cut:     "\t\treturn !v.versioned\n\t}\n\treturn true",
			With:    "\t\treturn !v.versioned\n\t}\n\treturn false",
			Package: verify,
			Tests:   []string{stays},
		},
		{
			Name:    "verify: what changes with every look is not said to be wrong",
			File:    verify + "/verify.go",
			Cut:     "(known.at == nil || known.at[i] != v.Sequence)",
			With:    `(known.at == nil || known.at[i] == "never")`,
			Package: verify,
			Tests:   []string{states},
		},
		{
			Name:    "verify: documents are found of which the source has nothing",
			File:    verify + "/verify.go",
			Cut:     "if r.note(aggregate) {",
			With:    "if r.note(aggregate) && false {",
			Package: app,
			Tests:   []string{byHand},
		},
		{
			Name:    "verify: a position that the source does not have is a difference",
			File:    verify + "/judge.go",
			Cut:     `s.read.Raw != nil && a.last != "" && s.read.Sequence > a.last`,
			With:    `s.read.Raw != nil && a.last == "never" && s.read.Sequence > a.last`,
			Package: app,
			Tests:   []string{byHand},
		},
		{
			Name:    "verify: what has changed since a file was made is not compared with it",
			File:    verify + "/judge.go",
			Cut:     "if l.config.Kept && a.since(s, &made) {",
			With:    "if l.config.Kept && a.since(s, &made) && false {",
			Package: app,
			Tests:   []string{kept},
		},
		{
			Name:    "verify: events without their end are not all of them",
			File:    command + "/verifysource.go",
			Cut:     "return unmappable, errCutShort",
			With:    "return unmappable, nil",
			Package: app,
			Tests:   []string{kept, leaves},
		},
		{
			Name:    "verify: a discarded event is in no document",
			File:    verify + "/look.go",
			Cut:     "if l.discarded[e.ID] {",
			With:    "if l.discarded[e.ID] && false {",
			Package: app,
			Tests:   []string{halted},
		},
		{
			Name:    "verify: what is behind the event of a halt is left to its redrive",
			File:    verify + "/look.go",
			Cut:     `return a.haltedAt == "" || e.Sequence < a.haltedAt`,
			With:    `return a.haltedAt == "" || e.Sequence != a.haltedAt`,
			Package: verify,
			Tests:   []string{"TestMend_StopsWhereAnAggregateIsHalted"},
		},
		{
			Name:    "verify: a document that has moved on is not replaced",
			File:    readmodel + "/recompute.go",
			Cut:     "|| now.Sequence != read.Sequence {",
			With:    `|| now.Sequence == "never" {`,
			Package: readmodel,
			Tests:   []string{replaces},
		},
		{
			Name:    "verify: a document that is replaced goes on to say that its aggregate is halted",
			File:    readmodel + "/recompute.go",
			Cut:     "mark, marked = value, true",
			With:    "mark, marked = value, false",
			Package: readmodel,
			Tests:   []string{replaces},
		},
		{
			Name:    "verify: a document that is made anew says that its aggregate is halted",
			File:    readmodel + "/recompute.go",
			Cut:     "mark, marked = markOf(h), true",
			With:    "mark, marked = markOf(h), false",
			Package: readmodel,
			Tests:   []string{replaces},
		},
		{
			Name:    "verify: what was taken for a repeat of a position that was too high is brought in",
			File:    verify + "/mend.go",
			Cut:     "m.brought[aggregate] >= enough:",
			With:    "m.brought[aggregate] > 0:",
			Package: verify,
			Tests:   []string{mends},
		},
		{
			Name:    "verify: nothing is replaced by what is left of an aggregate",
			File:    verify + "/mend.go",
			Cut:     "case v.Difference != Equal && !v.Whole() && !m.config.Partly:",
			With:    "case v.Difference != Equal && !v.Whole() && !m.config.Partly && false:",
			Package: verify,
			Tests:   []string{"TestMend_OfWhatIsLeftOfAnAggregate"},
		},
		{
			Name:    "verify: what a dead run has left is removed",
			File:    readmodel + "/recompute.go",
			Cut:     "time.Now().Add(-recomputedFor)",
			With:    "time.Now().Add(-24 * recomputedFor)",
			Package: app,
			Tests:   []string{leaves},
		},
		{
			Name:    "verify: what another run works with is left to it",
			File:    readmodel + "/recompute.go",
			Cut:     "time.Now().Add(-recomputedFor)",
			With:    "time.Now()",
			Package: app,
			Tests:   []string{leaves},
		},
		{
			Name:    "verify: a version that readers do not see is not compared",
			File:    command + "/verify.go",
			Cut:     "case live != 0 && live != v.Number:",
			With:    "case live == -1:",
			Package: app,
			Tests:   []string{rebuilt},
		},
		{
			Name:    "verify: what a rebuild has changed meanwhile is not said to be compared",
			File:    command + "/verify.go",
			Cut:     "if err == nil && records.Signature(s.declared) != s.records.Signature(s.declared) {",
			With:    "if err == nil && false && records.Signature(s.declared) != s.records.Signature(s.declared) {",
			Package: app,
			Tests:   []string{rebuilt},
		},
		{
			Name:    "verify: a halted aggregate is left to its redrive",
			File:    verify + "/mend.go",
			Cut:     "v.Difference != Behind && v.stopped",
			With:    "v.Difference != Behind && v.stopped && v.Mendable()",
			Package: verify,
			Tests:   []string{"TestMend_StopsWhereAnAggregateIsHalted"},
		},
		{
			Name:    "verify: nothing goes beyond an event that cannot be applied",
			File:    verify + "/mend.go",
			Cut:     `if v.ahead != "" && `,
			With:    `if v.ahead == "never" && `,
			Package: verify,
			Tests:   []string{"TestMend_LeavesWhatMayBeTheBetterDocument"},
		},
		{
			Name:    "verify: a version that is missing in the middle is no event that never was",
			File:    verify + "/judge.go",
			Cut:     "case a.lacks > 0:",
			With:    "case a.lacks < 0:",
			Package: verify,
			Tests:   []string{"TestMend_LeavesWhatMayBeTheBetterDocument"},
		},
		{
			Name:    "verify: what was discarded may be in the document",
			File:    verify + "/judge.go",
			Cut:     "case a.discarded > 0:",
			With:    "case a.discarded < 0:",
			Package: verify,
			Tests:   []string{"TestMend_LeavesWhatMayBeTheBetterDocument"},
		},
		{
			Name:    "verify: events of another source are not the document's",
			File:    verify + "/judge.go",
			Cut:     "case is && source != a.source:",
			With:    "case is && source == \"\":",
			Package: verify,
			Tests:   []string{"TestMend_LeavesWhatMayBeTheBetterDocument"},
		},
	}
}
