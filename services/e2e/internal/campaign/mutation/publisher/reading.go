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
			Name:    "stream: a token that stands still is a dead stream",
			File:    changestream + "/stream.go",
			Cut:     "case time.Since(s.movedAt) > silence:",
			With:    "case false:",
			Package: changestream,
			Tests:   []string{"TestSilence_ASilentStreamIsOpenedAgainAtItsOwnToken"},
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
	}
}
