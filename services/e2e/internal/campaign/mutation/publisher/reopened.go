package publisher

import "changerelay/services/e2e/internal/campaign/mutation/guard"

// reopenedGuards are the guards of what was parked, and is told from what is put back, and
// parked again where it comes back.
func reopenedGuards() []guard.Guard {
	return []guard.Guard{
		{
			Name:    "kept aside: what is put back makes up for no other",
			File:    mongostate + "/kept.go",
			Cut:     ", int64(len(k.Gone)), 0)",
			With:    ", 0)",
			Package: app,
			Tests:   []string{"TestParked_WhatIsPutBackMakesUpForNoOther", "TestParked_WhatWasPurgedMakesUpForNoOther"},
		},
		{
			Name:    "kept aside: what is counted is named",
			File:    checkpoint + "/checkpoint.go",
			Cut:     "c.named = append(c.named, id)",
			With:    "_ = id",
			Package: app,
			Tests:   []string{"TestParked_WhatIsPutBackMakesUpForNoOther"},
		},
		{
			Name:    "kept aside: what could not be named is by the next mark",
			File:    checkpoint + "/checkpoint.go",
			Cut:     "if err == nil {\n\t\tc.named = nil",
			With:    "if err == nil || err != nil {\n\t\tc.named = nil",
			Package: checkpoint,
			Tests:   []string{"TestAside_IsSaidByTheNextMarkWhereOneFails"},
		},
		{
			Name:    "kept aside: what is counted out is named no more",
			File:    stream + "/keptaside.go",
			Cut:     "t.claimed.Miss(ctx, kept.Missing(), kept.Gone)",
			With:    "t.claimed.Miss(ctx, kept.Missing(), kept.Gone[:0])",
			Package: app,
			Tests:   []string{"TestParked_WhatIsPutBackMakesUpForNoOther", "TestParked_ALossUnderALeaderIsInTheLedger"},
		},
		{
			Name:    "kept aside: what is purged is named no more",
			File:    mongostate + "/kept.go",
			Cut:     `names := bson.E{Key: "$pullAll", Value: bson.D{{Key: "kept.ids"`,
			With:    `names := bson.E{Key: "$pullAll", Value: bson.D{{Key: "kept.none"`,
			Package: app,
			Tests:   []string{"TestParked_WhatIsDoneWithChangesInOrderIsNoLoss"},
		},
		{
			Name:    "kept aside: names from before a purge say nothing",
			File:    mongostate + "/names.go",
			Cut:     "|| names.Purged != k.Purged {",
			With:    "{",
			Package: app,
			Tests:   []string{"TestParked_ACheckpointFromBeforeAPurgeTellsOfNoLoss"},
		},
		{
			Name:    "kept aside: what is purged while it is looked for is not gone",
			File:    mongostate + "/names.go",
			Cut:     "!present[id] && slices.Contains(names.IDs, id)",
			With:    "!present[id]",
			Package: mongostate,
			Tests:   []string{"TestKeptAside_WhatIsPurgedByNameMeanwhileIsNotLost"},
		},
		{
			Name:    "kept aside: what a release without names has parked is named",
			File:    mongostate + "/names.go",
			Cut:     "k.Unnamed = int64(len(names.IDs)) < min(note.Count-k.Purged, checkpoint.MaxNames)",
			With:    "k.Unnamed = false",
			Package: app,
			Tests:   []string{"TestParked_WhatAnEarlierReleaseHasParkedIsNamedByTheNextTerm"},
		},
		{
			Name:    "kept aside: a purge that is refused takes no name",
			File:    mongostate + "/kept.go",
			Cut:     "if n < 0 {",
			With:    "if n > 0 && n < 0 {",
			Package: app,
			Tests:   []string{"TestParked_APurgeThatIsRefusedTakesNoName"},
		},
		{
			Name:    "park: what was dealt with before it was read is parked again",
			File:    mongostate + "/parked.go",
			Cut:     "err = p.reopen(ctx, id, by, document)",
			With:    "err = ctx.Err()",
			Package: app,
			Tests:   []string{"TestParked_WhatWasDealtWithIsParkedAgainWhereTheStreamGoesBackBeforeIt"},
		},
		{
			Name:    "park: who has read a change before it was dealt with leaves it so",
			File:    mongostate + "/parked.go",
			Cut:     `bson.D{{Key: "term", Value: bson.D{{Key: "$lt", Value: term}}}},`,
			With:    `bson.D{{Key: "term", Value: bson.D{{Key: "$gt", Value: 0}}}},`,
			Package: mongostate,
			Tests:   []string{"TestPark_OpensWhatWasDealtWithBeforeItWasRead"},
		},
		{
			Name:    "park: what was dealt with is known where terms began anew",
			File:    mongostate + "/parked.go",
			Cut:     `Value: bson.D{{Key: "$gte", Value: by.Since}}`,
			With:    `Value: bson.D{{Key: "$gte", Value: time.Time{}}}`,
			Package: mongostate,
			Tests:   []string{"TestPark_OpensWhatWasDealtWithBeforeItWasRead"},
		},
		{
			Name:    "park: a later term that parks an open change is the one that has parked it",
			File:    mongostate + "/parked.go",
			Cut:     `bson.D{{Key: "$max", Value: bson.D{{Key: "term", Value: term}}}}`,
			With:    `bson.D{{Key: "$max", Value: bson.D{{Key: "was", Value: term}}}}`,
			Package: mongostate,
			Tests:   []string{"TestPark_OpensWhatWasDealtWithBeforeItWasRead"},
		},
	}
}
