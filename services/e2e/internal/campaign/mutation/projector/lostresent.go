package projector

import "changerelay/services/e2e/internal/campaign/mutation/guard"

// lostResentGuards are the guards that show what was resent for a version and was lost on its
// way.
func lostResentGuards() []guard.Guard {
	const (
		choice     = "TestChoice_AVersionTakesALiveEventOnlyBehindTheOneBefore"
		pastFilled = "TestPutBack_WhatAVersionThatIsFilledHasGonePastIsPutBackForTheOthers"
	)
	return []guard.Guard{
		{
			Name:    "commands: what is to be run is printed as it is",
			File:    command + "/scope.go",
			Cut:     "lines.SetEscapeHTML(false)",
			With:    "",
			Package: app,
			Tests:   []string{"TestDeadRedrive_PrintsWhatIsToBeRunAsItIs"},
		},
		{
			Name:    "rebuild: a first event that is lost is missed where the live document is lost, too",
			File:    rebuild + "/choice.go",
			Cut:     `begun != "" && begun <= e.Sequence`,
			With:    "begun <= e.Sequence",
			Package: rebuild,
			Tests:   []string{choice},
		},
		{
			Name:    "rebuild: an aggregate of which the source has no beginning lacks nothing where the live version has none either",
			File:    rebuild + "/choice.go",
			Cut:     `begun != "" && begun <= e.Sequence`,
			With:    `begun != "" && begun < e.Sequence`,
			Package: rebuild,
			Tests:   []string{choice},
		},
		{
			Name:    "rebuild: where a document began that an earlier release wrote is not known from the ledger",
			File:    rebuild + "/choice.go",
			Cut:     "known = false",
			With:    "known = true",
			Package: rebuild,
			Tests:   []string{choice},
		},
		{
			Name:    "rebuild: a last event that is lost is missed where the live document is lost, too",
			File:    rebuild + "/choice.go",
			Cut:     `takes && current == "" && reached != "" && reached < last`,
			With:    `!takes && current == "" && reached != "" && reached < last`,
			Package: rebuild,
			Tests:   []string{choice},
		},
		{
			Name:    "rebuild: only what the live version does not show is a last event that is lost",
			File:    rebuild + "/choice.go",
			Cut:     `takes && current == "" && reached != "" && reached < last`,
			With:    `takes && reached != "" && reached < last`,
			Package: rebuild,
			Tests:   []string{choice},
		},
		{
			Name:    "rebuild: a position says where its aggregate began",
			File:    readmodel + "/reached.go",
			Cut:     "First: at.First, ",
			With:    "",
			Package: readmodel,
			Tests:   []string{"TestStore_StoreConforms"},
		},
		{
			Name:    "rebuild: a cancel that asks no publisher says that the resend goes on",
			File:    command + "/rebuildsteps.go",
			Cut:     `if r.o.publisher == "" && !resent {`,
			With:    `if r.o.publisher == "" && resent {`,
			Package: app,
			Tests:   []string{"TestRebuild_GivenUpLeavesNothing"},
		},
		{
			Name:    "incomplete: what is missing before what was accepted is said",
			File:    readmodel + "/begins.go",
			Cut:     " && l.Missing >= l.AcceptedFrom",
			With:    "",
			Package: readmodel,
			Tests:   []string{"TestHoles_WhatIsMissingBeforeWhatWasAcceptedIsMissed"},
		},
		{
			Name:    "rebuild: a dead letter that was resent for somebody else is put back nowhere",
			File:    delivery + "/putback.go",
			Cut:     "!Meant(l.Event.Resend, p.Group,",
			With:    "!Meant(l.Event.Resend, l.Event.Resend.Group,",
			Package: delivery,
			Tests:   []string{"TestPutBack_WhatWasResentForSomebodyElseIsNobodysHere"},
		},
		{
			Name:    "rebuild: what one that was cancelled has left in the dead letters speaks against none",
			File:    command + "/holes.go",
			Cut:     "!delivery.Meant(resend, f.of.group,",
			With:    "!delivery.Meant(resend, resend.Group,",
			Package: app,
			Tests:   []string{"TestRebuild_WhatACancelledOneHasLeftInTheDeadLettersSpeaksAgainstNone"},
		},
		{
			Name:    "dead letters: one that stands in the way of the rebuild which brings its event is removed first",
			File:    delivery + "/putback.go",
			Cut:     `if beyond != "" && l.Reason == ReasonNotApplied { // which`,
			With:    `if beyond != "" { // which`,
			Package: delivery,
			Tests:   []string{"TestPutBack_SaysWhatComesFirstWhereAnEventWasOvertaken"},
		},
		{
			Name:    "dead letters: a state of a document is not missed once a later one is there",
			File:    delivery + "/putback.go",
			Cut:     `case beyond != "" && !change.Version.Known:`,
			With:    `case beyond != "" && beyond == other:`,
			Package: delivery,
			Tests:   []string{"TestPutBack_AStateThatALaterOneHasFollowedIsSettled"},
		},
		{
			Name:    "dead letters: an id that a shell would run is in quotes",
			File:    delivery + "/putback.go",
			Cut:     "shell.Word(l.Event.AggregateID)",
			With:    "l.Event.AggregateID",
			Package: delivery,
			Tests:   []string{"TestPutBack_WhatWasResentTakesNoPlaceOfALiveEvent"},
		},
		{
			Name:    "rebuild: a version that begins later is begun again",
			File:    command + "/versions.go",
			Cut:     "from, firstOf(begun), way))",
			With:    "from, firstOf(begun), delivery.Rebuild))",
			Package: app,
			Tests:   []string{"TestRebuild_AVersionThatBeginsLaterIsBegunAgain"},
		},
		{
			Name:    "dead letters: one that a version which is filled has gone past is put back for the others",
			File:    delivery + "/putback.go",
			Cut:     "case !w.Changes(), f != nil && f.Has(w.Projection):",
			With:    "case !w.Changes():",
			Package: delivery,
			Tests:   []string{pastFilled},
		},
		{
			Name:    "dead letters: what is put back is applied where a version that is filled has gone past it",
			File:    delivery + "/lost.go",
			Cut:     "compare(ctx, parked, writes, nil, g.Filling)",
			With:    "compare(ctx, parked, writes, nil, nil)",
			Package: delivery,
			Tests:   []string{pastFilled},
		},
	}
}
