package projector

import "changerelay/services/e2e/internal/campaign/mutation/guard"

// commitGuards are the guards of writes of several sessions that share a command.
func commitGuards() []guard.Guard {
	const file = readmodel + "/commit.go"
	return []guard.Guard{
		{
			Name:    "commit: without a majority nothing of a shared command is applied",
			File:    file,
			Cut:     "known = known && bulk.WriteConcernError == nil && ",
			With:    "known = known && ",
			Package: readmodel,
			Tests:   []string{"TestGroupCommit_WhatFailsAsAWholeIsSentApart"},
		},
		{
			Name:    "commit: a refusal is that of its own write",
			File:    file,
			Cut:     "each[place] = mongo",
			With:    "each[place/n] = mongo",
			Package: readmodel,
			Tests:   []string{"TestGroupCommit_EachWriteHasItsOwnOutcome"},
		},
		{
			Name:    "commit: a write is tried although another one is refused",
			File:    readmodel + "/writes.go",
			Cut:     "s.bulk(ctx, to, models, false)",
			With:    "s.bulk(ctx, to, models, true)",
			Package: readmodel,
			Tests:   []string{"TestStore_WhatSharesACommandSharesNoOutcome"},
		},
		{
			Name:    "commit: a write whose time is over while it waits is not sent",
			File:    file,
			Cut:     "g.waiting = slices.Delete(g.waiting, place, place+1)",
			With:    "",
			Package: readmodel,
			Tests:   []string{"TestGroupCommit_AWriteWhoseTimeIsOverIsNotSent"},
		},
		{
			Name:    "commit: a write whose time is over at last is not sent",
			File:    file,
			Cut:     "one != m && one.ctx.Err() != nil",
			With:    "false",
			Package: readmodel,
			Tests:   []string{"TestGroupCommit_AWriteWhoseTimeIsOverIsLeftOutAtLast"},
		},
		{
			Name:    "commit: others are sent where the time of the first is over",
			File:    file,
			Cut:     "slices.Concat(group[1:], g.waiting)",
			With:    "slices.Concat(group[:0], g.waiting)",
			Package: readmodel,
			Tests:   []string{"TestGroupCommit_AnotherSendsWhereTheTimeOfTheFirstIsOver"},
		},
		{
			Name:    "commit: after a command that failed as a whole nothing is shared for a while",
			File:    file,
			Cut:     "if time.Now().Before(g.apart) {",
			With:    "if time.Now().Before(g.apart) && m == nil {",
			Package: readmodel,
			Tests:   []string{"TestGroupCommit_WhatFailsAsAWholeIsSentApart"},
		},
		{
			Name:    "commit: the end of the one that sends is no failure of the command",
			File:    file,
			Cut:     "g.ended(!known && m.ctx.Err() == nil)",
			With:    "g.ended(!known)",
			Package: readmodel,
			Tests:   []string{"TestGroupCommit_ItsSendersEndKeepsNobodyApart"},
		},
		{
			Name:    "commit: an outcome beyond what was sent is that of no write",
			File:    file,
			Cut:     "failure.Index < 0 || failure.Index >= n",
			With:    "failure.Index < 0",
			Package: readmodel,
			Tests:   []string{"TestGroupCommit_WhatFailsAsAWholeIsSentApart"},
		},
		{
			Name:    "commit: an outcome below what was sent is that of no write",
			File:    file,
			Cut:     "failure.Index < 0 || failure.Index >= n",
			With:    "failure.Index >= n",
			Package: readmodel,
			Tests:   []string{"TestGroupCommit_WhatFailsAsAWholeIsSentApart"},
		},
	}
}
