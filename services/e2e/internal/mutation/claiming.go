package mutation

// claiming are the guards of what a claim trusts, of halts, and of who leads what.
func claiming() []Guard {
	return []Guard{
		{
			Name:    "claim: a checkpoint that was claimed beside a record tells that it is lost",
			File:    publisher + "/claim.go",
			Cut:     `case kept.Claim != "", begun:`,
			With:    "case begun:",
			Package: publisher,
			Tests:   []string{"TestStream_ALostRecordIsNotMadeAnewFromOtherSettings"},
		},
		{
			Name:    "claim: a ledger with a beginning tells that the record is lost",
			File:    publisher + "/claim.go",
			Cut:     `case kept.Claim != "", begun:`,
			With:    `case kept.Claim != "", begun && ctx.Err() != nil:`,
			Package: publisher,
			Tests:   []string{"TestStream_ALostRecordIsNotMadeAnewFromOtherSettings"},
		},
		{
			Name:    "claim: a term is above all that this process has seen",
			File:    publisher + "/claim.go",
			Cut:     "a.config.StreamName, a.knows.highest())",
			With:    "a.config.StreamName, 0)",
			Package: publisher,
			Tests:   []string{"TestStream_ARestoredStateIsCaughtByTheProcessThatKnewIt"},
		},
		{
			Name:    "claim: a retired checkpoint is not claimed",
			File:    state + "/checkpoint.go",
			Cut:     "if !by.Create {\n\t\tfilter",
			With:    "if by.Create {\n\t\tfilter",
			Package: publisher,
			Tests:   []string{"TestStream_ARetiredCheckpointIsAMissingOne"},
		},
		{
			Name:    "halt: one of an earlier term is not written",
			File:    state + "/streams.go",
			Cut:     "return s.update(ctx, upTo(stream, seen), ",
			With:    "return s.update(ctx, byStream(stream), ",
			Package: state,
			Tests:   []string{"TestStreams_AnEarlierTermKeepsNothingOverALaterOne"},
		},
		{
			Name:    "halt: one that is written late is none of the next leader",
			File:    state + "/streams.go",
			Cut:     "return s.update(ctx, upTo(stream, seen), ",
			With:    "return s.update(ctx, byStream(stream), ",
			Package: publisher,
			Tests:   []string{"TestAside_AHaltThatIsWrittenLateIsNotThatOfTheNextLeader"},
		},
		{
			Name:    "halt: one within a term is that of the term",
			File:    publisher + "/claim.go",
			Cut:     "a.judged = claimed.Term",
			With:    "a.judged = max(a.judged, 0)",
			Package: publisher,
			Tests:   []string{"TestLostHistoryStopsLoudlyByDefaultAndIsWrittenDown"},
		},
		{
			Name:    "partitions: none goes to an instance that stands aside from it",
			File:    shares + "/assign.go",
			Cut:     "slices.Contains(p.Aside[m], partition)",
			With:    "slices.Contains(p.Aside[m], -1)",
			Package: shares,
			Tests:   []string{"TestAPartitionGoesToWhoDoesNotStandAsideFromIt"},
		},
		{
			Name:    "partitions: they are evened out",
			File:    shares + "/assign.go",
			Cut:     "for level(members, assigned, least) {",
			With:    "for false && level(members, assigned, least) {",
			Package: shares,
			Tests:   []string{"TestAPartitionGoesToWhoDoesNotStandAsideFromIt"},
		},
		{
			Name:    "purge: what somebody dealt with since is left alone",
			File:    state + "/purge.go",
			Cut:     `{Key: "$gte", Value: before}`,
			With:    `{Key: "$gte", Value: before.AddDate(9, 0, 0)}`,
			Package: state,
			Tests:   []string{"TestParked_APurgeCountsFromTheLastAction"},
		},
	}
}
