package projector

import "changerelay/services/e2e/internal/campaign/mutation/guard"

// likeGuards are the guards of a new collection that has to be like the old one.
func likeGuards() []guard.Guard {
	const (
		unique = "TestRebuild_AUniqueIndexRefusesNothingWhileItIsFilled"
		valid  = "TestRebuild_AValidatorRefusesNothingWhileItIsFilled"
	)
	return []guard.Guard{
		{
			Name:    "rebuild: a unique index refuses nothing while a version is filled",
			File:    readmodel + "/like.go",
			Cut:     "return is != unique",
			With:    "return unique && !is",
			Package: app,
			Tests:   []string{unique},
		},
		{
			Name:    "rebuild: the index of tombstones is that of the new documents",
			File:    readmodel + "/like.go",
			Cut:     "if slices.ContainsFunc(there, ofTombstones) {",
			With:    "if len(there) < 0 {",
			Package: app,
			Tests:   []string{"TestRebuild_TombstonesAreKeptForAnotherTime"},
		},
		{
			Name:    "rebuild: values that a unique index refuses speak against the switch",
			File:    command + "/rebuildsteps.go",
			Cut:     "len(unlike) > 0 && !r.o.force",
			With:    "len(unlike) < 0",
			Package: app,
			Tests:   []string{unique},
		},
		{
			Name:    "rebuild: the new documents have the validator of the old ones",
			File:    readmodel + "/like.go",
			Cut:     "more == 0 && slices.Contains(validation, option.Key)",
			With:    "more < 0 && slices.Contains(validation, option.Key)",
			Package: app,
			Tests:   []string{valid},
		},
		{
			Name:    "rebuild: what the validator refuses of the new documents alone speaks against the switch",
			File:    readmodel + "/like.go",
			Cut:     "return max(n[1]-n[0], 0), nil",
			With:    "return max(n[0]-n[1], 0), nil",
			Package: app,
			Tests:   []string{valid},
		},
		{
			Name:    "rebuild: it is not begun where the new collection would be another",
			File:    command + "/rebuild.go",
			Cut:     "if len(lasting) > 0 {",
			With:    "if len(lasting) < 0 {",
			Package: app,
			Tests:   []string{"TestRebuild_OfACollectionThatTheNextOneWouldNotBeLikeIsRefused"},
		},
		{
			Name:    "rebuild: it is not begun where the new collection would not be sharded",
			File:    command + "/rebuild.go",
			Cut:     "if key != \"\" {",
			With:    "if key == \"-\" {",
			Package: app,
			Tests:   []string{"TestRebuild_OfAShardedCollectionIsRefused"},
		},
		{
			Name:    "rebuild: a collection that routers know and that is not sharded is rebuilt",
			File:    readmodel + "/shardkey.go",
			Cut:     "c.Dropped || c.Unsplittable ||",
			With:    "c.Dropped ||",
			Package: app,
			Tests:   []string{"TestRebuild_OfATrackedCollectionThatIsNotShardedBegins"},
		},
	}
}
