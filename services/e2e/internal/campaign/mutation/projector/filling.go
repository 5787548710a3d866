package projector

import "changerelay/services/e2e/internal/campaign/mutation/guard"

// fillingGuards are the guards of what is resent for a version that is filled.
func fillingGuards() []guard.Guard {
	const (
		passed = "TestFilling_PassesByWhatWasDiscarded"
		waits  = "TestFilling_WaitsForADiscardedEventThatItMayApply"
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
