package witness

import "changerelay/services/e2e/internal/campaign/mutation/guard"

// Judging are guards of what the judges excuse, and of what they must have looked at.
func Judging() []guard.Guard {
	const (
		witness  = "services/e2e/internal/check/witness"
		validate = "services/e2e/internal/check/validate"
		expect   = "services/e2e/internal/check/expect"
		read     = "services/e2e/internal/check/readmodel"
		crash    = "services/e2e/internal/campaign/crashpoint"
		watch    = "services/e2e/internal/check/watch"
		report   = "services/e2e/internal/check/report"
		cluster  = "services/e2e/internal/harness/cluster"
	)
	return []guard.Guard{
		{
			Name:    "witness: only a line about a stretch that is not sent forgives a loss",
			File:    witness + "/gaps.go",
			Cut:     "return g.passesOver() && ",
			With:    "return ",
			Package: witness,
			Tests:   []string{"TestForgive_TakesNothingForALineThatIsNoGap"},
		},
		{
			Name:    "witness: a line that accepts settings forgives no loss",
			File:    witness + "/gaps.go",
			Cut:     "return g.To.After(g.From) // at one time, it is the settings that are accepted",
			With:    "return true",
			Package: witness,
			Tests:   []string{"TestForgive_TakesNothingForALineThatIsNoGap"},
		},
		{
			Name:    "witness: no line forgives what its stream had passed",
			File:    witness + "/gaps.go",
			Cut:     " && !at.Before(g.passed)",
			Package: witness,
			Tests:   []string{"TestForgive_TakesNothingThatACheckpointHadPassed"},
		},
		{
			Name:    "witness: a line that is announced forgives no loss",
			File:    witness + "/gaps.go",
			Cut:     "case g.Unfinished:",
			With:    "case false:",
			Package: witness,
			Tests:   []string{"TestForgive_TakesNothingThatACheckpointHadPassed"},
		},
		{
			Name:    "witness: a line of the ledger is held against the cluster time of a change",
			File:    witness + "/gaps.go",
			Cut:     "at, known = w.documents.writtenAt(e)",
			With:    "at, known = w.Ledger.WrittenAt(e.Aggregate, e.Version)",
			Package: witness,
			Tests:   []string{"TestForgive_GoesByTheClusterTimeOfChangesThatAreDocuments"},
		},
		{
			Name:    "witness: a cluster time that was seen is held against the ledger without slack",
			File:    witness + "/gaps.go",
			Cut:     "return at, 0, known",
			With:    "return at, gapSlack, known",
			Package: witness,
			Tests:   []string{"TestForgive_GoesByTheClusterTimeOfChangesThatAreDocuments"},
		},
		{
			Name:    "witness: a line of one partition forgives no loss of another",
			File:    validate + "/stream.go",
			Cut:     "h.Sum64()%partitions == index",
			With:    "index < partitions",
			Package: witness,
			Tests:   []string{"TestForgive_TakesNothingForALineThatIsNoGap"},
		},
		{
			Name:    "witness: parked changes that are gone are forgiven by their names",
			File:    witness + "/decisions.go",
			Cut:     "if g.Decision == discarded || g.Decision == lost {",
			With:    "if g.Decision == discarded {",
			Package: witness,
			Tests:   []string{"TestForgive_TakesWhatAnOperatorHasLeftOut"},
		},
		{
			Name:    "witness: an empty history passes no check",
			File:    witness + "/checks.go",
			Cut:     "if v.Unseen[f.Name] {",
			With:    "if f.Name == \"\" {",
			Package: witness,
			Tests:   []string{"TestVerdict_AHistoryWithoutAnEntryShowsNothing"},
		},
		{
			Name:    "witness: an order that nobody saw is told",
			File:    validate + "/shadow.go",
			Cut:     "|| got.Unseen == 0:",
			With:    "|| got.Unseen >= 0:",
			Package: witness,
			Tests:   []string{"TestJudge_TellsOfWhatTheOrderWasNotSeen"},
		},
		{
			Name:    "witness: each stream counts terms of its own",
			File:    validate + "/terms.go",
			Cut:     "term{s.Stream, s.Term}",
			With:    "term{\"\", s.Term}",
			Package: validate,
			Tests:   []string{"TestTerms_StreamsHaveTermsOfTheirOwn"},
		},
		{
			Name:    "witness: a term that another stream has claimed is not claimed",
			File:    validate + "/messages.go",
			Cut:     "stream, term := sends[i].Stream, sends[i].Term",
			With:    "stream, term := \"\", sends[i].Term",
			Package: validate,
			Tests:   []string{"TestTerms_StreamsHaveTermsOfTheirOwn"},
		},
		{
			Name:    "witness: a deleted document keeps nothing but its position",
			File:    read + "/readmodel.go",
			Cut:     "if !deleted || len(doc) > 0 {",
			With:    "if !deleted {",
			Package: witness,
			Tests:   []string{"TestWitness_TheVerdictFindsWhatWasDoneWrong"},
		},
		{
			Name:    "witness: the encoding of a body is none but that of a packed one",
			File:    expect + "/seen.go",
			Cut:     "if encoding := encodingOf(m); encoding != none && encoding != packing {",
			With:    "if encodingOf(m) == \"\" {",
			Package: expect,
			Tests:   []string{"TestSeen_NamesWhatNoMessageHas"},
		},
		{
			Name:    "witness: no message is put off",
			File:    expect + "/seen.go",
			Cut:     "if m.ScheduledEnqueueTime != nil {",
			With:    "if m.ScheduledEnqueueTime != nil && m.MessageID == none {",
			Package: witness,
			Tests:   []string{"TestWitness_TheVerdictFindsEveryPartOfAMessageThatIsUnlikeItsDocument"},
		},
		{
			Name:    "witness: what another group has set aside is found",
			File:    witness + "/rest.go",
			Cut:     "of = append(of, collection+\".\"+group)",
			With:    "_ = group",
			Package: witness,
			Tests:   []string{"TestAtRest_FindsWhatAnotherGroupLeavesBehind"},
		},
		{
			Name:    "witness: what is archived is due to another group as well",
			File:    witness + "/verdict.go",
			Cut:     "ofOthers = truth.forOthers()",
			With:    "ofOthers = newRecord(w.projection)",
			Package: witness,
			Tests:   []string{"TestJudge_AnotherGroupHasWhatTheFirstHalts"},
		},
		{
			Name:    "witness: the order in which another group applies events is seen",
			File:    witness + "/shadow.go",
			Cut:     ".And(others).And(unordered)",
			With:    ".And(validate.Findings{Count: 0 * (others.Count + unordered.Count)})",
			Package: witness,
			Tests:   []string{"TestJudge_FindsWhatAnotherGroupHasAppliedInAnotherOrder"},
		},
		{
			Name:    "witness: dead letters of another group are found",
			File:    witness + "/deadletters.go",
			Cut:     "w.deadLetteredOf(ctx, client, subscription, of, &found)",
			With:    "w.deadLetteredOf(ctx, client, w.names.Subscription+subscription[:0], of, &found)",
			Package: witness,
			Tests:   []string{"TestAtRest_FindsWhatAnotherGroupLeavesBehind"},
		},
		{
			Name:    "witness: a locked session of another group is found",
			File:    witness + "/stopped.go",
			Cut:     "status.Entity(w.names.Topic + \"/Subscriptions/\" + name).SessionsLocked",
			With:    "status.Entity(w.names.Topic + \"/Subscriptions/\" + w.names.Subscription + name[:0]).SessionsLocked",
			Package: witness,
			Tests:   []string{"TestAtStop_FindsLockedSessionsAndOpenStreams"},
		},
		{
			Name:    "witness: skipped events are found",
			File:    witness + "/rest.go",
			Cut:     "\t\t{SkippedEvents, skippedEvents, lacked},\n",
			Package: witness,
			Tests:   []string{"TestAtRest_FindsSkippedEvents"},
		},
		{
			Name:    "witness: gaps in the ledger are found",
			File:    witness + "/rest.go",
			Cut:     "bson.A{\"begin\", \"void\"}",
			With:    "bson.A{\"begin\", \"void\", \"set\"}",
			Package: witness,
			Tests:   []string{"TestAtRest_FindsLinesOfTheLedger"},
		},
		{
			Name:    "crash points: transactions are written in every mode",
			File:    crash + "/config.go",
			Cut:     "\tm.Keyed = true\n",
			Package: crash,
			Tests:   []string{"TestConfig_StepsOfTransactionsComeByInEveryMode"},
		},
		{
			Name:    "cluster: a database that cannot be looked at is not without secrets",
			File:    cluster + "/leaks.go",
			Cut:     "return found, errors.Join(err, failed)",
			With:    "_ = failed\n\treturn found, err",
			Package: cluster + "/clustertest",
			Tests:   []string{"TestLeaks_ASecretIsFoundWhereverItIsShown"},
		},
		{
			Name:    "cluster: secrets are looked for in what twins write",
			File:    cluster + "/leaks.go",
			Cut:     "slices.Concat(c.Publishers, c.Projectors, c.madeTwins())",
			With:    "slices.Concat(c.Publishers, c.Projectors)",
			Package: cluster + "/clustertest",
			Tests:   []string{"TestLeaks_ASecretIsFoundWhereverItIsShown"},
		},
		{
			Name:    "report: a search that failed has not found nothing",
			File:    report + "/report.go",
			Cut:     "if failed != nil {\n\t\treturn Impossible(name, 0",
			With:    "if failed != nil && name == \"\" {\n\t\treturn Impossible(name, 0",
			Package: report,
			Tests:   []string{"TestNoneOf_ASearchThatFailedHasNotFoundNothing"},
		},
		{
			Name:    "witness: only an order that a write hides is excused",
			File:    watch + "/tallies.go",
			Cut:     "if len(versions) == Named {",
			With:    "if len(versions) <= Named {",
			Package: watch,
			Tests:   []string{"TestTallies_GatherWhatEachWriteAppended"},
		},
	}
}
