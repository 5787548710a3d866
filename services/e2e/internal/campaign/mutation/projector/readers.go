package projector

import "changerelay/services/e2e/internal/campaign/mutation/guard"

// readerGuards are the guards of what readers see while commands of several operators, and
// projectors that change, meet at a rebuild.
func readerGuards() []guard.Guard {
	const (
		once    = "TestRebuilds_TheSameStateIsLeftOnce"
		held    = "TestRebuilds_ARecordThatIsHeldIsNobodyElses"
		byHand  = "TestRebuild_WhatReadersSeeByHandIsNotDropped"
		changed = "TestRebuild_OfAProjectionThatHasChangedIsBegunAgain"
		beside  = "TestRebuild_BesideASwitchOneOfBothIsRefused"
	)
	return []guard.Guard{
		{
			Name:    "readers: the same state is left once",
			File:    readmodel + "/rebuilds.go",
			Cut:     "if result.MatchedCount == 0 {\n\t\treturn s.overtaken(ctx, &was)",
			With:    "if result.MatchedCount < 0 {\n\t\treturn s.overtaken(ctx, &was)",
			Package: readmodel,
			Tests:   []string{once},
		},
		{
			Name:    "readers: a change is of the turn that was read",
			File:    readmodel + "/rebuilds.go",
			Cut:     `{Key: "turn", Value: was.Turn}}`,
			With:    `{Key: "turn", Value: bson.D{{Key: "$gte", Value: 0}}}}`,
			Package: readmodel,
			Tests:   []string{once},
		},
		{
			Name:    "readers: a record that a command has is nobody else's",
			File:    readmodel + "/rebuilds.go",
			Cut:     "if !was.Held {",
			With:    "if was.Held {",
			Package: readmodel,
			Tests:   []string{held},
		},
		{
			Name:    "readers: they are switched with the record in hand",
			File:    command + "/rebuildsteps.go",
			Cut:     "since, err := r.hold(ctx)\n\tif err != nil {\n\t\treturn err\n\t}\n\terr = acting(",
			With:    "since := time.Now()\n\terr = acting(",
			Package: app,
			Tests:   []string{"TestRebuild_ASwitchUnderWayIsNotCancelled"},
		},
		{
			Name:    "readers: a cancel takes the record before it acts",
			File:    command + "/rebuildsteps.go",
			Cut:     "since, err := r.hold(ctx)\n\tif err != nil {\n\t\treturn err\n\t}\n\tlive, err",
			With:    "since := time.Now()\n\tlive, err",
			Package: app,
			Tests:   []string{"TestRebuild_ACancelThatReadersAreSwitchedBesideIsRefused"},
		},
		{
			Name:    "readers: a switch that comes too late is put right",
			File:    command + "/rebuildsteps.go",
			Cut:     "return errors.Join(err, r.putRight(ctx, &r.declared))",
			With:    "return err",
			Package: app,
			Tests:   []string{"TestRebuild_ASwitchThatComesTooLateIsPutRight"},
		},
		{
			Name:    "readers: the command switch sees a rebuild that has begun meanwhile",
			File:    command + "/held.go",
			Cut:     "if len(stored.Under(v.Projection)) != len(records) {",
			With:    "if stored == nil {",
			Package: app,
			Tests:   []string{beside},
		},
		{
			Name:    "readers: the command switch is not for a projection that is rebuilt",
			File:    command + "/held.go",
			Cut:     "r.Next != 0 {",
			With:    "r.Next < 0 {",
			Package: app,
			Tests:   []string{"TestRebuild_SwitchesAreItsOwn"},
		},
		{
			Name:    "readers: a rebuild begins with the version that they see",
			File:    command + "/rebuild.go",
			Cut:     "if live != current {",
			With:    "if live < 0 {",
			Package: app,
			Tests:   []string{byHand},
		},
		{
			Name:    "readers: they are not switched from a version that is none of the rebuild's",
			File:    command + "/rebuildsteps.go",
			Cut:     "if live != r.record.Current && live != r.record.Next {",
			With:    "if live < 0 {",
			Package: app,
			Tests:   []string{byHand},
		},
		{
			Name:    "readers: they are switched once",
			File:    command + "/rebuildsteps.go",
			Cut:     "if !r.record.SwitchedAt.IsZero() {",
			With:    "if r.record.Turn < 0 {",
			Package: app,
			Tests:   []string{byHand},
		},
		{
			Name:    "readers: a rebuild is settled with the version that they see",
			File:    command + "/rebuildsteps.go",
			Cut:     "if live != r.record.Next {",
			With:    "if live < 0 {",
			Package: app,
			Tests:   []string{byHand},
		},
		{
			Name:    "readers: what they see is not dropped",
			File:    command + "/rebuildsteps.go",
			Cut:     "if number == live {",
			With:    "if number == live && number < 0 {",
			Package: app,
			Tests:   []string{byHand},
		},
		{
			Name:    "readers: a rebuild is not gone on with once its projection has changed",
			File:    command + "/rebuild.go",
			Cut:     `if reason == "" {`,
			With:    `if reason != "never" {`,
			Package: app,
			Tests:   []string{changed},
		},
		{
			Name:    "readers: a projector notes that a projection has changed",
			File:    app + "/records.go",
			Cut:     "range records.Outdated(a.declared) {",
			With:    "range records.Outdated(nil) {",
			Package: app,
			Tests:   []string{changed},
		},
		{
			Name:    "readers: what a late projector notes is of its own rebuild",
			File:    readmodel + "/rebuilds.go",
			Cut:     `{Key: "next", Value: r.Next}, {Key: "content", Value: r.Content}, `,
			With:    "",
			Package: readmodel,
			Tests:   []string{"TestRebuilds_AChangedProjectionIsNoted"},
		},
		{
			Name:    "readers: whoever decided before a projection changed is refused",
			File:    readmodel + "/rebuilds.go",
			Cut:     `, {Key: "$inc", Value: bson.D{{Key: "turn", Value: 1}}}`,
			With:    "",
			Package: readmodel,
			Tests:   []string{"TestRebuilds_AChangedProjectionIsNoted"},
		},
		{
			Name:    "versions: a large one is compared in many requests",
			File:    readmodel + "/behind.go",
			Cut:     "const comparedAtOnce = 1000",
			With:    "const comparedAtOnce = 100_000",
			Package: readmodel,
			Tests:   []string{"TestBehind_ComparesALargeVersionInManyRequests"},
		},
		{
			Name:    "rebuild: a short resend is not everything",
			File:    command + "/rebuildresend.go",
			Cut:     "if status.State == resendIncomplete {",
			With:    `if status.State == "never" {`,
			Package: app,
			Tests:   []string{"TestRebuild_IsSwitchedToOnceNothingSpeaksAgainstIt"},
		},
		{
			Name:    "rebuild: a projector that a namesake suspects is waited for",
			File:    readmodel + "/rebuilds.go",
			Cut:     `{Key: "stoppedAt", Value: nil},`,
			With:    `{Key: "stoppedAt", Value: nil}, {Key: "diedAt", Value: nil},`,
			Package: readmodel,
			Tests:   []string{"TestRebuilds_OneThatANamesakeSuspectsIsWaitedFor"},
		},
		{
			Name:    "rebuild: a wrong environment is not waited for",
			File:    command + "/rebuild.go",
			Cut:     "if !errors.Is(err, errOtherVersions) ||",
			With:    "if err == nil ||",
			Package: app,
			Tests:   []string{"TestRebuild_InAWrongEnvironmentIsRefusedAtOnce"},
		},
		{
			Name:    "rebuild: another projection is not waited for",
			File:    command + "/scope.go",
			Cut:     "s.records.Unnumbered(started.Projections))) == 0 {",
			With:    "s.records.Unnumbered(started.Projections))) >= 0 {",
			Package: app,
			Tests:   []string{"TestRebuild_InAWrongEnvironmentIsRefusedAtOnce"},
		},
		{
			Name:    "rebuild: what fills a version is behind no gap",
			File:    delivery + "/versions.go",
			Cut:     "\t\tif items[i].counts() {",
			With:    "\t\tif items[i].event != nil {",
			Package: delivery,
			Tests:   []string{"TestGaps_WhatFillsAVersionIsNoneOfThem"},
		},
		{
			Name:    "rebuild: what fills a version makes up for no live event",
			File:    delivery + "/versions.go",
			Cut:     "if v.on() && items[i].counts() {",
			With:    "if v.on() && items[i].event != nil {",
			Package: delivery,
			Tests:   []string{"TestGaps_WhatFillsAVersionIsNoneOfThem"},
		},
	}
}
