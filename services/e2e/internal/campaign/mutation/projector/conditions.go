package projector

import "changerelay/services/e2e/internal/campaign/mutation/guard"

// conditionGuards are the guards of what a projection does by a condition, and by what its
// document was.
func conditionGuards() []guard.Guard {
	stored := func(name, file, cut, with string) guard.Guard {
		return guard.Guard{Name: "conditions: " + name, File: readmodel + "/" + file, Cut: cut, With: with, Package: readmodel, Tests: []string{"TestStore_StoreConforms"}}
	}
	decided := func(name, file, cut, with, test string) guard.Guard {
		return guard.Guard{Name: "conditions: " + name, File: projection + "/" + file, Cut: cut, With: with, Package: projection, Tests: []string{test}}
	}
	const whenFalse = "TestWhen_AnEventForWhichItIsFalseChangesNothing"
	const report = "TestWhen_LoadReportsWhatIsWrongWithConditions"
	return []guard.Guard{
		stored("what changes nothing brings back no deleted document", "model.go", `append(guard(w, below, of), bson.E{Key: bookkeeping + ".deletedAt", Value: nil})`, "guard(w, below, of)"),
		stored("what changes nothing makes no document", "model.go", "if w.Kept {", "if w.Kept && w.Delete {"),
		stored("what makes a document is not coalesced with what makes none", "coalescedwrite.go", "u.first(writes).Kept && !w.Kept ||", "u.first(writes).Kept && w.Delete ||"),
		stored("what comes again is not made of what it has made", "ledger.go", "contract.Sequence(sequence) >= w.Event.Sequence", `contract.Sequence(sequence) < ""`),
		stored("a deleted document is none", "ledger.go", `if document == nil || document.Lookup(bookkeeping, "deletedAt").Type != 0 {`, "if document == nil {"),
		stored("the bookkeeping, with its times, decides nothing", "ledger.go", "key != bookkeeping && ", ""),
		stored("a write sees what those before it have made", "ledger.go", "for next < len(places) && writes[places[next]].Complete == nil {", "for next < len(places) {"),
		decided("an event without effect is noted where no document shows it", "frame.go", "f.version > 0 || own != nil && f.keyed", "f.version > 0", whenFalse),
		decided("an event of which no field changes changes nothing", "declared.go", "w.Kept = !r.delete && len(w.Update) == 0", "", whenFalse),
		decided("what is neither true nor false is an error", "value.go", "if !ok {\n\t\treturn false, fmt.Errorf(\"when: the value", "if !ok && w.program == nil {\n\t\treturn false, fmt.Errorf(\"when: the value", "TestWhen_WhatIsNeitherTrueNorFalseFails"),
		decided("documents of many aggregates decide nothing", "rules.go", "if l.keyed && v.usesState() {", "if l.keyed && !l.keyed {", report),
		decided("elements change no documents that show one position", "rules.go", "if !l.keyed {", "if !l.keyed && l.keyed {", "TestForEach_LoadReportsWhatWouldBreakAPromise"),
		decided("all elements of an event share one evaluation's bounds", "value.go", "Spent: env.spent}", "Spent: nil}", "TestForEach_AnElementThatFailsFailsTheEvent"),
		decided("an event has no more elements than one transaction is for", "declared.go", "if len(items) > maxElements {", "if len(items) < 0 {", "TestForEach_AnElementThatFailsFailsTheEvent"),
		decided("what an array takes of a list stays data", "declared.go", "if f.each {", "if f.each && f.last < 0 {", "TestForEach_AnArrayTakesEachElement"),
		{
			Name:    "conditions: what changes nothing moves the position also behind a repeat",
			File:    readmodel + "/coalescedwrite.go",
			Cut:     "moving(last, last.Event.Sequence, now, of)",
			With:    "moving(last, u.first(writes).Event.Sequence, now, of)",
			Package: readmodel,
			Tests:   []string{"TestCoalesce_WhatMovesThePositionDoesSoBehindARepeat"},
		},
		{
			Name:    "conditions: what one event asks twice of a document is applied twice",
			File:    readmodel + "/coalescedwrite.go",
			Cut:     "u.again = w.Keyed && before != nil && before.last(writes).Event == w.Event",
			With:    "u.again = before == u",
			Package: readmodel,
			Tests:   []string{"TestPositions_AnEventChangesADocumentMoreThanOnce"},
		},
		{
			Name:    "conditions: a document that shows a later event is left alone by what was asked twice",
			File:    readmodel + "/positions.go",
			Cut:     "if u.again && e == u.first(writes).Event {",
			With:    "if e == u.first(writes).Event {",
			Package: readmodel,
			Tests:   []string{"TestPositions_AnEventChangesADocumentMoreThanOnce"},
		},
	}
}
