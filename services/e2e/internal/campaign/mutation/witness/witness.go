// Package witness lists guards of what judges the relay.
package witness

import "changerelay/services/e2e/internal/campaign/mutation/guard"

// Guards are guards of those who judge and measure the relay.
func Guards() []guard.Guard {
	const (
		witness = "services/e2e/internal/check/witness"
		writer  = "services/e2e/internal/harness/source"
		bench   = "services/e2e/internal/bench/suite"
		chaos   = "services/e2e/internal/campaign/chaos"
		watch   = "services/e2e/internal/check/watch"

		expect   = "services/e2e/internal/check/expect"
		validate = "services/e2e/internal/check/validate"
	)
	return []guard.Guard{
		{
			Name:    "witness: changes without versions are told apart in documents of a projection in Go",
			File:    witness + "/steps.go",
			Cut:     "Apply(e.Event, at.ID)",
			With:    "Apply(e.Event, at.Type)",
			Package: witness,
			Tests:   []string{"TestDocuments_AreInDocumentsOfAnotherKeyAndOfAProjectionInGo"},
		},
		{
			Name:    "witness: each partition of a topic has an order of its own",
			File:    validate + "/messages.go",
			Cut:     "s.Number >> partitionBits",
			With:    "s.Number >> (partitionBits + 16)",
			Package: validate,
			Tests:   []string{"TestMessages_FaultsAreFound"},
		},
		{
			Name:    "witness: a dead letter leaves its document where it is",
			File:    witness + "/record.go",
			Cut:     "\tr.stay(e)\n",
			Package: witness,
			Tests:   []string{"TestRecord_ADeadLetterLeavesItsDocumentWhereItIs"},
		},
		{
			Name:    "witness: a document that was looked up is not older than its change",
			File:    witness + "/documents.go",
			Cut:     "d.shown[e.Aggregate][e.Version-1:]",
			With:    "d.shown[e.Aggregate]",
			Package: witness,
			Tests:   []string{"TestDocuments_WhatIsLookedUpMayBeYoungerThanItsChangeAndNotOlder"},
		},
		{
			Name:    "witness: only an update shows a document that was looked up",
			File:    witness + "/documents.go",
			Cut:     "if c.Operation == \"update\" {",
			With:    "if c.Operation != \"\" {",
			Package: witness,
			Tests:   []string{"TestDocuments_WhatIsLookedUpMayBeYoungerThanItsChangeAndNotOlder"},
		},
		{
			Name:    "witness: what came late is owed to the topic",
			File:    witness + "/documents.go",
			Cut:     "\tcase late, without:\n\t\tr.oweChange(c)\n",
			With:    "\tcase late, without:\n",
			Package: witness,
			Tests:   []string{"TestDocuments_WhatIsForgivenIsNotCountedAndWhatIsLateIsOwed"},
		},
		{
			Name:    "witness: a document that was put back is not taken for seen",
			File:    watch + "/tallies.go",
			Cut:     "tally, fresh = validate.Tally{Unseen: 1}, count",
			With:    "tally, fresh = validate.Tally{}, count",
			Package: watch,
			Tests:   []string{"TestTallies_ADocumentThatWasPutBackIsNotTakenForSeen"},
		},
		{
			Name:    "witness: a document that was deleted is not taken for seen",
			File:    watch + "/tallies.go",
			Cut:     "\tt.of[document] = validate.Tally{Unseen: 1}\n",
			Package: watch,
			Tests:   []string{"TestTallies_ADocumentThatWasPutBackIsNotTakenForSeen"},
		},
		{
			Name:    "load: no command inserts a document and deletes it",
			File:    writer + "/documents.go",
			Cut:     "if ends && inserted[e.Aggregate] {",
			With:    "if false {",
			Package: writer,
			Tests:   []string{"TestDocumentWriter_MakesEachChangeOnce"},
		},
		{
			Name:    "chaos: nothing is done to servers that are given",
			File:    chaos + "/operators.go",
			Cut:     "if c.Backend == nil {",
			With:    "if c.Lease > 0 {",
			Package: chaos,
			Tests:   []string{"TestPlan_NothingIsDoneToServersThatAreGiven"},
		},
		{
			Name:    "witness: a resent message names the message that it repeats",
			File:    expect + "/resend.go",
			Cut:     "m.MessageID != of+\"~\"+r.ID",
			With:    "m.MessageID == \"\"",
			Package: expect,
			Tests:   []string{"TestResend_AMessageThatIsSentAgainHasThePartsOfTheFirst"},
		},
		{
			Name:    "witness: what a message has beyond what is owed is found in its fields as well",
			File:    expect + "/seen.go",
			Cut:     "if text(field.is) != none {",
			With:    "if field.name == \"\" {",
			Package: witness,
			Tests:   []string{"TestWitness_TheVerdictFindsEveryPartOfAMessageThatIsUnlikeItsDocument"},
		},
		{
			Name:    "witness: positions rise",
			File:    validate + "/messages.go",
			Cut:     "s.Place == last.Place && ",
			With:    "s.Place == 0 && ",
			Package: witness,
			Tests:   []string{"TestWitness_TheVerdictFindsWhatWasDoneWrong"},
		},
		{
			Name:    "witness: what is sent as a copy's is found",
			File:    witness + "/verdict.go",
			Cut:     "{Copied, validate.Copied(sends, w.copied)}",
			With:    "{Copied, validate.Findings{}}",
			Package: witness,
			Tests:   []string{"TestWitness_TheVerdictFindsWhatWasDoneWrong"},
		},
		{
			Name:    "witness: a message of another source is found",
			File:    witness + "/verdict.go",
			Cut:     "{Foreign, w.Observer.Foreign()}",
			With:    "{Foreign, validate.Findings{}}",
			Package: witness,
			Tests:   []string{"TestWitness_TheVerdictFindsWhatWasDoneWrong"},
		},
		{
			Name:    "witness: a dead letter of another source is found in a sandbox",
			File:    witness + "/deadletters.go",
			Cut:     "w.endpoints.SandboxStatusURL == \"\" && known",
			With:    "known",
			Package: witness,
			Tests:   []string{"TestAtRest_FindsWhatIsLeftBehind"},
		},
		{
			Name:    "witness: a message that the broker may drop is found",
			File:    validate + "/messages.go",
			Cut:     "s.TimeToLive > 0 {",
			With:    "s.TimeToLive < 0 {",
			Package: witness,
			Tests:   []string{"TestWitness_TheVerdictFindsWhatWasDoneWrong"},
		},
		{
			Name:    "witness: what is resent comes behind what it repeats",
			File:    validate + "/resent.go",
			Cut:     "case !live[s.Event]:",
			With:    "case s.Aggregate == \"\":",
			Package: validate,
			Tests:   []string{"TestResent_WhatOvertakesTheStreamIsFound"},
		},
		{
			Name:    "witness: what a view shows beyond its events is found",
			File:    witness + "/repairs.go",
			Cut:     "\t\t\t\ts.documents[id][field] = \"should not be there\"\n",
			With:    "\t\t\t\t_, _ = id, field\n",
			Package: witness,
			Tests:   []string{"TestJudge_FindsWhatWasBuiltAnewWrong"},
		},
		{
			Name:    "witness: an aggregate that has to be halted and is not is found",
			File:    witness + "/halted.go",
			Cut:     "\t\tfound.Add(\"%s is not in %s\", aggregate, collection)\n",
			With:    "\t\t_ = aggregate\n",
			Package: witness,
			Tests:   []string{"TestAtRest_TellsHaltsThatAreExpectedFromOthers"},
		},
		{
			Name:    "chaos: readers see no document that its events do not make",
			File:    chaos + "/readers.go",
			Cut:     "case !r.follows(before, &now):",
			With:    "case now.ID == \"\":",
			Package: chaos,
			Tests:   []string{"TestReader_FindsWhatIsNeitherOldNorNew"},
		},
		{
			Name:    "bench: rows are measured in an order that is drawn",
			File:    bench + "/order.go",
			Cut:     "b.order.Shuffle(len(places), func(i, j int) { places[i], places[j] = places[j], places[i] })",
			With:    "b.order.Shuffle(len(places), func(i, j int) {})",
			Package: bench,
			Tests:   []string{"TestRounds_AreMeasuredInAnOrderThatIsDrawnAndShownInTheirOwn"},
		},
	}
}
