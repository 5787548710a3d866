package projector

import "changerelay/services/e2e/internal/campaign/mutation/guard"

// fillingGuards are the guards of what is resent for a version that is filled.
func fillingGuards() []guard.Guard {
	const (
		passed = "TestFilling_PassesByWhatWasDiscarded"
		waits  = "TestFilling_WaitsForADiscardedEventThatItMayApply"

		lost     = "TestRebuild_WhatWasResentAndIsLostOnItsWayIsMissed"
		accepted = "TestHoles_ALaterOneThanWasAcceptedIsMissed"
	)
	return []guard.Guard{
		{
			Name:    "rebuild: no other projection decides about what is resent for a version",
			File:    projection + "/change.go",
			Cut:     `if c.Fills == "" {`,
			With:    `if c.Fills != "never" {`,
			Package: delivery,
			Tests:   []string{"TestFilling_IsDecidedByTheVersionAlone"},
		},
		{
			Name:    "rebuild: a resent event that was discarded holds up nothing",
			File:    delivery + "/park.go",
			Cut:     "if err != nil || !discarded {",
			With:    `if err != nil || !discarded || it.fills != "" {`,
			Package: delivery,
			Tests:   []string{passed},
		},
		{
			Name:    "rebuild: a version is at what it has passed by since it was discarded",
			File:    delivery + "/park.go",
			Cut:     "{{Projection: it.fills, Keyed",
			With:    "{{Projection: b.aggregate, Keyed",
			Package: delivery,
			Tests:   []string{passed},
		},
		{
			Name:    "rebuild: a discarded event that the version may apply is waited for",
			File:    delivery + "/park.go",
			Cut:     "if !b.refused {",
			With:    "if b.rest == again {",
			Package: delivery,
			Tests:   []string{waits},
		},
		{
			Name:    "rebuild: a discarded event of which processes died is waited for",
			File:    delivery + "/batch.go",
			Cut:     "failure.Class == projection.Evaluate || failure.Class == projection.Store",
			With:    `failure.Class != ""`,
			Package: delivery,
			Tests:   []string{waits},
		},
		{
			Name:    "rebuild: a discarded event is waited for while the order of its aggregate is in doubt",
			File:    delivery + "/batch.go",
			Cut:     "failure.Class == projection.Evaluate || failure.Class == projection.Store",
			With:    "failure.Class != projection.Crash",
			Package: delivery,
			Tests:   []string{waits},
		},
		{
			Name:    "rebuild: a discarded event is waited for where a record of it is what is refused",
			File:    delivery + "/skip.go",
			Cut:     "name, !tried && r.Class",
			With:    "name, r.Class",
			Package: delivery,
			Tests:   []string{waits},
		},
		{
			Name:    "rebuild: a discarded event is waited for in doubt of its order without policies, too",
			File:    delivery + "/skip.go",
			Cut:     `!tried && r.Class != ""`,
			With:    "!tried",
			Package: delivery,
			Tests:   []string{waits},
		},
		{
			Name:    "rebuild: a discarded event that cannot be read is passed by",
			File:    delivery + "/project.go",
			Cut:     "b.refused = true",
			With:    "b.refused = false",
			Package: delivery,
			Tests:   []string{"TestFilling_PassesByWhatTheVersionRefuses"},
		},
		{
			Name:    "rebuild: what a version does not follow is passed by, also if processes died of it",
			File:    projection + "/policy.go",
			Cut:     `c.Fills != "" && !slices.Contains(names, c.Fills)`,
			With:    `c.Fills == "never"`,
			Package: projection,
			Tests:   []string{"TestPolicy_WhatAFilledVersionDoesNotFollowIsPassedBy"},
		},
		{
			Name:    "rebuild: the log says what lets a version go on that waits for an event",
			File:    delivery + "/park.go",
			Cut:     "onError: skip lets",
			With:    "something lets",
			Package: delivery,
			Tests:   []string{"TestFilling_SaysWhatEndsTheWait"},
		},
		{
			Name:    "rebuild: what is resent behind a hole is told from what follows",
			File:    rebuild + "/choice.go",
			Cut:     `reached != "" && reached < last {`,
			With:    `reached != "" && reached > last {`,
			Package: rebuild,
			Tests:   []string{"TestChoice_AVersionTakesALiveEventOnlyBehindTheOneBefore"},
		},
		{
			Name:    "rebuild: a hole that a version has gone over is listed, though it began before",
			File:    readmodel + "/begins.go",
			Cut:     "!l.Within && l.First <= l.Missing ||",
			With:    "l.First <= l.Missing ||",
			Package: readmodel,
			Tests:   []string{accepted},
		},
		{
			Name:    "rebuild: a hole is accepted, and not those that come later",
			File:    readmodel + "/begins.go",
			Cut:     "return max(l.First, l.Latest)",
			With:    "return l.First",
			Package: readmodel,
			Tests:   []string{accepted},
		},
		{
			Name:    "rebuild: a version that has gone over a hole is not switched to",
			File:    command + "/versions.go",
			Cut:     "if len(within) > 0 {",
			With:    "if len(within) > maxBehind {",
			Package: app,
			Tests:   []string{lost},
		},
		{
			Name:    "rebuild: a version that is dropped lacks nothing",
			File:    readmodel + "/rebuilds.go",
			Cut:     "lacks.Name(), lacksOf(v.Account()),",
			With:    `lacks.Name(), lacksOf(v.Account()+"\x00"),`,
			Package: app,
			Tests:   []string{lost},
		},
		{
			Name:    "rebuild: dead letters that were resent for a version are told from others",
			File:    command + "/holes.go",
			Cut:     "f.resent[fills]++",
			With:    "f.resent[fills] = 0",
			Package: app,
			Tests:   []string{lost},
		},
		{
			Name:    "rebuild: a dead letter that was resent for a version is judged by that alone",
			File:    delivery + "/putback.go",
			Cut:     `if Fills(l.Event.Resend, p.Gaps.Filling) != "" {`,
			With:    `if Fills(l.Event.Resend, p.Gaps.Filling) == "never" {`,
			Package: app,
			Tests:   []string{"TestRebuild_AHoleThatIsAcceptedIsNone"},
		},
		{
			Name:    "rebuild: a dead letter that was resent takes no place of a live event",
			File:    delivery + "/putback.go",
			Cut:     `return Return{l, ReturnRefused, fmt.Sprintf("it was resent for %q, which is filled and has not come to it`,
			With:    `return Return{l, ReturnParked, fmt.Sprintf("it was resent for %q, which is filled and has not come to it`,
			Package: delivery,
			Tests:   []string{"TestPutBack_WhatWasResentTakesNoPlaceOfALiveEvent"},
		},
		{
			Name:    "rebuild: what the publisher's command line leaves behind is no failure",
			File:    command + "/rebuildresend.go",
			Cut:     "errors.Is(err, exec.ErrWaitDelay)",
			With:    "errors.Is(err, exec.ErrDot)",
			Package: app,
			Tests:   []string{"TestRebuild_WhatThePublisherLeavesBehindIsNoFailure"},
		},
		{
			Name:    "rebuild: of two that begin at once each has its number",
			File:    readmodel + "/rebuilds.go",
			Cut:     `"$number:" + v.Account() }`,
			With:    `"$number:" + v.Account() + time.Now().String() }`,
			Package: app,
			Tests:   []string{"TestRebuild_OfTwoGroupsAtOnceEachHasItsNumber"},
		},
		{
			Name:    "rebuild: the doctor finds a filter that keeps out what fills a version",
			File:    internal + "doctor/subscription.go",
			Cut:     `, property + " LIKE '" + group + "/%'"}`,
			With:    `}`,
			Package: app,
			Tests:   []string{"TestDoctor_AFilterForOneGroupIsSound"},
		},
	}
}
