package publisher

import "changerelay/services/e2e/internal/campaign/mutation/guard"

func readingGuards() []guard.Guard {
	return []guard.Guard{
		{
			Name:    "stream: a poll is bounded",
			File:    changestream + "/stream.go",
			Cut:     "polling, cancel := context.WithTimeout(ctx, await+answerTimeout)",
			With:    "polling, cancel := context.WithCancel(ctx)",
			Package: changestream,
			Tests:   []string{"TestSilence_ASilentStreamIsOpenedAgainAtItsOwnToken"},
		},
		{
			Name:    "stream: the oldest entry of the oplog is waited for as the stream is",
			File:    changestream + "/open.go",
			Cut:     "err := s.checkReach(attempt)",
			With:    "looking, late := context.WithTimeout(attempt, oplogTimeout)\n\tdefer late()\n\terr := s.checkReach(looking)",
			Package: changestream,
			Tests:   []string{"TestOpen_TheOplogIsLookedAtForAsLongAsTheSourceNeeds"},
		},
		{
			Name:    "stream: a lost connection does not say that the oplog is withheld",
			File:    changestream + "/oplog.go",
			Cut:     "mongo.IsNetworkError(err) || ",
			With:    "",
			Package: changestream,
			Tests:   []string{"TestStream_AnOplogThatDoesNotAnswerIsAskedAgain"},
		},
		{
			Name:    "stream: a token that stands still is a dead stream",
			File:    changestream + "/stream.go",
			Cut:     "case min(time.Since(s.movedAt), time.Since(s.opened)) > silence:",
			With:    "case false:",
			Package: changestream,
			Tests:   []string{"TestSilence_ASilentStreamIsOpenedAgainAtItsOwnToken"},
		},
		{
			Name:    "stream: a token goes on standing still when the stream is opened again",
			File:    changestream + "/open.go",
			Cut:     "if s.movedAt.IsZero() {",
			With:    "if true {",
			Package: changestream,
			Tests:   []string{"TestSilence_ATokenThatStandsStillIsToldOf"},
		},
		{
			Name:    "stream: a token that stands still is said",
			File:    status + "/tracker.go",
			Cut:     "case !s.still.IsZero():\n\t\treturn stateStill",
			With:    "case !s.still.IsZero():\n\t\treturn statePublishing",
			Package: status,
			Tests:   []string{"TestTracker_WhatReadsIsToldFromWhatFails"},
		},
		{
			Name:    "stream: where a token stands still is not ready",
			File:    status + "/ready.go",
			Cut:     "case long(s.still):",
			With:    "case long(s.still) && s.still.IsZero():",
			Package: status,
			Tests:   []string{"TestReady_FollowsFactsAndTheirAges"},
		},
		{
			Name:    "stream: opened again at the last change that was handed out",
			File:    changestream + "/stream.go",
			Cut:     "s.start.Token = changes[len(changes)-1].Token",
			With:    "",
			Package: changestream,
			Tests:   []string{"TestSilence_ASilentStreamIsOpenedAgainAtItsOwnToken", "TestStream_ALostConnectionLosesNoChange"},
		},
		{
			Name:    "stream: large changes are split",
			File:    changestream + "/split.go",
			Cut:     "s.placed(options.ChangeStream()), splitStage)",
			With:    "s.placed(options.ChangeStream()))",
			Package: changestream,
			Tests:   []string{"TestSource_AChangeWithItsImagesThatIsTooLargeIsSplitAndPutTogether"},
		},
		{
			Name:    "saves: a checkpoint that is not stored is said",
			File:    relay + "/save.go",
			Cut:     "\t\tr.saves.note(\"checkpoint\", err)\n",
			With:    "",
			Package: relay,
			Tests:   []string{"TestStatus_SaysWhatTheStateDatabaseDoesNotStore"},
		},
		{
			Name:    "saves: a change that is not parked is said",
			File:    relay + "/intake.go",
			Cut:     "r.saves.note(what, fmt.Errorf(",
			With:    "_ = (fmt.Errorf(",
			Package: relay,
			Tests:   []string{"TestStatus_SaysWhatTheStateDatabaseDoesNotStore"},
		},
		{
			Name:    "saves: who does not store for long is not ready",
			File:    status + "/ready.go",
			Cut:     "case long(s.unsaved):",
			With:    "case long(s.unsaved) && s.unsaved.IsZero():",
			Package: status,
			Tests:   []string{"TestReady_FollowsFactsAndTheirAges"},
		},
	}
}
