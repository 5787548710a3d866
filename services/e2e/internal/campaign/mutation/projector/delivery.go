package projector

import "changerelay/services/e2e/internal/campaign/mutation/guard"

// deliveryGuards are the guards between a message and its writes.
func deliveryGuards() []guard.Guard {
	return []guard.Guard{
		{
			Name:    "delivery: an event is applied only after the one with the version before it",
			File:    delivery + "/versions.go",
			Cut:     "n, gap, last = i, missing(last, items[i].event.Version), later(last, items[i].event.Version)",
			With:    "n, gap, last = i, \"\", later(last, items[i].event.Version)",
			Package: delivery,
			Tests:   []string{"TestGaps_AnEventWaitsForTheOneBeforeIt"},
		},
		{
			Name:    "delivery: what is stored before a failure has its version noted before it is settled",
			File:    delivery + "/write.go",
			Cut:     "unnoted := w.versions.reach(ctx, b.items[:stored])\n\tswitch {",
			With:    "var unnoted error\n\tif err == nil {\n\t\tunnoted = w.versions.reach(ctx, b.items[:stored])\n\t}\n\tswitch {",
			Package: delivery,
			Tests:   []string{"TestGaps_WhatIsStoredBeforeAFailureHasItsVersionNoted"},
		},
		{
			Name:    "delivery: nothing is settled before its version is noted",
			File:    delivery + "/write.go",
			Cut:     "b.fail(0, errors.Join(err, unnoted))",
			With:    "b.fail(stored, errors.Join(err, unnoted))",
			Package: delivery,
			Tests:   []string{"TestGaps_AVersionIsNotedOnlyAfterItIsStored"},
		},
		{
			Name:    "delivery: what closes a gap is settled only after what waited for it was applied",
			File:    delivery + "/park.go",
			Cut:     "\t\tb.verdicts = nil\n",
			With:    "",
			Package: delivery,
			Tests:   []string{"TestGaps_HoweverVersionsComeTheyAreAppliedInOrder"},
		},
		{
			Name:    "delivery: a redrive stops before a gap",
			File:    delivery + "/rehearsal.go",
			Cut:     "err = g.before(ctx, &change.Event); err != nil || reason != \"\"",
			With:    "err = g.before(ctx, &change.Event); err != nil",
			Package: delivery,
			Tests:   []string{"TestGaps_ARedriveStopsAtAGapUnlessGapsAreAccepted"},
		},
		{
			Name:    "delivery: verdicts only for what is stored",
			File:    delivery + "/write.go",
			Cut:     "stored = b.stored()",
			With:    "stored = b.end",
			Package: delivery,
			Tests:   []string{"TestDelivery_AFailureThatPassesGivesVerdictsOnlyForWhatIsStored", "TestReplay_AnyReplayEndsUpTheSame"},
		},
		{
			Name:    "delivery: what follows a halt is parked and not applied",
			File:    delivery + "/screen.go",
			Cut:     "case halted:",
			With:    "case halted && false:",
			Package: delivery,
			Tests:   []string{"TestHalts_NoReplicaAppliesWhatFollowsAHalt"},
		},
		{
			Name:    "delivery: a halted message is settled when every list names its aggregate",
			File:    delivery + "/park.go",
			Cut:     "if unknown := p.deps.Halts.settle(ctx, b.aggregate); unknown != nil {",
			With:    "if unknown := error(nil); unknown != nil {",
			Package: delivery,
			Tests:   []string{"TestHalts_NoReplicaAppliesWhatFollowsAHalt"},
		},
		{
			Name:    "delivery: a write says under which hold it is made",
			File:    delivery + "/project.go",
			Cut:     "writes[w].By = p.by",
			With:    "_ = w",
			Package: delivery,
			Tests:   []string{"TestHold_EachWriteSaysUnderWhichHoldItIsMade"},
		},
		{
			Name:    "delivery: a redrive keeps the mark until the halt is lifted",
			File:    delivery + "/redrive.go",
			Cut:     "writes[i].Halted = mark",
			With:    "_, _ = mark, i",
			Package: delivery,
			Tests:   []string{"TestRedrive_DocumentsAreMarkedUntilTheHaltIsLifted"},
		},
		{
			Name:    "resend: for another group it is passed by",
			File:    delivery + "/hold.go",
			Cut:     "case !ours:",
			With:    "case !ours && n == 0:",
			Package: delivery,
			Tests:   []string{"TestResent_ForAnotherGroupIsNotEvenRead"},
		},
	}
}
