package publisher

import "changerelay/services/e2e/internal/campaign/mutation/guard"

// historyGuards are the guards of that a source is the one that was read before.
func historyGuards() []guard.Guard {
	return []guard.Guard{
		{
			Name:    "history: from a token of an empty read the last change is looked for",
			File:    changestream + "/open.go",
			Cut:     "err = s.prove(attempt)",
			With:    "err = attempt.Err()",
			Package: changestream,
			Tests:   []string{"TestStream_FromATokenOfAnEmptyReadTheLastChangeIsLookedFor"},
		},
		{
			Name:    "history: a stream that the driver has resumed is opened and looked at anew",
			File:    changestream + "/stream.go",
			Cut:     "if s.stream.ID() != 0 && s.stream.ID() != before {",
			With:    "if before == 0 && s.stream.ID() != before {",
			Package: app,
			Tests:   []string{"TestHistory_AnOlderCopyInPlaceOfTheSourceIsSeenWhileALeaderReads"},
		},
		{
			Name:    "history: a source without the last change is another",
			File:    changestream + "/proof.go",
			Cut:     "if !found {",
			With:    "if !found && err != nil {",
			Package: changestream,
			Tests:   []string{"TestStream_FromATokenOfAnEmptyReadTheLastChangeIsLookedFor"},
		},
		{
			Name:    "history: a stream that a drop has closed is past that time",
			File:    changestream + "/proof.go",
			Cut:     "case at.Before(",
			With:    "case stream.ID() != 0 && at.Before(",
			Package: changestream,
			Tests:   []string{"TestStream_FromATokenOfAnEmptyReadTheLastChangeIsLookedFor"},
		},
		{
			Name:    "history: a last change from before the operation log proves nothing",
			File:    changestream + "/proof.go",
			Cut:     "halt != nil && halt.Reason == HistoryLost {",
			With:    "halt != nil && halt.Reason != HistoryLost {",
			Package: changestream,
			Tests:   []string{"TestStream_ALastChangeFromBeforeTheOperationLogProvesNothing"},
		},
		{
			Name:    "history: the last change is known of what was read",
			File:    changestream + "/stream.go",
			Cut:     "s.start.Event = timeOf(changes[len(changes)-1].Position)",
			With:    "s.start.Event = checkpoint.ClusterTime{}",
			Package: changestream,
			Tests:   []string{"TestStream_FromATokenOfAnEmptyReadTheLastChangeIsLookedFor"},
		},
		{
			Name:    "history: the last change is saved with the checkpoint",
			File:    relay + "/save.go",
			Cut:     ", Event: now.Event}",
			With:    "}",
			Package: app,
			Tests:   []string{"TestHistory_AnOlderCopyOfTheSourceIsSeenFromATokenOfAnEmptyRead"},
		},
		{
			Name:    "history: a term looks for the last change of those before",
			File:    stream + "/term.go",
			Cut:     ", Event: claimed.Event}",
			With:    "}",
			Package: app,
			Tests:   []string{"TestHistory_AnOlderCopyOfTheSourceIsSeenFromATokenOfAnEmptyRead"},
		},
		{
			Name:    "history: the checkpoint keeps the last change",
			File:    mongostate + "/checkpoint.go",
			Cut:     `put("event", !place.Event.IsZero(), `,
			With:    `put("event", place.Anew, `,
			Package: mongostate,
			Tests:   []string{"TestMongoState_TheCheckpointsConform"},
		},
	}
}
