package projector

import "changerelay/services/e2e/internal/campaign/mutation/guard"

// fillingGuards are the guards of what is resent for a version that is filled.
func fillingGuards() []guard.Guard {
	const passed = "TestFilling_PassesByWhatWasDiscarded"
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
			Cut:     `"$number:" + v.Account()`,
			With:    `"$number:" + by + time.Now().String()`,
			Package: app,
			Tests:   []string{"TestRebuild_OfTwoGroupsAtOnceEachHasItsNumber"},
		},
	}
}
