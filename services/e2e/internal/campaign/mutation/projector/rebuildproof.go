package projector

import "changerelay/services/e2e/internal/campaign/mutation/guard"

// rebuildProofGuards are the guards of how a rebuild knows that everything was resent.
func rebuildProofGuards() []guard.Guard {
	const (
		reports   = "TestRebuild_GoesByWhatThePublisherReports"
		early     = "TestRebuild_WhatWasResentBeforeItsOwnResendCounts"
		documents = "TestRebuild_OfDocumentsGoesByTheLastResendOfEverything"
		words     = "TestRebuild_ResentWithoutAReportSaysWhatToType"
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
			Name:    "rebuild: the command for the publisher waits for the projectors",
			File:    command + "/rebuild.go",
			Cut:     "if step.Waiting = others; len(others) == 0 {",
			With:    "if step.Waiting = others; len(others) >= 0 {",
			Package: app,
			Tests:   []string{"TestRebuild_IsNotResentBeforeProjectorsKnowOfIt"},
		},
	}
}
