package witness

import "changerelay/services/e2e/internal/campaign/mutation/guard"

// Causes are guards of what faults may explain, and of what settings make of messages.
func Causes() []guard.Guard {
	const (
		chaos    = "services/e2e/internal/campaign/chaos"
		crash    = "services/e2e/internal/campaign/crashpoint"
		validate = "services/e2e/internal/check/validate"
	)
	return []guard.Guard{
		{
			Name:    "witness: a fault that is over long before explains nothing",
			File:    validate + "/causes.go",
			Cut:     " && !t.To.Before(from)",
			Package: validate,
			Tests:   []string{"TestCauses_AMessageOfAnOldTermThatIsLateNeedsOne", "TestCauses_AWriteOfAHoldThatIsOverNeedsOne"},
		},
		{
			Name:    "witness: a fault that comes after explains nothing",
			File:    validate + "/causes.go",
			Cut:     " && !t.From.After(to)",
			Package: validate,
			Tests:   []string{"TestCauses_AMessageOfAnOldTermThatIsLateNeedsOne", "TestCauses_AWriteOfAHoldThatIsOverNeedsOne"},
		},
		{
			Name:    "witness: a fault of another service explains nothing",
			File:    validate + "/causes.go",
			Cut:     "(t.Node == \"\" || t.Node == node) && ",
			Package: validate,
			Tests:   []string{"TestCauses_AMessageOfAnOldTermThatIsLateNeedsOne", "TestCauses_AWriteOfAHoldThatIsOverNeedsOne"},
		},
		{
			Name:    "witness: a term is explained by what its own stream's leader suffers",
			File:    validate + "/causes.go",
			Cut:     "owners[termOf(s)]",
			With:    "owners[term{claims[0].Stream, s.Term}]",
			Package: validate,
			Tests:   []string{"TestCauses_TermsArePartitionsOwn"},
		},
		{
			Name:    "witness: servers that answer late are noticed",
			File:    "services/e2e/internal/check/witness/probe.go",
			Cut:     "err != nil || to.Sub(from) > answerTime",
			With:    "err != nil && to.Sub(from) > answerTime",
			Package: "services/e2e/internal/check/witness",
			Tests:   []string{"TestProbe_TellsWhenTheServersAnsweredLate"},
		},
		{
			Name:    "chaos: only a fault that delays what is sent explains what comes late",
			File:    chaos + "/troubles.go",
			Cut:     "return e.delays",
			With:    "return e.delays || e.takes",
			Package: chaos,
			Tests:   []string{"TestExplained_OnlyByFaultsThatCan"},
		},
		{
			Name:    "chaos: a fault of one service explains nothing of others",
			File:    chaos + "/troubles.go",
			Cut:     "if slices.Contains(strings.Fields(what), n.Name) {",
			With:    "if what != \"\" {",
			Package: chaos,
			Tests:   []string{"TestExplained_OnlyByFaultsThatCan"},
		},
		{
			Name:    "chaos: a wrong clock of the servers explains nothing once they have the right one",
			File:    chaos + "/troubles.go",
			Cut:     "&& s.to.Before(right)",
			With:    "&& right.IsZero()",
			Package: chaos,
			Tests:   []string{"TestTroubles_AWrongClockOfTheServersLastsUntilTheyStartAgain"},
		},
		{
			Name:    "chaos: what no fault explains is found",
			File:    chaos + "/judge.go",
			Cut:     "append(r.Figures, figure), unexplained",
			With:    "append(r.Figures, figure), unexplained.And(validate.Findings{Count: -unexplained.Count})",
			Package: chaos,
			Tests:   []string{"TestJudge_WhatNoFaultExplainsFails"},
		},
		{
			Name:    "witness: what messages do not show it does not expect",
			File:    "services/e2e/internal/check/witness/record.go",
			Cut:     "e.Document, e.Data = document, fields[\"data\"]",
			With:    "_, _ = document, fields",
			Package: "services/e2e/internal/check/witness",
			Tests:   []string{"TestRecord_ExpectsNothingOfWhatIsHidden"},
		},
		{
			Name:    "witness: what is hidden is so in documents of arrays, too",
			File:    "services/e2e/internal/check/expect/hidden.go",
			Cut:     "append(left, shownIn(element, below))",
			With:    "append(left, element)",
			Package: "services/e2e/internal/check/expect",
			Tests:   []string{"TestHidden_LeavesOutAndMasksWhatItNames"},
		},
		{
			Name:    "campaigns: a skipped event has a record",
			File:    "services/e2e/internal/check/witness/skipped.go",
			Cut:     "found.Add(\"%s of %s, version %d, has no record\", id, of.aggregate, of.version)",
			With:    "_, _ = id, of",
			Package: "services/e2e/internal/check/witness",
			Tests:   []string{"TestAtRest_TellsSkippedEventsThatAreExpectedFromOthers"},
		},
		{
			Name:    "campaigns: the record of a skipped event has its message",
			File:    "services/e2e/internal/check/witness/skipped.go",
			Cut:     "len(unlike) > 0",
			With:    "len(unlike) < 0",
			Package: "services/e2e/internal/check/witness",
			Tests:   []string{"TestAtRest_FindsRecordsOfSkippedEventsWithoutTheirMessage"},
		},
		{
			Name:    "campaigns: what is dead-lettered for another reason is no policy's",
			File:    "services/e2e/internal/check/witness/deadletters.go",
			Cut:     "due && text(m.DeadLetterReason) == notApplied",
			With:    "due && text(m.DeadLetterReason) != \"\"",
			Package: "services/e2e/internal/check/witness",
			Tests:   []string{"TestAtRest_TellsDeadLettersThatAreExpectedFromOthers"},
		},
		{
			Name:    "campaigns: what a policy dead-letters is among the dead letters",
			File:    "services/e2e/internal/check/witness/deadletters.go",
			Cut:     "found.Add(\"message %s of %s, version %d, is not among them\", id, e.aggregate, e.version)",
			With:    "_, _ = id, e",
			Package: "services/e2e/internal/check/witness",
			Tests:   []string{"TestAtRest_TellsDeadLettersThatAreExpectedFromOthers"},
		},
		{
			Name:    "campaigns: what was there before the stream is copied",
			File:    "services/e2e/internal/check/validate/messages.go",
			Cut:     "case !s.Copied && before[s.Event] && !came[s.Event]:",
			With:    "case false:",
			Package: "services/e2e/internal/check/validate",
			Tests:   []string{"TestMessages_FaultsAreFound"},
		},
		{
			Name:    "campaigns: nothing is copied once the stream has begun",
			File:    "services/e2e/internal/check/validate/messages.go",
			Cut:     "(before == nil || follows && s.Term >= term)",
			With:    "before == nil && term == 0",
			Package: "services/e2e/internal/check/validate",
			Tests:   []string{"TestMessages_FaultsAreFound"},
		},
		{
			Name:    "campaigns: what an update says of a hidden field is hidden",
			File:    "services/e2e/internal/check/expect/hidden.go",
			Cut:     "switch below, itself := h.underDotted(e.Key()); {",
			With:    "switch below, itself := under(h.hidings(), e.Key()); {",
			Package: "services/e2e/internal/check/expect",
			Tests:   []string{"TestHidden_LeavesOutAndMasksWhatAChangeSays"},
		},
		{
			Name:    "chaos: a mistake names another number of partitions",
			File:    "services/e2e/internal/campaign/chaos/operators.go",
			Cut:     "if setting == \"PARTITIONS=\"+c.mode().Publisher[\"PARTITIONS\"] {",
			With:    "if setting == \"\" {",
			Package: "services/e2e/internal/campaign/chaos",
			Tests:   []string{"TestPlan_OperatorsMistakeTheNumberOfPartitionsWhateverItIs"},
		},
		{
			Name:    "modes: the witness hides what the publishers hide",
			File:    "services/e2e/internal/campaign/modes/surroundings.go",
			Cut:     "judged.Hidden = m.hidden()",
			With:    "_ = m.hidden()",
			Package: "services/e2e/internal/campaign/modes",
			Tests:   []string{"TestDraw_HidesFieldsThatTheWitnessHidesAsWell"},
		},
		{
			Name:    "crash points: what comes late of no kill is found",
			File:    crash + "/judge.go",
			Cut:     "f.Findings = unexplained",
			With:    "f.Findings = unexplained.And(validate.Findings{Count: -unexplained.Count})",
			Package: crash,
			Tests:   []string{"TestJudge_WhatNoKillExplainsFails"},
		},
	}
}
