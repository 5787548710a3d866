package projector

import "changerelay/services/e2e/internal/campaign/mutation/guard"

// reachGuards are the guards of what is said of whether the broker can be reached.
func reachGuards() []guard.Guard {
	const (
		silence    = "TestAccept_ABrokerThatAnswersNothingIsTrouble"
		throttling = "TestOutage_ThrottlingIsOneOnceNothingIsAnsweredBesideIt"
	)
	return []guard.Guard{
		{
			Name:    "reach: a process that the broker has never answered is not ready",
			File:    app + "/status.go",
			Cut:     "case a.unreached() != nil, a.engine",
			With:    "case a.engine",
			Package: app,
			Tests:   []string{"TestReach_NotReadyBeforeTheBrokerHasAnswered"},
		},
		{
			Name:    "reach: a claim that is taken is an answer",
			File:    sessionlink + "/subscription.go",
			Cut:     "\ts.reached.Store(true)\n",
			With:    "",
			Package: app,
			Tests:   []string{"TestReach_NotReadyBeforeTheBrokerHasAnswered"},
		},
		{
			Name:    "reach: a silence lasts since the first accept without an answer",
			File:    session + "/accept.go",
			Cut:     "e.accepting.FailedSince(err, e.unansweredSince())",
			With:    "e.accepting.FailedSince(err, time.Now())",
			Package: session,
			Tests:   []string{silence},
		},
		{
			Name:    "reach: a broker that is not asked is not silent",
			File:    session + "/accept.go",
			Cut:     "\te.unanswered.Store(0)\n",
			With:    "\te.unanswered.Store(time.Now().UnixNano())\n",
			Package: session,
			Tests:   []string{"TestAccept_ASilenceLastsSinceTheLastAnswer"},
		},
		{
			Name:    "reach: an accept without an answer was not told that nothing is left",
			File:    session + "/accept.go",
			Cut:     "e.counts.AcceptsUnanswered.Add(1)",
			With:    "e.counts.AcceptedNone.Add(1)",
			Package: session,
			Tests:   []string{silence},
		},
		{
			Name:    "reach: an accept that is throttled beside others is no outage",
			File:    session + "/accept.go",
			Cut:     "return e.accepting.Throttled(err)",
			With:    "return e.accepting.Failed(err)",
			Package: session,
			Tests:   []string{throttling},
		},
		{
			Name:    "reach: a settlement that is throttled beside others is no outage",
			File:    session + "/settle.go",
			Cut:     "h.settling.Throttled(err)",
			With:    "h.settling.Failed(err)",
			Package: session,
			Tests:   []string{throttling},
		},
		{
			Name:    "reach: throttling is an outage since the first refusal",
			File:    session + "/outage.go",
			Cut:     "o.err, o.since = err, o.refused",
			With:    "o.err, o.since = err, time.Now()",
			Package: session,
			Tests:   []string{throttling},
		},
	}
}
