package projector

import "changerelay/services/e2e/internal/campaign/mutation/guard"

// boundGuards are the guards of the projector's memory.
func boundGuards() []guard.Guard {
	return []guard.Guard{
		{
			Name:    "dead letters: they are asked for by what they weigh",
			File:    servicebus + "/deadletters.go",
			Cut:     "min(2*p.most, deadPage, deadPageBytes/heaviest)",
			With:    "min(2*p.most, deadPage)",
			Package: servicebus,
			Tests:   []string{"TestDeadLetters_AreAskedForByWhatTheyWeigh"},
		},
		{
			Name:    "memory: parked messages are read by what they weigh",
			File:    readmodel + "/room.go",
			Cut:     "if n > 0 && sum+weight > r.total/pagesAtOnce {",
			With:    "if n < 0 && sum+weight > r.total/pagesAtOnce {",
			Package: app,
			Tests:   []string{"TestRedrive_ReadsNoMoreBytesThanItHasRoomFor"},
		},
		{
			Name:    "memory: redrives have one room together",
			File:    readmodel + "/room.go",
			Cut:     "share := min(bytes, r.total)",
			With:    "share := min(bytes, 0)",
			Package: app,
			Tests:   []string{"TestRedrive_ReadsNoMoreBytesThanItHasRoomFor"},
		},
		{
			Name:    "memory: a redrive gives back what it has dealt with",
			File:    delivery + "/redrive.go",
			Cut:     "\tdefer done()\n",
			With:    "\t_ = done\n",
			Package: delivery,
			Tests:   []string{"TestRedrive_ManyAggregatesGoSideBySide"},
		},
		{
			Name:    "memory: without a limit the collector keeps to what the process may take",
			File:    config + "/memory.go",
			Cut:     "cmp.Or(container, c.beside()+copies*c.inFlightBytes(0))",
			With:    "cmp.Or(container, 1<<40)",
			Package: config,
			Tests:   []string{"TestSoftLimit_IsNearTheContainersOrWhatTheProcessTakes"},
		},
		{
			Name:    "parked: a message takes the place that was kept for it",
			File:    readmodel + "/parking.go",
			Cut:     "return s.fill(ctx, id, fields)",
			With:    "return nil",
			Package: readmodel,
			Tests:   []string{"TestStore_StoreConforms"},
		},
		{
			Name:    "memory: what is redriven is part of the bytes in flight",
			File:    config + "/memory.go",
			Cut:     "return all - all/8, all / 8",
			With:    "return all, all / 8",
			Package: config,
			Tests:   []string{"TestShares_AreTheBytesInFlightTogether"},
		},
		{
			Name:    "memory: a discard keeps the locks of what it passes and not the bodies",
			File:    servicebus + "/deadletters.go",
			Cut:     "locks = append(locks, m.LockToken)",
			With:    "locks = append(locks, m.LockToken)\n\t\t\tdefer func() { _ = m.Body }()",
			Package: servicebus,
			Tests:   []string{"TestDiscard_KeepsTheLocksOfWhatItPassesAndNotTheBodies"},
		},
		{
			Name:    "dead letters: a discard gives back what it passes",
			File:    servicebus + "/deadletters.go",
			Cut:     "_ = d.receiver.AbandonMessage(context.WithoutCancel(ctx), &azservicebus.ReceivedMessage{LockToken: lock}, nil)",
			With:    "_ = lock",
			Package: app,
			Tests:   []string{"TestDeadDiscard_GivesBackWhatItPasses"},
		},
		{
			Name:    "memory: what is kept of a dead letter is without its message",
			File:    delivery + "/putback.go",
			Cut:     "if r = order.Next(r); r.Fate != ReturnParked {",
			With:    "l.Event.Data = m.Body\n\tif r = order.Next(r); r.Fate != ReturnParked {",
			Package: delivery,
			Tests:   []string{"TestPutBack_HasOneMessageInMemoryAtATime"},
		},
		{
			Name:    "dead letters: what is gone is not taken for a message",
			File:    delivery + "/putback.go",
			Cut:     "if !found {",
			With:    "if !found && l == nil {",
			Package: delivery,
			Tests:   []string{"TestPutBack_SaysWhatIsGone"},
		},
		{
			Name:    "dead letters: the one asked for that is gone is a failure",
			File:    command + "/deadredrive.go",
			Cut:     "if !all && fates[delivery.ReturnGone] > 0 {",
			With:    "if !all && fates[delivery.ReturnGone] < 0 {",
			Package: app,
			Tests:   []string{"TestDeadRedrive_SaysThatTheOneAskedForIsGone"},
		},
		{
			Name:    "bounds: an accept ends before the engine counts as stalled",
			File:    config + "/config.go",
			Cut:     "if c.AcceptTime > mostAcceptTime {",
			With:    "if c.AcceptTime < 0 {",
			Package: app,
			Tests:   []string{"TestConfig_EveryProblemIsReportedAtOnce"},
		},
	}
}
