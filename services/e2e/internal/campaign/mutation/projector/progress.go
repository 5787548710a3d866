package projector

import "changerelay/services/e2e/internal/campaign/mutation/guard"

// progressGuards are the guards of what is said of how far each projection is, to those
// who ask and to those who wait.
func progressGuards() []guard.Guard {
	const file = watch + "/progress.go"
	return []guard.Guard{
		{
			Name:    "progress: a version that is filled has not come to what is written to others",
			File:    file,
			Cut:     "if !wrote && (fills || one.fills) {",
			With:    "if !wrote && fills {",
			Package: watch,
			Tests:   []string{"TestProgress_OfAVersionThatIsFilledIsItsOwn"},
		},
		{
			Name:    "progress: what fills a version moves no other",
			File:    file,
			Cut:     "if !wrote && (fills || one.fills) {",
			With:    "if !wrote && one.fills {",
			Package: watch,
			Tests:   []string{"TestProgress_OfAVersionThatIsFilledIsItsOwn"},
		},
		{
			Name:    "progress: it does not go back",
			File:    file,
			Cut:     "old < n && !number",
			With:    "!number",
			Package: watch,
			Tests:   []string{"TestProgress_OfAVersionThatIsFilledIsItsOwn"},
		},
		{
			Name:    "progress: a repeat says nothing of the lag",
			File:    file,
			Cut:     "if timed && !repeated && !one.fills",
			With:    "if timed && !one.fills",
			Package: watch,
			Tests:   []string{"TestProgress_TakesNoLagFromWhatComesAgain"},
		},
		{
			Name:    "progress: what is sent again says nothing of the lag",
			File:    file,
			Cut:     " && e.Resend == (contract.Resend{}) {",
			With:    " {",
			Package: watch,
			Tests:   []string{"TestProgress_TakesNoLagFromWhatComesAgain"},
		},
		{
			Name:    "progress: halts that cannot be counted are not none",
			File:    file,
			Cut:     "\tif err == nil {\n\t\tp.halted.Store(&halted)\n\t}",
			With:    "\tp.halted.Store(&halted)",
			Package: watch,
			Tests:   []string{"TestProgress_ShowsNoHaltsThatItCouldNotCount"},
		},
		{
			Name:    "progress: who is gone does not count",
			File:    readmodel + "/progress.go",
			Cut:     "if !members[i].Lives {",
			With:    "if members == nil {",
			Package: app,
			Tests:   []string{"TestProgress_OfAGroupIsThatOfItsProjectors"},
		},
		{
			Name:    "wait: one of version and position is asked for",
			File:    watch + "/wait.go",
			Cut:     `case (version == "") == (position == ""):`,
			With:    `case version == "" && position == "":`,
			Package: app,
			Tests:   []string{"TestWait_ByPositionWhereTheSourceNumbersNoVersions"},
		},
		{
			Name:    "wait: a position is one of the stream",
			File:    watch + "/wait.go",
			Cut:     "if _, _, err := contract.Position(whole).ClusterTime(); err != nil {",
			With:    `if _, _, err := contract.Position(whole).ClusterTime(); err != nil && position == "" {`,
			Package: app,
			Tests:   []string{"TestWait_ByPositionWhereTheSourceNumbersNoVersions"},
		},
		{
			Name:    "wait: it ends",
			File:    watch + "/wait.go",
			Cut:     "q.timeout <= 0 || q.timeout > maxWait",
			With:    "q.timeout <= 0",
			Package: app,
			Tests:   []string{"TestWait_AWriterWaitsUntilItsEventCanBeRead"},
		},
		{
			Name:    "wait: there is no version below zero",
			File:    watch + "/wait.go",
			Cut:     "if err != nil || n < 0 {",
			With:    "if err != nil {",
			Package: app,
			Tests:   []string{"TestWait_AWriterWaitsUntilItsEventCanBeRead"},
		},
		{
			Name:    "wait: of several projections one is named",
			File:    watch + "/wait.go",
			Cut:     `if name == "" && len(w.projections) > 1 {`,
			With:    `if name == "" && len(w.projections) > 9 {`,
			Package: app,
			Tests:   []string{"TestWait_AWriterWaitsUntilItsEventCanBeRead"},
		},
		{
			Name:    "wait: who has waited makes room",
			File:    watch + "/wait.go",
			Cut:     "defer func() { <-w.places }()",
			With:    "_ = w.places",
			Package: app,
			Tests:   []string{"TestWait_TurnsAwayWhoeverIsTooMany"},
		},
	}
}
