package publisher

import "changerelay/services/e2e/internal/campaign/mutation/guard"

func relayGuards() []guard.Guard {
	return []guard.Guard{
		{
			Name:    "relay: one send in flight in a lane",
			File:    relay + "/lanes.go",
			Cut:     "held.tail.next = it\n\t\theld.tail = it\n\t\treturn",
			With:    "held.tail.next = it\n\t\theld.tail = it\n\t\tl.ready <- held\n\t\treturn",
			Package: relay,
			Tests:   []string{"TestRelay_AnAggregateIsSentInBatchesOneAtATime", "TestFailure_EveryScheduleKeepsOrderAndLosesNothing"},
		},
		{
			Name:    "relay: what was not accepted stays at the front",
			File:    relay + "/send.go",
			Cut:     "done := min(p.count, n)",
			With:    "done := p.count",
			Package: relay,
			Tests:   []string{"TestFailure_EveryScheduleKeepsOrderAndLosesNothing"},
		},
		{
			Name:    "relay: the watermark is the contiguous prefix",
			File:    relay + "/watermark.go",
			Cut:     "for w.first < w.next && w.at(w.first).finished {",
			With:    "for w.first < w.next {",
			Package: relay,
			Tests:   []string{"TestWatermark_TheWatermarkIsTheEndOfTheFinishedPrefix"},
		},
		{
			Name:    "relay: an idle token only when nothing is unfinished",
			File:    relay + "/watermark.go",
			Cut:     "if w.first != w.next {\n\t\treturn\n\t}",
			With:    "",
			Package: relay,
			Tests:   []string{"TestRelay_AnIdleTokenIsNotUsedWhileAChangeIsInFlight"},
		},
		{
			Name:    "relay: the lease is asked right before a send",
			File:    relay + "/send.go",
			Cut:     "if err := s.deps.MayAct(); err != nil {",
			With:    "if err := error(nil); err != nil {",
			Package: relay,
			Tests:   []string{"TestRelay_NothingIsSentWhenTheLeaseCannotBeTrusted"},
		},
		{
			Name:    "relay: parked before it counts as finished",
			File:    relay + "/intake.go",
			Cut:     "if err := r.park(ctx, Parked{Change: change, Reason: reason.Error(), Term: r.config.Term}); err != nil {",
			With:    "if err := error(nil); err != nil {",
			Package: relay,
			Tests:   []string{"TestFailure_AnUnmappableChangeIsParkedBeforeTheCheckpointPasses"},
		},
		{
			Name:    "relay: to park a large change has the time for its size",
			File:    relay + "/intake.go",
			Cut:     "bound := SendTimeout(r.config.ParkTimeout, len(parked.Change.Raw))",
			With:    "bound := r.config.ParkTimeout",
			Package: app,
			Tests:   []string{"TestParked_ALargeChangeIsParkedOverANarrowLink"},
		},
		{
			Name:    "relay: an attempt to park that took too long gives the next more time",
			File:    relay + "/intake.go",
			Cut:     "attempts.Note(time.Since(began), err)",
			With:    "_ = began",
			Package: relay,
			Tests:   []string{"TestPark_AnAttemptHasTimeForItsSize"},
		},
		{
			Name:    "relay: a save has the time that a majority has come to need",
			File:    relay + "/save.go",
			Cut:     "context.WithTimeout(ctx, r.saving.Bound())",
			With:    "context.WithTimeout(ctx, saveTimeout)",
			Package: relay,
			Tests:   []string{"TestSave_ASaveThatComesToTakeLongerHasTheTimeForIt"},
		},
		{
			Name:    "relay: a refused save ends the term",
			File:    relay + "/save.go",
			Cut:     "case errors.Is(err, checkpoint.ErrSuperseded):\n\t\t\treturn err",
			With:    "case errors.Is(err, checkpoint.ErrSuperseded):",
			Package: relay,
			Tests:   []string{"TestRelay_ASupersededCheckpointEndsTheRelayAndIsNotTriedAgain"},
		},
	}
}
