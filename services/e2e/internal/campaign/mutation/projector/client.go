package projector

import "changerelay/services/e2e/internal/campaign/mutation/guard"

// clientGuards are the guards of sessions that are taken with the official client.
func clientGuards() []guard.Guard {
	const conforms = "TestSubscription_IsAsTheEngineAsks"
	return []guard.Guard{
		{
			Name:    "servicebus: a client does not outlive its connection",
			File:    servicebus + "/dial.go",
			Cut:     "\tw.closed()\n",
			With:    "\t_ = w.closed\n",
			Package: servicebus,
			Tests:   []string{conforms},
		},
		{
			Name:    "servicebus: a client connects once",
			File:    servicebus + "/dial.go",
			Cut:     "s.used = true",
			With:    "s.used = false",
			Package: servicebus,
			Tests:   []string{"TestDial_AClientConnectsOnceInItsLife"},
		},
		{
			Name:    "servicebus: the client does not try a settlement again",
			File:    servicebus + "/receiver.go",
			Cut:     "settleMost = 3 * time.Second",
			With:    "settleMost = time.Hour",
			Package: servicebus,
			Tests:   []string{"TestSettle_WhatIsThrottledIsNotSaidToBeSettled"},
		},
		{
			Name:    "servicebus: a dead letter is removed by a request",
			File:    servicebus + "/deadletters.go",
			Cut:     "&azservicebus.ReceivedMessage{LockToken: m.LockToken}, nil",
			With:    "m, nil",
			Package: servicebus,
			Tests:   []string{"TestDeadLetters_WhatIsThrottledIsNotSaidToBeRemoved"},
		},
		{
			Name:    "servicebus: a message that the client panics at cannot be decoded",
			File:    servicebus + "/refused.go",
			Cut:     " && !errors.Is(err, errUnreadable):",
			With:    " && errors.Is(err, err):",
			Package: app,
			Tests:   []string{"TestUndecodable_WhatStandsBeforeIsAppliedAndItIsSaid"},
		},
		{
			Name:    "servicebus: a message that the client panics at ends no process",
			File:    servicebus + "/readable.go",
			Cut:     "if p := recover(); p != nil {",
			With:    "if p := any(nil); p != nil {",
			Package: servicebus,
			Tests:   []string{"TestDeadLetters_OneThatTheClientCannotReadIsAnError"},
		},
		{
			Name:    "servicebus: what stands before a dead letter that cannot be read is peeked at",
			File:    servicebus + "/deadletters.go",
			Cut:     "if err != nil && pages.most > 1 && ctx.Err() == nil {",
			With:    "if err != nil && pages.most < 1 {",
			Package: servicebus,
			Tests:   []string{"TestDeadLetters_OneThatTheClientCannotReadIsAnError"},
		},
		{
			Name:    "servicebus: a connection that answers no accept is replaced",
			File:    servicebus + "/subscription.go",
			Cut:     "\t\tconn.unanswered(client, time.Since(began))\n",
			With:    "\t\t_ = began\n",
			Package: servicebus,
			Tests:   []string{"TestSubscription_AConnectionThatAnswersNoAcceptIsReplaced"},
		},
		{
			Name:    "servicebus: a connection over which something comes is not replaced",
			File:    servicebus + "/connection.go",
			Cut:     "\tc.silent = time.Time{}\n",
			With:    "",
			Package: servicebus,
			Tests:   []string{"TestConnection_IsReplacedWhereNothingComesAndNoAcceptIsAnswered"},
		},
		{
			Name:    "servicebus: a sign of life is no answer",
			File:    servicebus + "/dial.go",
			Cut:     "if n > emptyFrame {",
			With:    "if n > 0 {",
			Package: servicebus,
			Tests:   []string{"TestDial_ASignOfLifeIsNoAnswer"},
		},
		{
			Name:    "servicebus: a renewal that is throttled is tried again",
			File:    servicebus + "/receiver.go",
			Cut:     "r.sessionID, orBusy(err))",
			With:    "r.sessionID, err)",
			Package: servicebus,
			Tests:   []string{conforms},
		},
		{
			Name:    "servicebus: the code of an answer says that the service throttles",
			File:    servicebus + "/classify.go",
			Cut:     "return namespace.OfCode(e.RPCCode())",
			With:    "_ = e",
			Package: servicebus,
			Tests:   []string{"TestClassify"},
		},
	}
}
