package mutation

import "slices"

// Guards are the guards of both services, in the order of a change's life, and some of the sandbox.
func Guards() []Guard {
	return slices.Concat(leadership(), streams(), dying(), claiming(), deciding(), publishing(), sending(), reading(), holding(), carrying(), delivering(), halting(), losing(), positioning(), suspecting(), unblocking(), owning(), feeding(), storing(), bounding(), evaluating(), discarding(), seeing(), imitating(), giving(), noticing(), standing(), judging(), resending(), adopting(), passing(), naming(), emptying(), beginning(), conditions(), sourcing(), rebuilding(), accepting(), reopening())
}

const (
	lease             = "services/publisher/internal/lease"
	state             = "services/publisher/internal/mongostate"
	checkpoint        = "services/publisher/internal/checkpoint"
	relay             = "services/publisher/internal/relay"
	stream            = "services/publisher/internal/changestream"
	session           = "services/projector/internal/session"
	bus               = "services/projector/internal/servicebus"
	delivery          = "services/projector/internal/delivery"
	readmodel         = "services/projector/internal/readmodel"
	backfill          = "services/publisher/internal/backfill"
	topic             = "services/publisher/internal/servicebus"
	publisher         = "services/publisher/internal/app"
	leading           = "services/publisher/internal/stream"
	commands          = "services/publisher/internal/command"
	settings          = "services/publisher/internal/config"
	shown             = "services/publisher/internal/status"
	shares            = "services/publisher/internal/partition"
	projector         = "services/projector/internal/app"
	projectorConfig   = "services/projector/internal/config"
	projectorWatch    = "services/projector/internal/watch"
	projectorCommands = "services/projector/internal/command"
	expression        = "services/projector/internal/expression"
	projection        = "services/projector/internal/projection"

	sandboxEngine  = "services/sandbox/internal/mongodb/engine"
	sandboxCommand = "services/sandbox/internal/mongodb/command"
	sandboxServer  = "services/sandbox/internal/mongodb/mongoserver"
)

