package publisher

import "changerelay/services/e2e/internal/campaign/mutation/guard"

// resendGoneGuards are the guards that notice what became of the record of a resend, or of
// its documents.
func resendGoneGuards() []guard.Guard {
	const (
		file  = stream + "/resendgone.go"
		fewer = "TestResend_FewerDocumentsAreAllWhereTheStreamHasRemovals"
	)
	return []guard.Guard{
		{
			Name:    "resend: documents that the stream tells to be removed are not missing",
			File:    stream + "/resend.go",
			Cut:     "Removals: t.config.Mode == config.ModeDocuments",
			With:    "Removals: false",
			Package: app,
			Tests:   []string{"TestResend_OfDocumentsIsDoneAlthoughSomeAreDeletedMeanwhile"},
		},
		{
			Name:    "resend: documents that a filter leaves out by now are missing",
			File:    resend + "/runner.go",
			Cut:     " && !record.Selection.Filtered()",
			With:    "",
			Package: resend,
			Tests:   []string{fewer},
		},
		{
			Name:    "resend: documents of a collection that may be another one are missing",
			File:    resend + "/runner.go",
			Cut:     ` && record.Collection != "" && !record`,
			With:    " && !record",
			Package: resend,
			Tests:   []string{fewer},
		},
		{
			Name:    "resend: one that ended is known to have ended where another one runs",
			File:    file,
			Cut:     "if under != nil && (err != nil || under.ID != record.ID) {",
			With:    "if under != nil && err != nil {",
			Package: stream,
			Tests:   []string{"TestResends_WhatBecomesOfARecordIsInTheLedger"},
		},
		{
			Name:    "resend: one that ended is known to have ended where none runs",
			File:    file,
			Cut:     "if under != nil && (err != nil || under.ID != record.ID) {",
			With:    "if under != nil && err == nil && under.ID != record.ID {",
			Package: stream,
			Tests:   []string{"TestResends_WhatBecomesOfARecordIsInTheLedger"},
		},
		{
			Name:    "resend: none is taken while a loss cannot be entered",
			File:    file,
			Cut:     "if missed := s.look(ctx, part, under); missed != nil {",
			With:    "if missed := s.look(ctx, part, under); missed != nil && err == nil {",
			Package: stream,
			Tests:   []string{"TestResends_WhatCannotBeEnteredIsEnteredLater"},
		},
		{
			Name:    "resend: the next one is no older copy",
			File:    file,
			Cut:     "older := under != nil && under.ID == record.ID && record",
			With:    "older := under != nil && record",
			Package: stream,
			Tests:   []string{"TestResends_WhatBecomesOfARecordIsInTheLedger"},
		},
		{
			Name:    "resend: one that runs again is said to once",
			File:    file,
			Cut:     "\tdelete(s.seen.over, record.ID)\n",
			With:    "",
			Package: stream,
			Tests:   []string{"TestResends_WhatBecomesOfARecordIsInTheLedger"},
		},
		{
			Name:    "resend: one that is gone is missed where its progress is saved",
			File:    file,
			Cut:     "if errors.Is(err, resend.ErrSuperseded) {",
			With:    `if errors.Is(err, resend.ErrSuperseded) && id == "" {`,
			Package: stream,
			Tests:   []string{"TestResends_WhatBecomesOfARecordIsInTheLedger"},
		},
		{
			Name:    "resend: how far one is is known when it was saved",
			File:    file,
			Cut:     "under.Parts[part] = progress",
			With:    "_ = under.Parts",
			Package: stream,
			Tests:   []string{"TestResends_WhatBecomesOfARecordIsInTheLedger"},
		},
		{
			Name:    "resend: a loss is entered until it is",
			File:    file,
			Cut:     "if err := s.lost(ctx, under); err != nil {",
			With:    "if err := s.lost(ctx, under); err != nil && part < 0 {",
			Package: stream,
			Tests:   []string{"TestResends_WhatCannotBeEnteredIsEnteredLater"},
		},
		{
			Name:    "resend: one that has ended is remembered",
			File:    file,
			Cut:     "s.seen.over[under.ID] = true",
			With:    "_ = s.seen.over",
			Package: stream,
			Tests:   []string{"TestResends_WhatBecomesOfARecordIsInTheLedger"},
		},
		{
			Name:    "resend: one that is paused is still under way",
			File:    file,
			Cut:     "case !found.Parts[part].Done:",
			With:    "case !found.Parts[part].Done && part < 0:",
			Package: stream,
			Tests:   []string{"TestResends_WhatBecomesOfARecordIsInTheLedger"},
		},
	}
}
