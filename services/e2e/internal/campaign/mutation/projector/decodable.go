package projector

import "changerelay/services/e2e/internal/campaign/mutation/guard"

// decodableGuards are the guards of messages that go-amqp cannot be given.
func decodableGuards() []guard.Guard {
	return []guard.Guard{
		{
			Name:    "decodable: a key that cannot be hashed is refused",
			File:    decodable + "/walker.go",
			Cut:     "\tkeys := hashable\n",
			With:    "\tkeys := all\n",
			Package: decodable,
			Tests:   []string{"TestWalker_SparesGoAMQPWhatItCannotBeGiven"},
		},
		{
			Name:    "decodable: what comes to a link after a message that was refused is overwritten",
			File:    decodable + "/frames.go",
			Cut:     "case f.aborted, !f.more && !m.bad:",
			With:    "case f.aborted, !f.more:",
			Package: decodable,
			Tests:   []string{"TestFrames_FollowsTheMessagesOfEachLink"},
		},
		{
			Name:    "decodable: peeked messages are followed",
			File:    decodable + "/walker.go",
			Cut:     "w.within.walk(piece[i : i+n])",
			With:    "_ = w.within.walk",
			Package: decodable,
			Tests:   []string{"TestWalker_FollowsPeekedMessages"},
		},
		{
			Name:    "decodable: the connection ends before go-amqp resumes within a message",
			File:    decodable + "/frames.go",
			Cut:     "f.resumes = f.resumes || f.message.left",
			With:    "f.resumes = false",
			Package: decodable,
			Tests:   []string{"TestFrames_LetNothingResumeInAMessage"},
		},
		{
			Name:    "decodable: a message in one frame is refused at the size that is beyond its end",
			File:    decodable + "/frames.go",
			Cut:     "f.message.end = f.message.at + int64(f.left)",
			With:    "f.message.end = 0",
			Package: decodable,
			Tests:   []string{"TestFrames_KeepTheConnectionWhereNothingResumes"},
		},
		{
			Name:    "decodable: a value with the descriptor of an error is refused",
			File:    decodable + "/walker.go",
			Cut:     "if isComposite(w.number) {",
			With:    "if false && isComposite(w.number) {",
			Package: decodable,
			Tests:   []string{"TestWalker_SparesGoAMQPWhatItCannotBeGiven"},
		},
		{
			Name:    "decodable: an array of many that are nothing is refused",
			File:    decodable + "/walker.go",
			Cut:     "c.is&(null|listed) == 0 && (c.width > 0 || w.count < 2)",
			With:    "c.is&(null|listed) == 0",
			Package: decodable,
			Tests:   []string{"TestWalker_SparesGoAMQPWhatItCannotBeGiven"},
		},
		{
			Name:    "decodable: a receiver of the official client names the session, too",
			File:    servicebus + "/refused.go",
			Cut:     "!r.refused.Has(r.sessionID) && ",
			With:    "",
			Package: app,
			Tests:   []string{"TestUndecodable_WhatStandsBeforeIsAppliedAndItIsSaid"},
		},
		{
			Name:    "decodable: a session that comes again is as any other, with the official client",
			File:    servicebus + "/subscription.go",
			Cut:     "s.refused.Forget(inner.SessionID())",
			Package: servicebus,
			Tests:   []string{"TestSubscription_IsAsTheEngineAsks"},
		},
		{
			Name:    "decodable: a session that comes again is as any other",
			File:    sessionlink + "/attach.go",
			Cut:     "w.refused.Forget(id)",
			Package: sessionlink,
			Tests:   []string{"TestAttach_ForgetsWhatWasRefusedOfTheSession"},
		},
		{
			Name:    "decodable: a connection notes whose message it refuses",
			File:    sessionlink + "/wire.go",
			Cut:     "cfg.Access.Dial(ctx, refused.Note)",
			With:    "cfg.Access.Dial(ctx, nil)",
			Package: sessionlink,
			Tests:   []string{"TestAttach_ForgetsWhatWasRefusedOfTheSession"},
		},
		{
			Name:    "decodable: a connection that was closed meanwhile has ended for the message, too",
			File:    sessionlink + "/receiver.go",
			Cut:     "over = over || errors.Is(err, errClosed)",
			Package: sessionlink,
			Tests:   []string{"TestReceiver_ARefusedMessageThatEndsTheConnectionIsOfItsSession"},
		},
		{
			Name:    "sessionlink: a refused message that ends the connection is of its session",
			File:    sessionlink + "/receiver.go",
			Cut:     " || over && r.wire.refused.Has(r.sessionID)",
			With:    " || over && false",
			Package: sessionlink,
			Tests:   []string{"TestReceiver_ARefusedMessageThatEndsTheConnectionIsOfItsSession"},
		},
	}
}
