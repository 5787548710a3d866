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
	}
}
