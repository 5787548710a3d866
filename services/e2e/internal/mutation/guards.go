package mutation

import "slices"

// Guards are the guards of both services, in the order of a change's life.
func Guards() []Guard {
	return slices.Concat(leadership(), streams(), dying(), claiming(), publishing(), sending(), reading(), holding(), delivering(), halting(), losing(), owning(), storing(), bounding(), evaluating())
}

const (
	lease      = "services/publisher/internal/lease"
	state      = "services/publisher/internal/mongostate"
	checkpoint = "services/publisher/internal/checkpoint"
	relay      = "services/publisher/internal/relay"
	stream     = "services/publisher/internal/changestream"
	session    = "services/projector/internal/session"
	bus        = "services/projector/internal/servicebus"
	delivery   = "services/projector/internal/delivery"
	readmodel  = "services/projector/internal/readmodel"
	backfill   = "services/publisher/internal/backfill"
	topic      = "services/publisher/internal/servicebus"
	publisher  = "services/publisher/internal/app"
	shares     = "services/publisher/internal/partition"
	projector  = "services/projector/internal/app"
	expression = "services/projector/internal/expression"
)

func leadership() []Guard {
	return []Guard{
		{
			Name:    "lease: trust counts from before the renewal was sent",
			File:    lease + "/hold.go",
			Cut:     "tenure.extend(sentAt.Add(e.config.RenewDeadline))",
			With:    "tenure.extend(time.Now().Add(e.config.RenewDeadline))",
			Package: lease,
			Tests:   []string{"TestTheDeadlineCountsFromBeforeTheRenewalWasSent"},
		},
		{
			Name:    "lease: the work ends when the deadline passes",
			File:    lease + "/tenure.go",
			Cut:     "t.expiry = time.AfterFunc(time.Until(deadline), end)",
			With:    "t.expiry = time.AfterFunc(time.Until(deadline), func() { _ = end })",
			Package: lease,
			Tests:   []string{"TestTheLedWorkEndsBeforeTheLeaseCanBeOver", "TestNoScheduleHasTwoLeaders"},
		},
		{
			Name:    "lease: asked right before an act, the tenure knows its deadline",
			File:    lease + "/tenure.go",
			Cut:     "if time.Since(t.began) >= time.Duration(t.trusted.Load()) {",
			With:    "if false {",
			Package: lease,
			Tests:   []string{"TestNoScheduleHasTwoLeaders", "TestTheLedWorkEndsBeforeTheLeaseCanBeOver"},
		},
		{
			Name:    "lease: a live lease of another is left alone",
			File:    state + "/lease.go",
			Cut:     `bson.D{{Key: "$not", Value: bson.A{live}}},`,
			With:    `bson.D{{Key: "$ne", Value: bson.A{live, "x"}}},`,
			Package: state,
			Tests:   []string{"TestTheLeaseConforms"},
		},
		{
			Name:    "lease: renewals and releases name holder, incarnation and tenure",
			File:    state + "/lease.go",
			Cut:     `{Key: "tenure", Value: holder.Tenure},`,
			With:    "",
			Package: state,
			Tests:   []string{"TestTheLeaseConforms"},
		},
		{
			Name:    "lease: released only after the work has returned",
			File:    lease + "/hold.go",
			Cut:     "err := e.renewWhile(renewals, tenure, end)",
			With:    "go func() { <-ctx.Done(); e.release(ctx) }()\n\terr := e.renewWhile(renewals, tenure, end)",
			Package: lease,
			Tests:   []string{"TestTheLeaseIsReleasedOnlyAfterTheLedWorkHasReturned"},
		},
		{
			Name:    "checkpoint: the term in the filter of a save",
			File:    state + "/checkpoint.go",
			Cut:     `return append(byStream(stream), bson.E{Key: "term", Value: term})`,
			With:    `return append(byStream(stream), bson.E{Key: "term", Value: bson.D{{Key: "$gte", Value: term}}})`,
			Package: state,
			Tests:   []string{"TestTheCheckpointsConform"},
		},
		{
			Name:    "checkpoint: the number in the filter of a save",
			File:    state + "/checkpoint.go",
			Cut:     `bson.D{{Key: "$lt", Value: progress.Number}}`,
			With:    `bson.D{{Key: "$ne", Value: progress.Number}}`,
			Package: state,
			Tests:   []string{"TestTheCheckpointsConform"},
		},
		{
			Name:    "checkpoint: a start that is pinned stays",
			File:    state + "/checkpoint.go",
			Cut:     `bson.E{Key: "startAt", Value: nil}, // null or absent`,
			With:    "",
			Package: state,
			Tests:   []string{"TestTheCheckpointsConform"},
		},
		{
			Name:    "checkpoint: a token only under the options it was given out under",
			File:    checkpoint + "/checkpoint.go",
			Cut:     `if (c.Token != nil || c.Copying()) && c.Options != "" && c.Options != options {`,
			With:    "if false {",
			Package: checkpoint,
			Tests:   []string{"TestATokenIsNotUsedUnderOtherOptions"},
		},
		{
			Name:    "state: majority everywhere",
			File:    state + "/database.go",
			Cut:     "SetWriteConcern(writeconcern.Majority())",
			With:    "SetWriteConcern(writeconcern.W1())",
			Package: state,
			Tests:   []string{"TestEveryCommandOnTheStateAsksForAMajority"},
		},
	}
}

