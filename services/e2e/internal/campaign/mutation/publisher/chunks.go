package publisher

import "changerelay/services/e2e/internal/campaign/mutation/guard"

// chunkGuards are the guards of how a copy reads its chunks.
func chunkGuards() []guard.Guard {
	return []guard.Guard{
		{
			Name:    "copy: complete only when as much is kept as was read",
			File:    backfill + "/source.go",
			Cut:     "copied != s.count",
			With:    "copied > s.count",
			Package: backfill,
			Tests:   []string{"TestCopy_IsNotCompleteBeforeAsMuchIsKeptAsWasRead"},
		},
		{
			Name:    "copy: a chunk is read from where the last one ended",
			File:    backfill + "/index.go",
			Cut:     "how.SetMin(from)",
			With:    "how.SetSkip(s.count - 1 + int64(0*len(from)))",
			Package: backfill,
			Tests:   []string{"TestCopy_ExaminesEachKeyOnce"},
		},
		{
			Name:    "copy: a document that is read again fills no chunk",
			File:    backfill + "/source.go",
			Cut:     `if read == 0 && cursor.Current.Lookup("_id").Equal(known) {`,
			With:    `if size += len(cursor.Current); read == 0 && cursor.Current.Lookup("_id").Equal(known) {`,
			Package: backfill,
			Tests:   []string{"TestCopy_GoesOnBehindADocumentThatFillsAChunk"},
		},
		{
			Name:    "copy: a full chunk is not the end, whatever is left of it",
			File:    backfill + "/source.go",
			Cut:     "if !s.rest.begun && !found.short {",
			With:    "if !s.rest.begun && !found.short && found.listed {",
			Package: backfill,
			Tests:   []string{"TestCopy_TakesNoFullChunkForItsEnd"},
		},
		{
			Name:    "copy: what a heal leaves out is looked through in parts",
			File:    backfill + "/index.go",
			Cut:     "len(s.plan.Filter) > 0 || !s.plan.Since.IsZero()",
			With:    "len(s.plan.Filter) > 0",
			Package: backfill,
			Tests:   []string{"TestCopy_SinceATimeLooksThroughABoundedPartOfTheIndex"},
		},
		{
			Name:    "copy: a source that does not answer is said to be silent",
			File:    backfill + "/source.go",
			Cut:     "\t\ts.ask()\n",
			With:    "",
			Package: app,
			Tests:   []string{"TestReading_ACopyWhoseSourceFallsSilentIsNotPublishing"},
		},
		{
			Name:    "copy: a chunk that was not read in time is followed by a smaller one",
			File:    backfill + "/fewer.go",
			Cut:     "max(n>>s.halved, 1)",
			With:    "max(n, 1)",
			Package: backfill,
			Tests:   []string{"TestCopy_AsksForLessWhereTheTimeForAChunkIsTooShort"},
		},
		{
			Name:    "copy: no index that has several keys of a document, or lacks some",
			File:    backfill + "/index.go",
			Cut:     `collated || is("isMultiKey") || is("isSparse") || is("isPartial")`,
			With:    "collated",
			Package: backfill,
			Tests:   []string{"TestJudge_KnowsThePlansOfServers"},
		},
		{
			Name:    "copy: an index without _id is unique",
			File:    backfill + "/index.go",
			Cut:     `mustBeUnique && !is("isUnique")`,
			With:    "false",
			Package: backfill,
			Tests:   []string{"TestServing_SaysWhichIndexServesACopy"},
		},
		{
			Name:    "copy: what was listed and is gone is not the end",
			File:    backfill + "/source.go",
			Cut:     "if found.listed {\n\t\t\treturn nil",
			With:    "if found.listed {\n\t\t\ts.pass(found.searched)\n\t\t\treturn nil",
			Package: backfill,
			Tests:   []string{"TestCopy_PassesWhatIsGoneSinceItWasListed"},
		},
		{
			Name:    "copy: an index that is gone is not waited for",
			File:    backfill + "/source.go",
			Cut:     "s.asked = false // the index may be gone",
			With:    "_ = s.asked",
			Package: backfill,
			Tests:   []string{"TestCopy_GoesOnWhenItsIndexIsDropped"},
		},
	}
}
