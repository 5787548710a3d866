package projector

import "changerelay/services/e2e/internal/campaign/mutation/guard"

// sourceGuards are the guards that keep two sources with one aggregate id apart.
func sourceGuards() []guard.Guard {
	const (
		apart     = "TestSources_NothingIsWrittenOverAnotherSource"
		continued = "TestSources_WhatContinuesIsComparedBySequence"
		renamed   = "TestSources_OneThatContinuesAnotherGoesOnOnceThatIsSaid"
	)
	return []guard.Guard{
		{
			Name:    "sources: a document is written over its own source alone",
			File:    readmodel + "/model.go",
			Cut:     "}, of.ofSource(bookkeeping+\".source\", w.Event)...)",
			With:    "}, of.ofSource(bookkeeping+\".source\", w.Event)[:0]...)",
			Package: readmodel,
			Tests:   []string{apart},
		},
		{
			Name:    "sources: the ledger moves over its own source alone",
			File:    readmodel + "/ledger.go",
			Cut:     "of.ofSource(\"source\", e)...)",
			With:    "of.ofSource(\"source\", e)[:0]...)",
			Package: readmodel,
			Tests:   []string{apart},
		},
		{
			Name:    "sources: an event of another source is no repeat",
			File:    readmodel + "/pass.go",
			Cut:     "case why != \"\":",
			With:    "case why != \"\" && learned:",
			Package: readmodel,
			Tests:   []string{apart},
		},
		{
			Name:    "sources: nor is one of a projection with a key",
			File:    readmodel + "/refusal.go",
			Cut:     "case why != \"\" && !first.Passed:",
			With:    "case why != \"\" && !first.Passed && learned:",
			Package: readmodel,
			Tests:   []string{apart},
		},
		{
			Name:    "sources: events of two are not folded",
			File:    readmodel + "/unit.go",
			Cut:     " && w.Event.Source == last.Event.Source",
			With:    "",
			Package: readmodel,
			Tests:   []string{apart},
		},
		{
			Name:    "sources: events of two do not move the ledger together",
			File:    readmodel + "/ledger.go",
			Cut:     " || next.Source != last.Source",
			With:    "",
			Package: readmodel,
			Tests:   []string{apart},
		},
		{
			Name:    "sources: a document of another source is looked at, however low it is",
			File:    readmodel + "/refusal.go",
			Cut:     "at.Sequence < w.Event.Sequence && at.Other == \"\"",
			With:    "at.Sequence < w.Event.Sequence",
			Package: readmodel,
			Tests:   []string{apart},
		},
		{
			Name:    "sources: what is passed by does not move how far another one is",
			File:    readmodel + "/refusal.go",
			Cut:     "case why != \"\": // no document changes, and how far the other source is stays as it is\n\t\tp.passOther(mine, at)\n\t\treturn nil",
			With:    "case why != \"\":\n\t\treturn reject(mine[0], why)",
			Package: readmodel,
			Tests:   []string{"TestSources_WhatIsPassedByMovesNothingOfAnotherSource"},
		},
		{
			Name:    "sources: what an older release has written is taken over",
			File:    readmodel + "/sources.go",
			Cut:     "known := bson.A{nil} // noted by an older release",
			With:    "known := bson.A{}",
			Package: readmodel,
			Tests:   []string{"TestSources_AnUnknownOneIsTakenOver"},
		},
		{
			Name:    "sources: the same event under another name is no second one",
			File:    readmodel + "/pass.go",
			Cut:     "e.ID != at.EventID && !another(e, at)",
			With:    "e.ID != at.EventID",
			Package: readmodel,
			Tests:   []string{continued},
		},
		{
			Name:    "sources: one goes on from those that are far, too",
			File:    readmodel + "/sources.go",
			Cut:     "for i := 0; i < len(all); i++ {",
			With:    "for i := 0; i < 1; i++ {",
			Package: readmodel,
			Tests:   []string{continued},
		},
		{
			Name:    "sources: what comes late of the earlier one is a repeat",
			File:    readmodel + "/sources.go",
			Cut:     "return e.Sequence <= at.Sequence && slices.Contains(s.taken(at.Source), e.Source)",
			With:    "return false",
			Package: readmodel,
			Tests:   []string{continued},
		},
		{
			Name:    "sources: and above what follows it, it is refused",
			File:    readmodel + "/sources.go",
			Cut:     "return e.Sequence <= at.Sequence && slices.Contains(s.taken(at.Source), e.Source)",
			With:    "return slices.Contains(s.taken(at.Source), e.Source)",
			Package: readmodel,
			Tests:   []string{continued},
		},
		{
			Name:    "sources: that one continues another is looked up before anything is halted",
			File:    readmodel + "/sources.go",
			Cut:     "if err := s.look(ctx); err != nil {\n\t\treturn \"\", false, err\n\t}\n\tif s.fits(e, at) {",
			With:    "if err := ctx.Err(); err != nil {\n\t\treturn \"\", false, err\n\t}\n\tif s.fits(e, at) {",
			Package: readmodel,
			Tests:   []string{continued},
		},
		{
			Name:    "sources: a redrive takes the same events for repeats",
			File:    delivery + "/putback.go",
			Cut:     ", at.Continued && at.Sequence >= w.Event.Sequence:",
			With:    ":",
			Package: app,
			Tests:   []string{renamed},
		},
		{
			Name:    "sources: a redrive stops before an event of another one, and a rehearsal, too",
			File:    delivery + "/lost.go",
			Cut:     "return due, other, err",
			With:    "_ = other\n\t\treturn due, \"\", err",
			Package: app,
			Tests:   []string{"TestSources_AnEventOfAnotherSourceHaltsItsAggregate"},
		},
		{
			Name:    "sources: status tells of those that are halted for them",
			File:    command + "/statuscommand.go",
			Cut:     "if len(apart) > 0 {",
			With:    "if len(apart) < 0 {",
			Package: app,
			Tests:   []string{"TestSources_AnEventOfAnotherSourceHaltsItsAggregate"},
		},
		{
			Name:    "sources: a dead letter of another one is not put back",
			File:    delivery + "/putback.go",
			Cut:     "if other != \"\" {",
			With:    "if other != \"\" && l == nil {",
			Package: app,
			Tests:   []string{"TestSources_ADeadLetterOfAnotherSourceIsNotPutBack"},
		},
		{
			Name:    "sources: what is taken back is not believed for ever",
			File:    readmodel + "/sources.go",
			Cut:     "if time.Since(s.asOf) > sourcesTrusted {",
			With:    "if s.asOf.IsZero() {",
			Package: readmodel,
			Tests:   []string{"TestSources_WhatIsTakenBackIsNotBelievedForEver"},
		},
		{
			Name:    "sources: an event of another one behind a repeat is none",
			File:    readmodel + "/pass.go",
			Cut:     "write.Event.Sequence <= at.Sequence && p.store.sources.fits(write.Event, at) &&",
			With:    "write.Event.Sequence <= at.Sequence &&",
			Package: readmodel,
			Tests:   []string{"TestSources_NothingIsWrittenOverAnotherSource"},
		},
	}
}