func leadership() []Guard {
	return []Guard{
		{
			Name:    "lease: a renewal that fails is tried again before the lease is lost",
			File:    lease + "/hold.go",
			Cut:     "next.Reset(e.config.renewRetry()/2 + rand.N(e.config.renewRetry()/2+1))",
			With:    "next.Reset(e.nextHeartbeat())",
			Package: lease,
			Tests:   []string{"TestElector_AnOutageShorterThanTheDeadlineCostsNoLeadership"},
		},
		{
			Name:    "lease: trust counts from before the renewal was sent",
			File:    lease + "/hold.go",
			Cut:     "tenure.extend(sentAt.Add(e.config.RenewDeadline))",
			With:    "tenure.extend(time.Now().Add(e.config.RenewDeadline))",
			Package: lease,
			Tests:   []string{"TestElector_TheDeadlineCountsFromBeforeTheRenewalWasSent"},
		},
		{
			Name:    "lease: the work ends when the deadline passes",
			File:    lease + "/tenure.go",
			Cut:     "t.expiry = time.AfterFunc(time.Until(deadline), end)",
			With:    "t.expiry = time.AfterFunc(time.Until(deadline), func() { _ = end })",
			Package: lease,
			Tests:   []string{"TestElector_TheLedWorkEndsBeforeTheLeaseCanBeOver", "TestSimulation_NoScheduleHasTwoLeaders"},
		},
		{
			Name:    "lease: asked right before an act, the tenure knows its deadline",
			File:    lease + "/tenure.go",
			Cut:     "if time.Since(t.began) >= time.Duration(t.trusted.Load()) {",
			With:    "if false {",
			Package: lease,
			Tests:   []string{"TestSimulation_NoScheduleHasTwoLeaders", "TestElector_TheLedWorkEndsBeforeTheLeaseCanBeOver"},
		},
		{
			Name:    "lease: a live lease of another is left alone",
			File:    state + "/lease.go",
			Cut:     `bson.D{{Key: "$not", Value: bson.A{live}}},`,
			With:    `bson.D{{Key: "$ne", Value: bson.A{live, "x"}}},`,
			Package: state,
			Tests:   []string{"TestMongoState_TheLeaseConforms"},
		},
		{
			Name:    "lease: renewals and releases name holder, incarnation and tenure",
			File:    state + "/lease.go",
			Cut:     `{Key: "tenure", Value: holder.Tenure},`,
			With:    "",
			Package: state,
			Tests:   []string{"TestMongoState_TheLeaseConforms"},
		},
		{
			Name:    "lease: released only after the work has returned",
			File:    lease + "/hold.go",
			Cut:     "err := e.renewWhile(renewals, tenure, end)",
			With:    "go func() { <-ctx.Done(); e.release(ctx) }()\n\terr := e.renewWhile(renewals, tenure, end)",
			Package: lease,
			Tests:   []string{"TestElector_TheLeaseIsReleasedOnlyAfterTheLedWorkHasReturned"},
		},
		{
			Name:    "checkpoint: the term in the filter of a save",
			File:    state + "/checkpoint.go",
			Cut:     `return append(byStream(stream), bson.E{Key: "term", Value: term})`,
			With:    `return append(byStream(stream), bson.E{Key: "term", Value: bson.D{{Key: "$gte", Value: term}}})`,
			Package: state,
			Tests:   []string{"TestMongoState_TheCheckpointsConform"},
		},
		{
			Name:    "checkpoint: the number in the filter of a save",
			File:    state + "/checkpoint.go",
			Cut:     `bson.D{{Key: "$lt", Value: progress.Number}}`,
			With:    `bson.D{{Key: "$ne", Value: progress.Number}}`,
			Package: state,
			Tests:   []string{"TestMongoState_TheCheckpointsConform"},
		},
		{
			Name:    "checkpoint: a start that is pinned stays",
			File:    state + "/checkpoint.go",
			Cut:     `bson.E{Key: "startAt", Value: nil}, // null or absent`,
			With:    "",
			Package: state,
			Tests:   []string{"TestMongoState_TheCheckpointsConform"},
		},
		{
			Name:    "checkpoint: a token only under the options it was given out under",
			File:    checkpoint + "/checkpoint.go",
			Cut:     `if (c.Token != nil || c.Copying()) && c.Options != "" && c.Options != options {`,
			With:    "if false {",
			Package: checkpoint,
			Tests:   []string{"TestCheckpoint_ATokenIsNotUsedUnderOtherOptions"},
		},
		{
			Name:    "state: majority everywhere",
			File:    state + "/database.go",
			Cut:     "SetWriteConcern(writeconcern.Majority())",
			With:    "SetWriteConcern(writeconcern.W1())",
			Package: state,
			Tests:   []string{"TestMajority_EveryCommandOnTheStateAsksForAMajority"},
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
			Tests:   []string{"TestRelay_NothingIsSentWhenTheLeaseCanNotBeTrusted"},
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
			Name:    "relay: a refused save ends the term",
			File:    relay + "/save.go",
			Cut:     "case errors.Is(err, checkpoint.ErrSuperseded):\n\t\t\treturn err",
			With:    "case errors.Is(err, checkpoint.ErrSuperseded):",
			Package: relay,
			Tests:   []string{"TestRelay_ASupersededCheckpointEndsTheRelayAndIsNotTriedAgain"},
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
			Tests:   []string{"TestSilence_ASilentStreamIsOpenedAgainAtItsOwnToken"},
		},
		{
			Name:    "stream: a token that stands still is a dead stream",
			File:    stream + "/stream.go",
			Cut:     "case time.Since(s.movedAt) > silence:",
			With:    "case false:",
			Package: stream,
			Tests:   []string{"TestSilence_ASilentStreamIsOpenedAgainAtItsOwnToken"},
		},
		{
			Name:    "stream: opened again at the last change that was handed out",
			File:    stream + "/stream.go",
			Cut:     "s.start.Token = changes[len(changes)-1].Token",
			With:    "",
			Package: stream,
			Tests:   []string{"TestSilence_ASilentStreamIsOpenedAgainAtItsOwnToken", "TestStream_ALostConnectionLosesNoChange"},
		},
		{
			Name:    "stream: large changes are split",
			File:    stream + "/split.go",
			Cut:     "s.placed(options.ChangeStream()), splitStage)",
			With:    "s.placed(options.ChangeStream()))",
			Package: stream,
			Tests:   []string{"TestSource_AChangeWithItsImagesThatIsTooLargeIsSplitAndPutTogether"},
		},
	}
}
