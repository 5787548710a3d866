package projector

import "changerelay/services/e2e/internal/campaign/mutation/guard"

// deliveryGuards are the guards between a message and its writes.
func deliveryGuards() []guard.Guard {
	return []guard.Guard{
		{
			Name:    "delivery: an event is applied only after the one with the version before it",
			File:    delivery + "/gaps.go",
			Cut:     "if gap := missing(last, next); gap != \"\" {",
			With:    "if gap := missing(last, next); false {",
			Package: delivery,
			Tests:   []string{"TestGaps_AnEventWaitsForTheOneBeforeIt"},
		},
		{
			Name:    "delivery: what is stored before a failure has its version noted before it is settled",
			File:    delivery + "/delivery.go",
			Cut:     "if unnoted := h.reach(ctx, b, stored); unnoted != nil {",
			With:    "if unnoted := error(nil); unnoted != nil {",
			Package: delivery,
			Tests:   []string{"TestGaps_WhatIsStoredBeforeAFailureHasItsVersionNoted"},
		},
		{
			Name:    "delivery: nothing is settled before its version is noted",
			File:    delivery + "/delivery.go",
			Cut:     "if err := h.reach(ctx, b, failed); err != nil {\n\t\treturn nil, err",
			With:    "if err := h.reach(ctx, b, failed); err != nil {\n\t\treturn h.done(b, failed), err",
			Package: delivery,
			Tests:   []string{"TestGaps_AVersionIsNotedOnlyAfterItIsStored"},
		},
		{
			Name:    "delivery: what closes a gap is settled only after what waited for it was applied",
			File:    delivery + "/gaps.go",
			Cut:     "case err != nil:\n\t\treturn nil, err",
			With:    "case err != nil:\n\t\treturn verdicts, err",
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
			File:    delivery + "/delivery.go",
			Cut:     "stored := b.stored(n)",
			With:    "stored := n",
			Package: delivery,
			Tests:   []string{"TestDelivery_AFailureThatPassesGivesVerdictsOnlyForWhatIsStored", "TestReplay_AnyReplayEndsUpTheSame"},
		},
		{
			Name:    "delivery: what follows a halt is parked and not applied",
			File:    delivery + "/delivery.go",
			Cut:     "if halted {",
			With:    "if halted && false {",
			Package: delivery,
			Tests:   []string{"TestHalts_NoReplicaAppliesWhatFollowsAHalt"},
		},
		{
			Name:    "delivery: a halted message is settled when every list names its aggregate",
			File:    delivery + "/park.go",
			Cut:     "if unknown := h.halts.settle(ctx, h.aggregate); unknown != nil {",
			With:    "if unknown := error(nil); unknown != nil {",
			Package: delivery,
			Tests:   []string{"TestHalts_NoReplicaAppliesWhatFollowsAHalt"},
		},
		{
			Name:    "delivery: a write says under which hold it is made",
			File:    delivery + "/delivery.go",
			Cut:     "writes[i].By = h.by",
			With:    "_ = i",
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
			File:    delivery + "/resent.go",
			Cut:     "for count < len(messages) && !h.forUs(&messages[count]) {",
			With:    "for count < 0 && !h.forUs(&messages[count]) {",
			Package: delivery,
			Tests:   []string{"TestResent_ForAnotherGroupIsNotEvenRead"},
		},
	}
}
