package publisher

import "changerelay/services/e2e/internal/campaign/mutation/guard"

func leaseGuards() []guard.Guard {
	return []guard.Guard{
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
			File:    mongostate + "/lease.go",
			Cut:     `bson.D{{Key: "$not", Value: bson.A{live}}},`,
			With:    `bson.D{{Key: "$ne", Value: bson.A{live, "x"}}},`,
			Package: mongostate,
			Tests:   []string{"TestMongoState_TheLeaseConforms"},
		},
		{
			Name:    "lease: renewals and releases name holder, incarnation and tenure",
			File:    mongostate + "/lease.go",
			Cut:     `{Key: "tenure", Value: holder.Tenure},`,
			With:    "",
			Package: mongostate,
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
			File:    mongostate + "/checkpoint.go",
			Cut:     `return append(byStream(stream), bson.E{Key: "term", Value: term})`,
			With:    `return append(byStream(stream), bson.E{Key: "term", Value: bson.D{{Key: "$gte", Value: term}}})`,
			Package: mongostate,
			Tests:   []string{"TestMongoState_TheCheckpointsConform"},
		},
		{
			Name:    "checkpoint: the number in the filter of a save",
			File:    mongostate + "/checkpoint.go",
			Cut:     `bson.D{{Key: "$lt", Value: progress.Number}}`,
			With:    `bson.D{{Key: "$ne", Value: progress.Number}}`,
			Package: mongostate,
			Tests:   []string{"TestMongoState_TheCheckpointsConform"},
		},
		{
			Name:    "checkpoint: a start that is pinned stays",
			File:    mongostate + "/checkpoint.go",
			Cut:     `bson.E{Key: "startAt", Value: nil}, // null or absent`,
			With:    "",
			Package: mongostate,
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
			File:    mongostate + "/database.go",
			Cut:     "SetWriteConcern(writeconcern.Majority())",
			With:    "SetWriteConcern(writeconcern.W1())",
			Package: mongostate,
			Tests:   []string{"TestMajority_EveryCommandOnTheStateAsksForAMajority"},
		},
	}
}
