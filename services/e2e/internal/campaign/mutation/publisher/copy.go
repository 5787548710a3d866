package publisher

import "changerelay/services/e2e/internal/campaign/mutation/guard"

// copyGuards are the guards of how the documents of a copy are found.
func copyGuards() []guard.Guard {
	return []guard.Guard{
		{
			Name:    "copy: a field inside another is not asked for beside it",
			File:    backfill + "/index.go",
			Cut:     `return strings.HasPrefix(field, other+".")`,
			With:    `return strings.HasPrefix(field, other+"..")`,
			Package: backfill,
			Tests:   []string{"TestCopy_GoesAlongFieldsThatAreInEachOther"},
		},
		{
			Name:    "copy: what is listed has names of its own",
			File:    backfill + "/listed.go",
			Cut:     `names[i] = "at" + strconv.Itoa(i)`,
			With:    `names[i] = "at." + strconv.Itoa(i)`,
			Package: backfill,
			Tests:   []string{"TestCopy_GoesAlongFieldsThatAreInEachOther"},
		},
		{
			Name:    "copy: fewer documents of a list are read where time is short",
			File:    backfill + "/listed.go",
			Cut:     "n = s.fewer(n)",
			With:    "",
			Package: backfill,
			Tests:   []string{"TestCopy_ReadsFewerOfAListThatItKeeps"},
		},
		{
			Name:    "copy: a list takes no more than its room",
			File:    backfill + "/listed.go",
			Cut:     "bytes < s.plan.ListedBytes && cursor.Next(ctx)",
			With:    "cursor.Next(ctx)",
			Package: backfill,
			Tests:   []string{"TestCopy_ListsNoMoreKeysThanFit"},
		},
		{
			Name:    "copy: a resend lists no more than it reads",
			File:    config + "/resend.go",
			Cut:     "plan.Listed, plan.ListedBytes = plan.Chunk, plan.Bytes",
			With:    "_, _ = plan.Chunk, plan.Bytes",
			Package: backfill,
			Tests:   []string{"TestFilter_AResendListsNoMoreThanItReads"},
		},
		{
			Name:    "copy: who sends nothing lists as much as a copy",
			File:    config + "/resend.go",
			Cut:     "plan.Listed, plan.ListedBytes = 0, c.share(mostListed)",
			With:    "_ = time.Time{}",
			Package: config,
			Tests:   []string{"TestEvents_ListAsMuchAsACopy"},
		},
		{
			Name:    "copy: a chunk has room in the window",
			File:    config + "/lifecycle.go",
			Cut:     "c.share(mostRead), c.share(mostListed)",
			With:    "mostRead, c.share(mostListed)",
			Package: config,
			Tests:   []string{"TestPlan_TakesAQuarterOfTheWindow"},
		},
		{
			Name:    "copy: a list has room in the window",
			File:    config + "/lifecycle.go",
			Cut:     "c.share(mostRead), c.share(mostListed)",
			With:    "c.share(mostRead), mostListed",
			Package: config,
			Tests:   []string{"TestPlan_TakesAQuarterOfTheWindow"},
		},
		{
			Name:    "copy: a list that its room has ended is not the last",
			File:    backfill + "/listed.go",
			Cut:     "len(list) < s.plan.Listed && bytes < s.plan.ListedBytes",
			With:    "len(list) < s.plan.Listed",
			Package: backfill,
			Tests:   []string{"TestCopy_ListsNoMoreKeysThanFit"},
		},
		{
			Name:    "resend: a time that ends in a second leaves out no ObjectId of it",
			File:    config + "/resend.go",
			Cut:     "backfill.FirstObjectID(until.Add(time.Second - 1))",
			With:    "backfill.FirstObjectID(until)",
			Package: app,
			Tests:   []string{"TestResend_ATimeLeavesOutOnlyWhatIsKnownToBeOfAnother"},
		},
		{
			Name:    "resend: what has no time is told of",
			File:    command + "/resendselection.go",
			Cut:     "if err != nil || filter == nil {",
			With:    "if filter != nil || err == nil {",
			Package: app,
			Tests:   []string{"TestResend_ATimeLeavesOutOnlyWhatIsKnownToBeOfAnother"},
		},
		{
			Name:    "copy: a document that comes too slowly is named",
			File:    backfill + "/fewer.go",
			Cut:     "if due, _ := ctx.Deadline(); time.Now().Before(due) {\n\t\treturn nil",
			With:    "if ctx != nil {\n\t\treturn nil",
			Package: app,
			Tests:   []string{"TestReading_ADocumentThatComesTooSlowlyIsSaid"},
		},
		{
			Name:    "copy: a list is kept where reading from it fails",
			File:    backfill + "/source.go",
			Cut:     "s.asked = false // the index may be gone\n\t\treturn fmt.Errorf(",
			With:    "s.asked, s.list = false, nil\n\t\treturn fmt.Errorf(",
			Package: backfill,
			Tests:   []string{"TestCopy_ReadsFewerOfAListThatItKeeps"},
		},
	}
}
