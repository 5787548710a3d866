package publisher

import "changerelay/services/e2e/internal/campaign/mutation/guard"

// decisionGuards are the guards of what a decision takes over, of what a leader finds lost
// while it reads, and of a copy along ids of several types.
func decisionGuards() []guard.Guard {
	return []guard.Guard{
		{
			Name:    "settings: what a command does not take over is for the publisher to note",
			File:    checkpoint + "/settings.go",
			Cut:     "if change.Meaning != Another {",
			With:    "if change.Meaning < 0 {",
			Package: app,
			Tests:   []string{"TestSettings_WhatACommandIsRunWithIsInTheLedgerOnceItIsSentSo", "TestSettings_ThoseOfACommandAloneAreNotTheStreams"},
		},
		{
			Name:    "halt: other options, and those of a copy, are in the ledger",
			File:    changestream + "/classify.go",
			Cut:     "SettingsChanged, OptionsChanged, CopyChanged, TopicTaken:",
			With:    "SettingsChanged, TopicTaken:",
			Package: app,
			Tests:   []string{"TestSettings_WhatACommandIsRunWithIsInTheLedgerOnceItIsSentSo", "TestCopy_IsNotTakenUpUnderOtherSettings"},
		},
		{
			Name:    "reset: it does not say what source and settings the stream has then",
			File:    command + "/moves.go",
			Cut:     "move.Source, move.Settings = checkpoint.Origin{}, nil",
			With:    "_ = move",
			Package: app,
			Tests:   []string{"TestReset_BeginsAnewAsThePublisherIsThatDoesSo"},
		},
		{
			Name:    "history: a stream that is being opened has nothing of its past",
			File:    changestream + "/open.go",
			Cut:     "\ts.moved = false\n",
			With:    "",
			Package: app,
			Tests:   []string{"TestHistory_ALeaderWhoseHistoryIsLostWhileItReadsDoesAsItIsTold"},
		},
		{
			Name:    "heal: what was committed late is within the margin",
			File:    stream + "/history.go",
			Cut:     "from.Time().Add(-t.config.HealMargin)",
			With:    "from.Time()",
			Package: app,
			Tests:   []string{"TestHistory_HealingSendsWhatWasCommittedLate"},
		},
		{
			Name:    "split: a place inside a change is none",
			File:    changestream + "/stream.go",
			Cut:     "case s.parts.parts > 0:",
			With:    "case s.parts.parts < 0:",
			Package: changestream,
			Tests:   []string{"TestSilence_InsideAChangeNoPlaceIsToldOf"},
		},
		{
			Name:    "spelling: a copy of events looks for ids of other types",
			File:    config + "/lifecycle.go",
			Cut:     `"_id"}, mapping.LaterSpellings`,
			With:    `"_id"}, nil`,
			Package: app,
			Tests:   []string{"TestSpelling_ACopyThatCannotBeInOrderHaltsBeforeTheFirstOfItsAggregate", "TestSpelling_AResendThatCannotBeInOrderWaits"},
		},
		{
			Name:    "spelling: a copy that cannot be in order halts",
			File:    stream + "/term.go",
			Cut:     "errors.AsType[*backfill.SpelledError](err); ok {",
			With:    "errors.AsType[*backfill.SpelledError](err); ok && t.index < 0 {",
			Package: app,
			Tests:   []string{"TestSpelling_ACopyThatCannotBeInOrderHaltsBeforeTheFirstOfItsAggregate"},
		},
		{
			Name:    "spelling: an earlier version behind a later one is found",
			File:    backfill + "/spelling.go",
			Cut:     "earlier < e.version {",
			With:    "earlier < 0 {",
			Package: backfill,
			Tests:   []string{"TestSpelling_NoVersionIsCopiedBehindALaterOneOfItsAggregate"},
		},
		{
			Name:    "spelling: types that are in order are copied",
			File:    backfill + "/spelling.go",
			Cut:     "earlier < e.version {",
			With:    "earlier != e.version {",
			Package: backfill,
			Tests:   []string{"TestSpelling_NoVersionIsCopiedBehindALaterOneOfItsAggregate"},
		},
		{
			Name:    "spelling: all that is listed is looked at",
			File:    backfill + "/spelling.go",
			Cut:     "for _, one := range found.fresh {",
			With:    "for _, one := range found.fresh[:0] {",
			Package: backfill,
			Tests:   []string{"TestSpelling_NoVersionIsCopiedBehindALaterOneOfItsAggregate"},
		},
		{
			Name:    "spelling: what is not sent is not compared",
			File:    backfill + "/spelling.go",
			Cut:     "filter := s.wanted(append(",
			With:    "filter := (&Source{}).wanted(append(",
			Package: backfill,
			Tests:   []string{"TestSpelling_WhatIsNotSentIsNotCompared"},
		},
		{
			Name:    "spelling: ids of one type are not looked through",
			File:    backfill + "/spelling.go",
			Cut:     "err != nil || !there {",
			With:    "err != nil || there && !there {",
			Package: backfill,
			Tests:   []string{"TestSpelling_IDsOfOneTypeAreNotLookedThrough"},
		},
	}
}
