package projector

import "changerelay/services/e2e/internal/campaign/mutation/guard"

// rebuildGuards are the guards of a version that is filled beside the live one.
func rebuildGuards() []guard.Guard {
	const (
		choice  = "TestChoice_AVersionTakesALiveEventOnlyBehindTheOneBefore"
		against = "TestRebuild_IsSwitchedToOnceNothingSpeaksAgainstIt"
		numbers = "TestRecords_ANumberOfAVersionIsGivenOutOnce"
		flows   = "TestRebuild_ReadersSeeOldOrNewWhileEventsFlow"
		givenUp = "TestRebuild_GivenUpLeavesNothing"
	)
	return []guard.Guard{
		{
			Name:    "rebuild: a live event that is ahead of what is resent is passed by",
			File:    rebuild + "/choice.go",
			Cut:     `reached != "" && reached >= before(e) ||`,
			With:    `reached != "" ||`,
			Package: rebuild,
			Tests:   []string{choice},
		},
		{
			Name:    "rebuild: an aggregate begins with its first event",
			File:    rebuild + "/choice.go",
			Cut:     "return e.Version.Number <= 0",
			With:    "return true",
			Package: rebuild,
			Tests:   []string{choice},
		},
		{
			Name:    "rebuild: version 1 is no beginning behind a version 0",
			File:    rebuild + "/choice.go",
			Cut:     `return current == ""`,
			With:    "return true",
			Package: rebuild,
			Tests:   []string{choice},
		},
		{
			Name:    "rebuild: a version that follows goes over holes only where it lacks nothing",
			File:    rebuild + "/choice.go",
			Cut:     "f.following && reached >= current",
			With:    "f.following",
			Package: rebuild,
			Tests:   []string{choice},
		},
		{
			Name:    "rebuild: an event that was passed by counts for the version that has it",
			File:    rebuild + "/choice.go",
			Cut:     "c.reached[f.current.Account()] = max(current, e.Sequence)",
			With:    "c.reached[f.current.Account()] = current",
			Package: rebuild,
			Tests:   []string{choice},
		},
		{
			Name:    "rebuild: what is resent for a version is not for the one that readers see",
			File:    rebuild + "/choice.go",
			Cut:     "return of(writes, &only.next, true), nil",
			With:    "return writes, nil",
			Package: rebuild,
			Tests:   []string{choice},
		},
		{
			Name:    "rebuild: numbers of versions are given out once",
			File:    rebuild + "/record.go",
			Cut:     "max(r.Highest, r.Current, highest) + 1",
			With:    "max(r.Current, highest) + 1",
			Package: rebuild,
			Tests:   []string{numbers},
		},
		{
			Name:    "rebuild: the number of a rebuild is not declared",
			File:    rebuild + "/record.go",
			Cut:     "r.Declared < v.Number && v.Number <= r.Highest",
			With:    "r.Declared < v.Number && v.Number <= 0",
			Package: rebuild,
			Tests:   []string{numbers},
		},
		{
			Name:    "rebuild: projectors begin anew where the records have changed",
			File:    app + "/records.go",
			Cut:     "if records.Signature(a.declared) != a.works {",
			With:    "if records == nil {",
			Package: app,
			Tests:   []string{givenUp},
		},
		{
			Name:    "rebuild: a projector that starts knows of it before its first session",
			File:    app + "/app.go",
			Cut:     "looking for processes that work by others.\n\treturn a.checkRecords(ctx)",
			With:    "looking for processes that work by others.\n\treturn nil",
			Package: app,
			Tests:   []string{"TestRebuild_AProjectorThatStartsMeanwhileKnowsOfIt"},
		},
		{
			Name:    "rebuild: it is not begun beside projectors that do not know of it",
			File:    command + "/rebuild.go",
			Cut:     "if len(others) > 0 {\n\t\trefused",
			With:    "if len(others) < 0 {\n\t\trefused",
			Package: app,
			Tests:   []string{against},
		},
		{
			Name:    "rebuild: what could not be resent speaks against the switch",
			File:    command + "/rebuildresend.go",
			Cut:     "if status.Failed > 0 {",
			With:    "if status.Failed < 0 {",
			Package: app,
			Tests:   []string{against},
		},
		{
			Name:    "rebuild: what speaks against the switch is heard",
			File:    command + "/rebuildsteps.go",
			Cut:     "refused = append(refused, lacks...)",
			With:    "_ = lacks",
			Package: app,
			Tests:   []string{against},
		},
		{
			Name:    "rebuild: it waits for what has not arrived",
			File:    command + "/rebuildresend.go",
			Cut:     "return len(left) == 0, &rebuildStep{Step: \"arriving\"",
			With:    "return true, &rebuildStep{Step: \"arriving\"",
			Package: app,
			Tests:   []string{"TestRebuild_WaitsForWhatHasNotArrived"},
		},
		{
			Name:    "rebuild: the documents that readers see are not dropped",
			File:    command + "/rebuildsteps.go",
			Cut:     "if live == r.record.Next {\n\t\t// It was written on",
			With:    "if live == 0 {\n\t\t// It was written on",
			Package: app,
			Tests:   []string{against},
		},
		{
			Name:    "rebuild: the old documents are kept for the grace",
			File:    command + "/rebuildsteps.go",
			Cut:     "return !time.Now().Before(end),",
			With:    "return true,",
			Package: app,
			Tests:   []string{against},
		},
		{
			Name:    "rebuild: the publisher is asked once",
			File:    command + "/rebuildresend.go",
			Cut:     "if status == nil || status.State == resendCancelled {",
			With:    "if status == nil || status.State != \"running\" {",
			Package: app,
			Tests:   []string{against},
		},
		{
			Name:    "rebuild: what a command that was killed has left is dropped by the next one",
			File:    command + "/rebuild.go",
			Cut:     "if len(r.record.Retired) > 0 {\n\t\treturn r.clear(ctx)",
			With:    "if len(r.record.Retired) < 0 {\n\t\treturn r.clear(ctx)",
			Package: app,
			Tests:   []string{"TestRebuild_ItsNumberIsNotDeclared"},
		},
		{
			Name:    "rebuild: what fills a version is not parked in the place of a live event",
			File:    delivery + "/park.go",
			Cut:     "i < len(items) && !items[i].fills; i++",
			With:    "i < len(items); i++",
			Package: delivery,
			Tests:   []string{"TestFilling_IsNotParkedBehindAFailedEvent"},
		},
		{
			Name:    "rebuild: what would fill a version and is of no aggregate is dead-lettered behind a halt",
			File:    delivery + "/decode.go",
			Cut:     "it.event != nil && fills(",
			With:    "fills(",
			Package: delivery,
			Tests:   []string{"TestFilling_OfNoAggregateIsDeadLetteredBehindAHalt"},
		},
		{
			Name:    "rebuild: what the version cannot take halts nothing",
			File:    delivery + "/park.go",
			Cut:     "case b.items[b.end].fills:",
			With:    "case b.items[b.end].fills && ctx == nil:",
			Package: app,
			Tests:   []string{givenUp},
		},
		{
			Name:    "rebuild: a hold chooses what it stores",
			File:    delivery + "/project.go",
			Cut:     "choice := begin(p.filling)",
			With:    "choice := begin(nil)",
			Package: app,
			Tests:   []string{flows},
		},
	}
}
