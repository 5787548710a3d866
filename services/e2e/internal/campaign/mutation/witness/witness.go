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
	)
	return []guard.Guard{
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
			Cut:     "\tcase late:\n\t\tr.oweChange(c)\n",
			With:    "\tcase late:\n",
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
			Name:    "bench: rows are measured in an order that is drawn",
			File:    bench + "/order.go",
			Cut:     "b.order.Shuffle(len(places), func(i, j int) { places[i], places[j] = places[j], places[i] })",
			With:    "b.order.Shuffle(len(places), func(i, j int) {})",
			Package: bench,
			Tests:   []string{"TestRounds_AreMeasuredInAnOrderThatIsDrawnAndShownInTheirOwn"},
		},
	}
}
