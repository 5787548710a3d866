package witness

import "changerelay/services/e2e/internal/campaign/mutation/guard"

// Campaigns are guards of what campaigns say of their own runs.
func Campaigns() []guard.Guard {
	const (
		chaos   = "services/e2e/internal/campaign/chaos"
		crash   = "services/e2e/internal/campaign/crashpoint"
		liars   = "services/e2e/internal/campaign/liars"
		mutate  = "services/e2e/internal/campaign/mutation"
		suite   = "services/sandbox/internal/mongodb/driversuite"
		long    = "services/e2e/internal/campaign/long"
		accept  = "services/e2e/internal/campaign/accept"
		cluster = "services/e2e/internal/harness/cluster"
	)
	return []guard.Guard{
		{
			Name:    "chaos: what came from before the beginning of its aggregate is given up",
			File:    chaos + "/remedies.go",
			Cut:     "early := c.giveUpEarly(ctx, c.cluster.Projectors[0], halts)",
			With:    "early := false",
			Package: chaos,
			Tests:   []string{"TestGiveUpEarly_WhatCameFromBeforeTheBeginningAlone"},
		},
		{
			Name:    "chaos: what came from behind the beginning of its aggregate is not given up",
			File:    chaos + "/remedies.go",
			Cut:     "if a.Version < began {",
			With:    "if a.Version > 0 {",
			Package: chaos,
			Tests:   []string{"TestGiveUpEarly_WhatCameFromBeforeTheBeginningAlone"},
		},
		{
			Name:    "chaos: what is not sent yet is waited for before damage is looked for",
			File:    chaos + "/mended.go",
			Cut:     "c.witness.AwaitSettled(ctx)",
			With:    "c.witness.AwaitStill(ctx, time.Second)",
			Package: chaos,
			Tests:   []string{"TestMendAll_WaitsForWhatIsNotSentYet"},
		},
		{
			Name:    "campaigns: no two runs share a directory",
			File:    cluster + "/prepare.go",
			Cut:     "!errors.Is(err, fs.ErrExist)",
			With:    "err == nil || errors.Is(err, fs.ErrExist)",
			Package: cluster,
			Tests:   []string{"TestNewDir_TwoRunsOfOneSecondHaveTheirOwn"},
		},
		{
			Name:    "chaos: readers have seen what was built anew",
			File:    chaos + "/mended.go",
			Cut:     "c.repairs.readsAnew == 0 || c.repairs.rebuilt[c.rebuilt()] == 0",
			With:    "c.repairs.reads == 0",
			Package: chaos,
			Tests:   []string{"TestJudgeRepairs_FailsWhereNothingWasLookedAt"},
		},
		{
			Name:    "chaos: a document that is begun anew was erased since it was seen",
			File:    chaos + "/sights.go",
			Cut:     "begins > before.Relay.Version || begins == before.erasedAt() && before.there || before.Relay.Version == 0",
			With:    "begins >= 0",
			Package: chaos,
			Tests:   []string{"TestReader_FindsWhatNoErasedDocumentCanBe"},
		},
		{
			Name:    "chaos: only an event erases a document",
			File:    chaos + "/readers.go",
			Cut:     "!slices.ContainsFunc(versions[e.id], e.explainedBy)",
			With:    "versions[e.id] == nil",
			Package: chaos,
			Tests:   []string{"TestUnexplained_OnlyEventsErase"},
		},
		{
			Name:    "chaos: a document that many aggregates change loses none of their events",
			File:    chaos + "/sights.go",
			Cut:     "!before.there || now.Sum >= before.Sum && now.Lowest <= before.Lowest && now.Highest >= before.Highest",
			With:    "before.Orders >= 0",
			Package: chaos,
			Tests:   []string{"TestReader_FindsWhatDocumentsOfManyLack"},
		},
		{
			Name:    "chaos: a resend that is refused is not done",
			File:    chaos + "/repairs.go",
			Cut:     "return \"\", nil, errNobody // there may be another one, or a fault",
			With:    "return \"\", nil, nil",
			Package: chaos,
			Tests:   []string{"TestResendSome_OneThatIsRefusedIsNotDone"},
		},
		{
			Name:    "chaos: one resend is judged at least",
			File:    chaos + "/mended.go",
			Cut:     "return asked.judgedBy(all) }",
			With:    "return asked.id != \"\" }",
			Package: chaos,
			Tests:   []string{"TestEndResends_OneIsJudgedHoweverManyCannotBe"},
		},
		{
			Name:    "chaos: a service that stops with a failure is found",
			File:    chaos + "/endings.go",
			Cut:     "status != 0 && (status != signalled || notUp == nil)",
			With:    "status == 0 && notUp != nil",
			Package: chaos,
			Tests:   []string{"TestEndings_AServiceThatStopsWithAFailureIsFound"},
		},
		{
			Name:    "chaos: a service that is gone before it is stopped is found",
			File:    chaos + "/endings.go",
			Cut:     "\t\tc.endedBy(n, \"ended by itself\")\n\t\treturn nil\n",
			With:    "\t\treturn nil\n",
			Package: chaos,
			Tests:   []string{"TestEndings_AServiceThatIsGoneBeforeItIsStoppedIsFound"},
		},
		{
			Name:    "chaos: only who refuses settings may end by itself",
			File:    chaos + "/operators.go",
			Cut:     "err == nil && status == refused",
			With:    "err == nil && status >= 0",
			Package: chaos,
			Tests:   []string{"TestEndings_OnlyARefusalOfSettingsIsNoFault"},
		},
		{
			Name:    "crash points: a service that ends by itself is found",
			File:    crash + "/campaign.go",
			Cut:     "\t\tc.vanished = append(c.vanished, ",
			With:    "\t\t_ = append(c.vanished, ",
			Package: crash,
			Tests:   []string{"TestCampaign_AServiceThatEndsByItselfIsFound"},
		},
		{
			Name:    "crash points: a service that stops with a failure is found",
			File:    crash + "/judge.go",
			Cut:     "float64(unwell.Count), 0",
			With:    "0, 0",
			Package: crash,
			Tests:   []string{"TestCampaign_AServiceThatStopsWithAFailureIsFound"},
		},
		{
			Name:    "chaos: each kind of fault comes once before one comes again",
			File:    chaos + "/plan.go",
			Cut:     "i, first = first[0], first[1:]",
			With:    "i, first = first[0]/2, first[1:]",
			Package: chaos,
			Tests:   []string{"TestPlan_EachKindComesOnceBeforeOneComesAgain"},
		},
		{
			Name:    "chaos: what was not done is named",
			File:    chaos + "/judge.go",
			Cut:     "if c.done[f.name] == 0 {",
			With:    "if c.done[f.name] < 0 {",
			Package: chaos,
			Tests:   []string{"TestPlan_WhatWasNotDoneIsNamed"},
		},
		{
			Name:    "chaos: a fault that hits nobody is not done",
			File:    chaos + "/sandbox.go",
			Cut:     "if started.Affected == 0 {",
			With:    "if started.Affected < 0 {",
			Package: chaos,
			Tests:   []string{"TestSandbox_AFaultThatHitsNobodyIsNotDone"},
		},
		{
			Name:    "chaos: with given programs nothing is planned that needs others",
			File:    chaos + "/operators.go",
			Cut:     "c.Bin != \"\" && slices.Contains(ofBuilds, f.name) || ",
			Package: chaos,
			Tests:   []string{"TestPlan_WithGivenProgramsNothingIsPlannedThatNeedsOthers"},
		},
		{
			Name:    "chaos: nobody is rolled back to a release that refuses the declarations",
			File:    chaos + "/operators.go",
			Cut:     "(mode.InGo || mode.Keyed) && f.name",
			With:    "mode.InGo && f.name",
			Package: chaos,
			Tests:   []string{"TestPlan_NobodyIsRolledBackToAReleaseThatRefusesTheDeclarations"},
		},
		{
			Name:    "mutate: a failure at once is confirmed",
			File:    mutate + "/workshop.go",
			Cut:     "err == nil && len(without.failed) > 0 && time.Since(began) < confirmed {",
			With:    "err != nil && time.Since(began) < 0 {",
			Package: mutate,
			Tests:   []string{"TestRun_AFailureIsConfirmed"},
		},
		{
			Name:    "liars: each violation has a lie, or a test that plants it",
			File:    liars + "/lies.go",
			Cut:     "Finds: []string{witness.Mortal},",
			With:    "Finds: []string{witness.Foreign},",
			Package: liars,
			Tests:   []string{"TestNames_EachViolationHasALieOrATestThatPlantsIt"},
		},
		{
			Name:    "liars: a name of no lie is a wrong call",
			File:    "services/e2e/cmd/liars/main.go",
			Cut:     "if len(lies) == 0 {",
			With:    "if len(lies) < 0 {",
			Package: "services/e2e/cmd/liars",
			Tests:   []string{"TestLiars_ANameOfNoLieIsAWrongCall"},
		},
		{
			Name:    "driver suite: a selection of nothing has not passed",
			File:    suite + "/suite.go",
			Cut:     "if len(units) == 0 {",
			With:    "if len(units) < 0 {",
			Package: suite,
			Tests:   []string{"TestSuite_ASelectionOfNothingHasNotPassed"},
		},
		{
			Name:    "long: the seed says which campaign comes first",
			File:    long + "/legs.go",
			Cut:     "switch seed % shares {",
			With:    "switch n % shares {",
			Package: long,
			Tests:   []string{"TestLegs_TheSeedSaysWhichComesFirst"},
		},
		{
			Name:    "long: upgrades that were not run have not passed",
			File:    long + "/legs.go",
			Cut:     "float64(len(skipped)), 0",
			With:    "0, 0",
			Package: long,
			Tests:   []string{"TestUpgrades_WhatWasNotRunHasNotPassed"},
		},
		{
			Name:    "accept: a failure is not lost among what tells nothing",
			File:    accept + "/report.go",
			Cut:     "slices.DeleteFunc(strings.Split(strings.TrimSpace(r.output), \"\\n\"), tellsNothing)",
			With:    "strings.Split(strings.TrimSpace(r.output), \"\\n\")",
			Package: accept,
			Tests:   []string{"TestReport_ShowsOfAFailedStepWhatHasFailed"},
		},
	}
}
