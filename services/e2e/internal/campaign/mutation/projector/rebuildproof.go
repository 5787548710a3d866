package projector

import "changerelay/services/e2e/internal/campaign/mutation/guard"

// rebuildProofGuards are the guards of how a rebuild knows that everything was resent.
func rebuildProofGuards() []guard.Guard {
	const (
		reports   = "TestRebuild_GoesByWhatThePublisherReports"
		early     = "TestRebuild_WhatWasResentBeforeItsOwnResendCounts"
		documents = "TestRebuild_OfDocumentsGoesByTheLastResendOfEverything"
		words     = "TestRebuild_ResentWithoutAReportSaysWhatToType"
		nothing   = "TestRebuild_OfWhichNothingHasArrivedIsNotDone"
		back      = "TestRebuild_OfADatabaseThatWentBackBeginsAnew"
	)
	return []guard.Guard{
		{
			Name:    "rebuild: a report is judged",
			File:    command + "/rebuildproof.go",
			Cut:     `if missing == "" && (len(refused) == 0 || r.o.force) {`,
			With:    `if missing != "never" {`,
			Package: app,
			Tests:   []string{reports},
		},
		{
			Name:    "rebuild: a resend that a report shows on its way is waited for",
			File:    command + "/rebuildproof.go",
			Cut:     "case !last.Ended():",
			With:    `case last.Ended() && last.State == "":`,
			Package: app,
			Tests:   []string{reports},
		},
		{
			Name:    "rebuild: a report without the resend of everything is none, even with --force",
			File:    command + "/rebuildproof.go",
			Cut:     "missing := r.unproven(last)",
			With:    `missing := ""`,
			Package: app,
			Tests:   []string{reports},
		},
		{
			Name:    "rebuild: a report that is cut is seen by its numbers",
			File:    command + "/rebuildproof.go",
			Cut:     "if r.cut(r.report) {",
			With:    "if r.cut(r.report) && first == nil {",
			Package: app,
			Tests:   []string{reports},
		},
		{
			Name:    "rebuild: a list of the publisher that is cut is none",
			File:    command + "/rebuildresend.go",
			Cut:     "if len(lacking) > 0 && !r.o.force {",
			With:    "if len(lacking) > 0 && r == nil {",
			Package: app,
			Tests:   []string{"TestRebuild_ThePublisherPrintsAllResendsSinceItBegan"},
		},
		{
			Name:    "rebuild: a report of another source is none",
			File:    command + "/rebuildproof.go",
			Cut:     "slices.Concat(r.doubts(), other, r.leftOut(sent))",
			With:    "slices.Concat(r.doubts(), r.leftOut(sent), other[:0])",
			Package: app,
			Tests:   []string{reports},
		},
		{
			Name:    "rebuild: what a report says is left out counts",
			File:    command + "/rebuildproof.go",
			Cut:     "slices.Concat(r.doubts(), other, r.leftOut(sent))",
			With:    "slices.Concat(r.doubts(), other)",
			Package: app,
			Tests:   []string{reports},
		},
		{
			Name:    "rebuild: a word is no report",
			File:    command + "/rebuild.go",
			Cut:     `case c.Flags().Changed("resent") && !reportNamed(o.resent):`,
			With:    `case c.Flags().Changed("resent") && o.resent == "never":`,
			Package: app,
			Tests:   []string{words},
		},
		{
			Name:    "rebuild: what was resent before its own resend counts",
			File:    command + "/rebuildproof.go",
			Cut:     "return sentFor{all[:first], before}",
			With:    "return sentFor{all[:first], before[:0]}",
			Package: app,
			Tests:   []string{early},
		},
		{
			Name:    "rebuild: what had ended before it began does not count",
			File:    command + "/rebuildproof.go",
			Cut:     "if past := slices.IndexFunc(before, r.past); past >= 0 {",
			With:    "if past := slices.IndexFunc(before, r.past); past > len(before) {",
			Package: app,
			Tests:   []string{early},
		},
		{
			Name:    "rebuild: the clock by which one had ended may be behind",
			File:    command + "/rebuildproof.go",
			Cut:     "s.EndedAt.Before(r.record.BeganAt.Add(-clocksApart))",
			With:    "s.EndedAt.Before(r.record.BeganAt)",
			Package: app,
			Tests:   []string{early},
		},
		{
			Name:    "rebuild: of documents the last resend of everything counts alone",
			File:    command + "/rebuildproof.go",
			Cut:     "last.Mode == contract.ResendOfDocuments {",
			With:    `last.Mode == "never" {`,
			Package: app,
			Tests:   []string{documents},
		},
		{
			Name:    "rebuild: a version that has nothing of what was sent is not complete",
			File:    command + "/rebuildsteps.go",
			Cut:     "slices.Concat(refused, nothing, lacks)",
			With:    "slices.Concat(refused, nothing[:0], lacks)",
			Package: app,
			Tests:   []string{nothing},
		},
		{
			Name:    "rebuild: a publisher of another source is asked for nothing",
			File:    command + "/rebuildresend.go",
			Cut:     "return append(refused, other...), err",
			With:    "return append(refused, other[:0]...), err",
			Package: app,
			Tests:   []string{nothing},
		},
		{
			Name:    "rebuild: a read database that went back has not what was resent",
			File:    command + "/rebuild.go",
			Cut:     "if r.record.WentBack {",
			With:    "if r.record.WentBack && r.record.Changed {",
			Package: app,
			Tests:   []string{back},
		},
		{
			Name:    "rebuild: that the read database went back is noted",
			File:    readmodel + "/process.go",
			Cut:     "p.wentBack = true",
			With:    "p.wentBack = p.beaten.IsZero()",
			Package: app,
			Tests:   []string{back},
		},
		{
			Name:    "rebuild: a rebuild that begins anew has a database that did not go back",
			File:    rebuild + "/record.go",
			Cut:     "r.Content, r.Changed, r.WentBack = content, false, false\n\tr.Who",
			With:    "r.Content, r.Changed = content, false\n\tr.Who",
			Package: app,
			Tests:   []string{back},
		},
		{
			Name:    "rebuild: a publisher's clock that is behind proves nothing",
			File:    command + "/rebuildresend.go",
			Cut:     "time.Since(all[0].ReportedAt) > clocksApart {",
			With:    "time.Since(all[0].ReportedAt) > 24*clocksApart {",
			Package: app,
			Tests:   []string{"TestRebuild_APublisherWhoseClockIsBehindProvesNothing"},
		},
		{
			Name:    "rebuild: a resend that an operator has cancelled is not asked for again",
			File:    command + "/rebuildresend.go",
			Cut:     "cancelled := status != nil && status.State == contract.ResendCancelled",
			With:    "cancelled := false\n\t\tif status != nil && status.State == contract.ResendCancelled {\n\t\t\tstatus = nil\n\t\t}",
			Package: app,
			Tests:   []string{"TestRebuild_AResendThatIsCancelledIsNotAskedForAgain"},
		},
		{
			Name:    "rebuild: a report that is old is none",
			File:    command + "/rebuildproof.go",
			Cut:     "time.Since(at) > reportAge || at",
			With:    "at",
			Package: app,
			Tests:   []string{reports},
		},
		{
			Name:    "rebuild: a report of several streams is none",
			File:    command + "/rebuildproof.go",
			Cut:     "return s.Stream != first.Stream || s.Source != first.Source",
			With:    "return false",
			Package: app,
			Tests:   []string{reports},
		},
		{
			Name:    "rebuild: a line is new only where the resend has gone on",
			File:    command + "/rebuildresend.go",
			Cut:     "status.ReportedAt = time.Time{}",
			With:    "status.ReportedAt = time.Now()",
			Package: app,
			Tests:   []string{"TestRebuild_ThePublisherPrintsAllResendsSinceItBegan"},
		},
		{
			Name:    "rebuild: the command for the publisher waits for the projectors",
			File:    command + "/rebuild.go",
			Cut:     "if step.Waiting = others; len(others) == 0 {",
			With:    "if step.Waiting = others; len(others) >= 0 {",
			Package: app,
			Tests:   []string{"TestRebuild_IsNotResentBeforeProjectorsKnowOfIt"},
		},
	}
}
