package publisher

import "changerelay/services/e2e/internal/campaign/mutation/guard"

// keptAsideGuards are the guards of changes that are named before they are parked, and of a purge
// beside them.
func keptAsideGuards() []guard.Guard {
	return []guard.Guard{
		{
			Name:    "kept aside: what was named may come yet",
			File:    mongostate + "/kept.go",
			Cut:     "settled.Coming = k.coming()",
			With:    "_ = k.coming()",
			Package: mongostate,
			Tests:   []string{"TestKeptAside_WhatNeverCameIsNamedUntilTheCheckpointIsPastIt"},
		},
		{
			Name:    "kept aside: what was named is forgotten once the checkpoint is past it",
			File:    mongostate + "/kept.go",
			Cut:     `one.At != "" && k.Place.Passed(one.At)`,
			With:    `one.At == ""`,
			Package: app,
			Tests:   []string{"TestParked_AChangeThatWasNamedAndThenSentIsForgotten"},
		},
		{
			Name:    "kept aside: what was named without a place is not forgotten",
			File:    mongostate + "/kept.go",
			Cut:     `one.At != "" && k.Place.Passed(one.At)`,
			With:    "k.Place.Passed(one.At)",
			Package: mongostate,
			Tests:   []string{"TestKeptAside_WhatNeverCameIsNamedUntilTheCheckpointIsPastIt"},
		},
		{
			Name:    "kept aside: what is named is bounded",
			File:    mongostate + "/kept.go",
			Cut:     "return coming[max(0, len(coming)-maxComing):]",
			With:    "return coming",
			Package: mongostate,
			Tests:   []string{"TestKeptAside_TheLastThatWereNamedAreKept"},
		},
		{
			Name: "kept aside: what comes meanwhile is not counted beside its name",
			File: mongostate + "/kept.go",
			Cut:  "found, err := p.found(ctx, parking, coming(noted))",
			With: `earlier, err := p.found(ctx, parking, coming(noted))
	if err != nil {
		return nil, err
	}
	found, err := p.found(ctx, parking, bson.A{})
	for name, there := range found {
		there.Named = earlier[name].Named
		found[name] = there
	}`,
			Package: mongostate,
			Tests:   []string{"TestKeptAside_WhatComesMeanwhileIsNotCountedAndNamed"},
		},
		{
			Name:    "kept aside: what another partition has parked is not counted",
			File:    stream + "/term.go",
			Cut:     "if owner != t.config.StreamName {",
			With:    `if owner == "" {`,
			Package: app,
			Tests:   []string{"TestDocuments_AChangeThatTwoPartitionsHaveNamedIsCountedByOne"},
		},
		{
			Name:    "kept aside: what another partition has parked is not named any more",
			File:    checkpoint + "/checkpoint.go",
			Cut:     "slices.Clone(c.aside.Coming), func(one Expected) bool { return one.ID == id })",
			With:    `slices.Clone(c.aside.Coming), func(one Expected) bool { return one.ID == "" })`,
			Package: checkpoint,
			Tests:   []string{"TestAside_IsSaidByTheNextMarkWhereOneFails"},
		},
		{
			Name:    "purge: what somebody deals with meanwhile is left alone",
			File:    mongostate + "/purge.go",
			Cut:     "append(slices.Clip(old), these)",
			With:    "append(slices.Clip(old[:1]), these)",
			Package: mongostate,
			Tests:   []string{"TestParked_APurgeLeavesWhatIsDealtWithMeanwhile"},
		},
		{
			Name:    "kept aside: a purge that begins meanwhile is under way",
			File:    mongostate + "/kept.go",
			Cut:     "Purging: after[name].Purging",
			With:    "Purging: note.Purging",
			Package: mongostate,
			Tests:   []string{"TestKeptAside_WhatAPurgeHasCountedOutMeanwhileIsNotPutBack"},
		},
		{
			Name:    "kept aside: changes of a partition whose checkpoint is gone are counted",
			File:    mongostate + "/kept.go",
			Cut:     `bson.D{{Key: "$nin", Value: partitions}}}})`,
			With:    `bson.D{{Key: "$in", Value: append(bson.A{nil}, len(partitions))}}}})`,
			Package: app,
			Tests:   []string{"TestParked_OfAPartitionWhoseCheckpointIsGoneIsCountedByTheFirst"},
		},
		{
			Name:    "send: a message without data has no content type",
			File:    servicebus + "/message.go",
			Cut:     `if m.ContentType != "" {`,
			With:    `if m.ContentType != "-" {`,
			Package: servicebus,
			Tests:   []string{"TestTopic_ADeletionWithoutDataHasNoContentType"},
		},
	}
}
