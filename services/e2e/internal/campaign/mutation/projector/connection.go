package projector

import "changerelay/services/e2e/internal/campaign/mutation/guard"

// connectionGuards are the guards of a connection to Service Bus, and of what its
// sessions share.
func connectionGuards() []guard.Guard {
	return []guard.Guard{
		{
			Name:    "connection: a pair of links of which one has ended is not used again",
			File:    sessionlink + "/requests.go",
			Cut:     "\t\t\tp.letGo(err)\n\t\t\tp.stop()\n",
			With:    "\t\t\t_ = p.letGo\n",
			Package: sessionlink,
			Tests:   []string{"TestRequests_GoOnWhenOneLinkOfThePairHasEnded"},
		},
		{
			Name:    "connection: a request whose pair has ended is sent over another",
			File:    sessionlink + "/requests.go",
			Cut:     "ctx.Err() != nil || !ended && !refused {",
			With:    "ctx.Err() != nil || ended || !refused {",
			Package: sessionlink,
			Tests:   []string{"TestRequests_GoOnWhenOneLinkOfThePairHasEnded"},
		},
		{
			Name:    "connection: the first opening of $management ends with its time",
			File:    sessionlink + "/requests.go",
			Cut:     "ctx, cancel := context.WithTimeout(ctx, within)",
			With:    "ctx, cancel := context.WithTimeout(ctx, within*1000)",
			Package: sessionlink,
			Tests:   []string{"TestRequests_AreNotHeldUpByAnOpeningThatIsNotAnswered"},
		},
		{
			Name:    "connection: one that answers no claim is replaced",
			File:    sessionlink + "/claims.go",
			Cut:     "\t\t\tc.unanswered()\n",
			With:    "\t\t\t_ = c.unanswered\n",
			Package: sessionlink,
			Tests:   []string{"TestClaims_ThatAreNotAnsweredEndTheConnection"},
		},
		{
			Name:    "connection: a broker that cannot be reached does not say that nothing is left",
			File:    watch + "/lag.go",
			Cut:     "if unreachable.IsZero() {",
			With:    "if true || unreachable.IsZero() {",
			Package: watch,
			Tests:   []string{"TestProgress_IsBehindWhileTheBrokerCannotBeReached"},
		},
		{
			Name:    "connection: an accept that ran out of time does not say that nothing is left",
			File:    session + "/accept.go",
			Cut:     "\t\treturn nil, ErrNoSession\n",
			With:    "\t\te.idle.CompareAndSwap(0, time.Now().UnixNano())\n\t\treturn nil, ErrNoSession\n",
			Package: session,
			Tests:   []string{"TestAccept_ABrokerThatAnswersNothingIsTrouble"},
		},
		{
			Name:    "connection: a request that is refused for its claim puts it again",
			File:    sessionlink + "/requests.go",
			Cut:     "n.prepare(ctx, asked)",
			With:    "n.prepare(ctx, asked.Add(-time.Hour))",
			Package: sessionlink,
			Tests:   []string{"TestRequests_ThatAreRefusedForTheirClaimPutItAgain"},
		},
		{
			Name:    "session: a first message is waited for while anything comes",
			File:    session + "/receive.go",
			Cut:     "if first && carrier.Coming() &&",
			With:    "if first && !first && carrier.Coming() &&",
			Package: session,
			Tests:   []string{"TestHold_WaitsForAFirstMessageThatTakesLong"},
		},
		{
			Name:    "session: a first message is not waited for for ever",
			File:    session + "/receive.go",
			Cut:     "carrier.Coming() && time.Now().Before(granted)",
			With:    "carrier.Coming() && !granted.IsZero()",
			Package: session,
			Tests:   []string{"TestHold_DoesNotWaitForAFirstMessageForEver"},
		},
		{
			Name:    "session: a session of which nothing comes is counted",
			File:    session + "/hold.go",
			Cut:     "\t\t\t\th.noteNothing()\n",
			With:    "\t\t\t\t_ = h.noteNothing\n",
			Package: session,
			Tests:   []string{"TestHold_WaitsForAFirstMessageThatTakesLong"},
		},
		{
			Name:    "connection: what comes while a receive waits is noticed",
			File:    sessionlink + "/receiver.go",
			Cut:     "return r.wire.pace.carried.Load() > r.began",
			With:    "return r.wire.pace.carried.Load() < r.began",
			Package: sessionlink,
			Tests:   []string{"TestReceive_TellsWhetherAnythingCame"},
		},
	}
}
