package witness

import "changerelay/services/e2e/internal/campaign/mutation/guard"

// Repairs are guards of what campaigns find of damage, of what they leave behind, and of
// what they have not done.
func Repairs() []guard.Guard {
	const (
		chaos = "services/e2e/internal/campaign/chaos"
		long  = "services/e2e/internal/campaign/long"
	)
	return []guard.Guard{
		{
			Name:    "chaos: what differs, and nobody has damaged, is found before it is mended",
			File:    chaos + "/mended.go",
			Cut:     "if !c.repairs.isTouched(document{view, id}) {",
			With:    "if id == \"\" {",
			Package: chaos,
			Tests:   []string{"TestMendDamage_WhatNobodyHasDamagedIsFound", "TestMendDamage_LooksBeforeARebuildThatWasKilledIsEnded"},
		},
		{
			Name:    "chaos: a document that differs without damage fails the run",
			File:    chaos + "/mended.go",
			Cut:     "float64(c.repairs.undamaged.Count), 0",
			With:    "0, 0",
			Package: chaos,
			Tests:   []string{"TestJudgeRepairs_FailsWhereNothingWasLookedAtOrWhatNoDamageExplains"},
		},
		{
			Name:    "chaos: a halt without damage fails the run",
			File:    chaos + "/mended.go",
			Cut:     "float64(c.repairs.needless.Count), 0",
			With:    "0, 0",
			Package: chaos,
			Tests:   []string{"TestJudgeRepairs_FailsWhereNothingWasLookedAtOrWhatNoDamageExplains"},
		},
		{
			Name:    "chaos: documents of many aggregates are compared before they are built anew",
			File:    chaos + "/mended.go",
			Cut:     "range c.views() {\n\t\tids, err",
			With:    "range single {\n\t\tids, err",
			Package: chaos,
			Tests:   []string{"TestMendDamage_LooksBeforeARebuildThatWasKilledIsEnded"},
		},
		{
			Name:    "chaos: beside faults only what was damaged is mended",
			File:    chaos + "/damage.go",
			Cut:     "c.mend(ctx, n, v, c.repairs.isTouched), nil, nil",
			With:    "c.mend(ctx, n, v, anyDocument), nil, nil",
			Package: chaos,
			Tests:   []string{"TestVerifyAndMend_LeavesAloneWhatNobodyHasDamaged"},
		},
		{
			Name:    "chaos: a halt that no damage explains is found before it is redriven",
			File:    chaos + "/mended.go",
			Cut:     "if !c.repairs.anyTouched(h.ID) {",
			With:    "if h.ID == \"\" {",
			Package: chaos,
			Tests:   []string{"TestDealWithHalts_AHaltThatNoDamageExplainsIsFound"},
		},
		{
			Name:    "chaos: mistakes that kill nobody excuse no cursor",
			File:    chaos + "/judge.go",
			Cut:     "if c.cfg.Operators != \"\" && !slices.Contains(killing, s.kind) {",
			With:    "if s.kind == \"\" {",
			Package: chaos,
			Tests:   []string{"TestLastBlow_IsTheEndOfWhatMayLeaveCursorsBehind"},
		},
		{
			Name:    "long: a mistake that is made alone is not done unseen",
			File:    chaos + "/operators.go",
			Cut:     "operators(), restores()) {\n\t\tnames",
			With:    "operators()) {\n\t\tnames",
			Package: long,
			Tests:   []string{"TestSummary_SaysWhatFailedAndWhatWasNotDone"},
		},
		{
			Name:    "long: a read database is put back in each round",
			File:    long + "/legs.go",
			Cut:     "case 0:",
			With:    "case shares:",
			Package: long,
			Tests:   []string{"TestLegs_EveryKindOfCampaignComesInEachRound"},
		},
	}
}
