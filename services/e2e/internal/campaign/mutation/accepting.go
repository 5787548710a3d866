package mutation

// accepting are the guards of what a decision takes over, and of what a leader finds
// lost while it reads.
func accepting() []Guard {
	return []Guard{
		{
			Name:    "settings: what a command does not take over is for the publisher to note",
			File:    checkpoint + "/settings.go",
			Cut:     "if change.Meaning != Another {",
			With:    "if change.Meaning < 0 {",
			Package: publisher,
			Tests:   []string{"TestSettings_WhatACommandIsRunWithIsInTheLedgerOnceItIsSentSo", "TestSettings_ThoseOfACommandAloneAreNotTheStreams"},
		},
		{
			Name:    "halt: other options, and those of a copy, are in the ledger",
			File:    stream + "/classify.go",
			Cut:     "SettingsChanged, OptionsChanged, CopyChanged, TopicTaken:",
			With:    "SettingsChanged, TopicTaken:",
			Package: publisher,
			Tests:   []string{"TestSettings_WhatACommandIsRunWithIsInTheLedgerOnceItIsSentSo", "TestCopy_IsNotTakenUpUnderOtherSettings"},
		},
		{
			Name:    "reset: it does not say what source and settings the stream has then",
			File:    commands + "/moves.go",
			Cut:     "move.Source, move.Settings = checkpoint.Origin{}, nil",
			With:    "_ = move",
			Package: publisher,
			Tests:   []string{"TestReset_BeginsAnewAsThePublisherIsThatDoesSo"},
		},
		{
			Name:    "history: a stream that is being opened has nothing of its past",
			File:    stream + "/open.go",
			Cut:     "\ts.moved = false\n",
			With:    "",
			Package: publisher,
			Tests:   []string{"TestHistory_ALeaderWhoseHistoryIsLostWhileItReadsDoesAsItIsTold"},
		},
		{
			Name:    "heal: what was committed late is within the margin",
			File:    leading + "/history.go",
			Cut:     "from.Time().Add(-t.config.HealMargin)",
			With:    "from.Time()",
			Package: publisher,
			Tests:   []string{"TestHistory_HealingSendsWhatWasCommittedLate"},
		},
		{
			Name:    "split: a place inside a change is none",
			File:    stream + "/stream.go",
			Cut:     "case s.parts.parts > 0:",
			With:    "case s.parts.parts < 0:",
			Package: stream,
			Tests:   []string{"TestSilence_InsideAChangeNoPlaceIsToldOf"},
		},
	}
}