func publishing() []Guard {
	return []Guard{
		{
			Name:    "relay: one send in flight in a lane",
			File:    relay + "/lanes.go",
			Cut:     "held.tail.next = it\n\t\theld.tail = it\n\t\treturn",
			With:    "held.tail.next = it\n\t\theld.tail = it\n\t\tl.ready <- held\n\t\treturn",
			Package: relay,
			Tests:   []string{"TestAnAggregateIsSentInBatchesOneAtATime", "TestEveryScheduleKeepsOrderAndLosesNothing"},
		},
		{
			Name:    "relay: what was not accepted stays at the front",
			File:    relay + "/send.go",
			Cut:     "done := min(p.count, n)",
			With:    "done := p.count",
			Package: relay,
			Tests:   []string{"TestEveryScheduleKeepsOrderAndLosesNothing"},
		},
		{
			Name:    "relay: the watermark is the contiguous prefix",
			File:    relay + "/watermark.go",
			Cut:     "for w.first < w.next && w.at(w.first).finished {",
			With:    "for w.first < w.next {",
			Package: relay,
			Tests:   []string{"TestTheWatermarkIsTheEndOfTheFinishedPrefix"},
		},
		{
			Name:    "relay: an idle token only when nothing is unfinished",
			File:    relay + "/watermark.go",
			Cut:     "if w.first != w.next {\n\t\treturn\n\t}",
			With:    "",
			Package: relay,
			Tests:   []string{"TestAnIdleTokenIsNotUsedWhileAChangeIsInFlight"},
		},
		{
			Name:    "relay: the lease is asked right before a send",
			File:    relay + "/send.go",
			Cut:     "if err := s.deps.MayAct(); err != nil {",
			With:    "if err := error(nil); err != nil {",
			Package: relay,
			Tests:   []string{"TestNothingIsSentWhenTheLeaseCanNotBeTrusted"},
		},
		{
			Name:    "relay: parked before it counts as finished",
			File:    relay + "/intake.go",
			Cut:     "if err := r.park(ctx, Parked{Change: change, Reason: reason.Error(), Term: r.config.Term}); err != nil {",
			With:    "if err := error(nil); err != nil {",
			Package: relay,
			Tests:   []string{"TestAnUnmappableChangeIsParkedBeforeTheCheckpointPasses"},
		},
		{
			Name:    "relay: a refused save ends the term",
			File:    relay + "/save.go",
			Cut:     "case errors.Is(err, checkpoint.ErrSuperseded):\n\t\t\treturn err",
			With:    "case errors.Is(err, checkpoint.ErrSuperseded):",
			Package: relay,
			Tests:   []string{"TestASupersededCheckpointEndsTheRelayAndIsNotTriedAgain"},
		},
	}
}

func reading() []Guard {
	return []Guard{
		{
			Name:    "stream: a poll is bounded",
			File:    stream + "/stream.go",
			Cut:     "polling, cancel := context.WithTimeout(ctx, await+answerTimeout)",
			With:    "polling, cancel := context.WithCancel(ctx)",
			Package: stream,
			Tests:   []string{"TestASilentStreamIsOpenedAgainAtItsOwnToken"},
		},
		{
			Name:    "stream: a token that stands still is a dead stream",
			File:    stream + "/stream.go",
			Cut:     "case time.Since(s.movedAt) > silence:",
			With:    "case false:",
			Package: stream,
			Tests:   []string{"TestASilentStreamIsOpenedAgainAtItsOwnToken"},
		},
		{
			Name:    "stream: opened again at the last change that was handed out",
			File:    stream + "/stream.go",
			Cut:     "s.start.Token = changes[len(changes)-1].Token",
			With:    "",
			Package: stream,
			Tests:   []string{"TestASilentStreamIsOpenedAgainAtItsOwnToken", "TestALostConnectionLosesNoChange"},
		},
		{
			Name:    "stream: large changes are split",
			File:    stream + "/split.go",
			Cut:     "s.placed(options.ChangeStream()), splitStage)",
			With:    "s.placed(options.ChangeStream()))",
			Package: stream,
			Tests:   []string{"TestAChangeWithItsImagesThatIsTooLargeIsSplitAndPutTogether"},
		},
	}
}
