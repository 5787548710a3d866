package mutation

// streams are the guards of where a stream goes on, and of commands that decide it.
func streams() []Guard {
	return []Guard{
		{
			Name:    "claim: a new stream that is not the first in its topic halts",
			File:    publisher + "/mark.go",
			Cut:     "if count > 1 {",
			With:    "if count < 0 {",
			Package: publisher,
			Tests:   []string{"TestBegin_ANewStreamBehindAnotherHaltsUntilItIsDecided"},
		},
		{
			Name:    "claim: partitions begin where the first of them began",
			File:    publisher + "/claim.go",
			Cut:     "if a.index > 0 && a.config.StartAt == startNow {",
			With:    "if a.index < 0 && a.config.StartAt == startNow {",
			Package: publisher,
			Tests:   []string{"TestPartitions_BeginWhereTheFirstOfThemBegan"},
		},
		{
			Name:    "claim: what leaves documents out must be the first in its topic",
			File:    publisher + "/claim.go",
			Cut:     "record.Alone = place.Copy == nil && record.Began.Present != 0",
			With:    "record.Alone = false",
			Package: publisher,
			Tests:   []string{"TestBegin_ANewStreamBehindAnotherHaltsUntilItIsDecided"},
		},
		{
			Name:    "claim: a stream that need not be the first marks its topic, too",
			File:    publisher + "/mark.go",
			Cut:     "marking.Go(func() { a.markUntilDone(ctx, topic) })",
			With:    "_ = topic",
			Package: publisher,
			Tests:   []string{"TestBegin_ANewStreamBehindAnotherHaltsUntilItIsDecided"},
		},
		{
			Name:    "claim: one partition marks the topic for all",
			File:    publisher + "/mark.go",
			Cut:     "case a.index > 0:\n\t\treturn a.markedByFirst(ctx, record)",
			With:    "case a.index < 0:\n\t\treturn a.markedByFirst(ctx, record)",
			Package: publisher,
			Tests:   []string{"TestBegin_PartitionsOfANewStreamBeginTogether"},
		},
		{
			Name:    "claim: a checkpoint that went back halts",
			File:    publisher + "/claim.go",
			Cut:     "case kept.Term < record.Confirmed:",
			With:    "case kept.Term < 0:",
			Package: publisher,
			Tests:   []string{"TestStream_ACheckpointThatWentBackHaltsUntilItIsAccepted"},
		},
		{
			Name:    "claim: a ledger without record and checkpoint is no first start",
			File:    publisher + "/claim.go",
			Cut:     "case entered:",
			With:    "case entered && err != nil:",
			Package: publisher,
			Tests:   []string{"TestStream_AStateDatabaseOfWhichPartIsLeftIsNoFirstStart"},
		},
		{
			Name:    "claim: a checkpoint without a place halts",
			File:    publisher + "/claim.go",
			Cut:     "case record.Confirmed > 0 && !kept.Pinned() && !kept.Anew:",
			With:    "case record.Confirmed < 0:",
			Package: publisher,
			Tests:   []string{"TestStream_ACheckpointWithoutAPlaceHalts"},
		},
		{
			Name:    "claim: a stream led under another lease is left alone",
			File:    publisher + "/claim.go",
			Cut:     "if found.Live() && found.Subject == record.Stream {",
			With:    `if found.Live() && found.Subject == "" {`,
			Package: publisher,
			Tests:   []string{"TestStream_TwoLeasesOfOneStreamAreToldApart"},
		},
		{
			Name:    "claim: a place after the source's clock halts",
			File:    publisher + "/claim.go",
			Cut:     "if now.Before(place.Time()) {",
			With:    "if now.Before(place.Time()) && err != nil {",
			Package: publisher,
			Tests:   []string{"TestStream_APlaceAfterTheSourcesClockHalts"},
		},
		{
			Name:    "claim: a retired stream is not led",
			File:    publisher + "/claim.go",
			Cut:     "case found.record.Retired:",
			With:    "case found.record.Retired && found.record.Term < 0:",
			Package: publisher,
			Tests:   []string{"TestStream_ARetiredStreamIsNotLed"},
		},
		{
			Name:    "claim: another cluster halts",
			File:    publisher + "/claim.go",
			Cut:     `if other := record.Source.OtherCluster(origin); other != "" {`,
			With:    `if other := record.Source.OtherCluster(origin); other == "-" {`,
			Package: publisher,
			Tests:   []string{"TestStream_AnotherSourceHalts"},
		},
		{
			Name:    "term: a leader watches that its record is there",
			File:    publisher + "/knowledge.go",
			Cut:     "if lost := a.knows.contradicts(found); lost != nil {\n\t\t\t\t\tend(lost)",
			With:    "if lost := a.knows.contradicts(found); lost != nil {\n\t\t\t\t\t_ = lost",
			Package: publisher,
			Tests:   []string{"TestStream_ALeaderWhoseStateVanishesStopsAndWritesItDown"},
		},
		{
			Name:    "moves: a command is for the stream that runs",
			File:    publisher + "/moves.go",
			Cut:     "err != nil && (!m.fresh || len(d.scope.Partitions()) > 0)",
			With:    "err != nil && ctx.Err() != nil",
			Package: publisher,
			Tests:   []string{"TestCommand_OnlyTheStreamThatRunsIsChanged"},
		},
		{
			Name:    "copy: complete only when as much is kept as was read",
			File:    backfill + "/source.go",
			Cut:     "copied != s.count",
			With:    "copied > s.count",
			Package: backfill,
			Tests:   []string{"TestCopy_IsNotCompleteBeforeAsMuchIsKeptAsWasRead"},
		},
	}
}

// sending are the guards of a message that fails.
func sending() []Guard {
	return []Guard{
		{
			Name:    "servicebus: a send is never cut off between its frames",
			File:    topic + "/topic.go",
			Cut:     "if ctx.Err() != nil {\n\t\treturn ctx.Err()\n\t}\n\tdone := make",
			With:    "if ctx != nil {\n\t\treturn send(ctx)\n\t}\n\tdone := make",
			Package: topic,
			Tests:   []string{"TestTopic_ASendThatIsCutOffBetweenFramesSpoilsNoOther"},
		},
		{
			Name:    "relay: a few refusals park nothing",
			File:    relay + "/trouble.go",
			Cut:     "t.strikes >= strikes && took",
			With:    "took",
			Package: relay,
			Tests:   []string{"TestSend_AFewRefusalsParkNothingHoweverShortThePatience"},
		},
		{
			Name:    "relay: too many parked changes halt the stream",
			File:    relay + "/intake.go",
			Cut:     "r.config.ParkRoom >= 0 && n > r.config.ParkRoom",
			With:    "r.config.ParkRoom >= 0 && n < 0",
			Package: publisher,
			Tests:   []string{"TestPark_ABrakeHaltsTheStreamInFrontOfTheNextUntilSomeAreDealtWith"},
		},
	}
}
