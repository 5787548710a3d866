package sandbox

import "changerelay/services/e2e/internal/campaign/mutation/guard"

// Commands are guards of what commands on MongoDB leave open and refuse.
func Commands() []guard.Guard {
	const data, schema = mongodb + "commands/data", mongodb + "commands/schema"
	return []guard.Guard{
		{
			Name:    "sandbox: a transaction reads at no time that has passed",
			File:    command + "/readconcern.go",
			Cut:     "at != nil && *at < now {",
			With:    "at != nil && *at < now && false {",
			Package: server,
			Tests:   []string{"TestTransactions_ReadAtNoTimeThatHasPassed"},
		},
		{
			Name:    "sandbox: cursors end with a session that nobody uses",
			File:    command + "/cursors.go",
			Cut:     "return now.Sub(c.lastUse) > SessionMinutes*time.Minute && now.Sub",
			With:    "return c.Lsid == \"\" && now.Sub",
			Package: server,
			Tests:   []string{"TestCursors_AreClosedWithTheSessionThatNobodyUses"},
		},
		{
			Name:    "sandbox: a session in use keeps its cursors",
			File:    command + "/call.go",
			Cut:     "if c.Generic.lsid != nil {\n\t\tc.Server.Cursors.Refresh",
			With:    "if c.Generic.lsid != nil && c.Txn != nil {\n\t\tc.Server.Cursors.Refresh",
			Package: server,
			Tests:   []string{"TestCursors_AreClosedWithTheSessionThatNobodyUses"},
		},
		{
			Name:    "sandbox: no statement writes to a view",
			File:    data + "/writes.go",
			Cut:     "w.refused = c.NotView(w.ns)",
			With:    "w.refused = nil",
			Package: server,
			Tests:   []string{"TestAView_IsWrittenToByNoStatement"},
		},
		{
			Name:    "sandbox: a distinct that fails closes the view that it reads",
			File:    data + "/distinct.go",
			Cut:     "defer end()",
			With:    "_ = end",
			Package: server,
			Tests:   []string{"TestAView_WhoseDistinctFailsIsClosed"},
		},
		{
			Name:    "sandbox: a view is read through its pipeline by other stages, too",
			File:    command + "/stages.go",
			Cut:     "if !isView {",
			With:    "if !isView || ctx != nil {",
			Package: server,
			Tests:   []string{"TestAView_IsReadByTheStagesThatReadOtherCollections"},
		},
		{
			Name:    "sandbox: the set makes the quorum of an index, or there is no index",
			File:    schema + "/commitquorum.go",
			Cut:     "if n > 1 {",
			With:    "if n > maxSetMembers {",
			Package: server,
			Tests:   []string{"TestCreateIndexes_RepeatsTheCommitQuorumThatTheSetCanMake"},
		},
		{
			Name:    "sandbox: a collection that can be replicated has an index of _id",
			File:    schema + "/create.go",
			Cut:     `if bare && c.DB != "local" {`,
			With:    `if bare && c.DB == "local" {`,
			Package: server,
			Tests:   []string{"TestCreate_RefusesOptionsAsTheServerDoes"},
		},
		{
			Name:    "sandbox: an insert nests no deeper than an update",
			File:    engine + "/prepare.go",
			Cut:     "case depth > modify.MaxStoredDepth:",
			With:    "case depth > 2*modify.MaxStoredDepth:",
			Package: server,
			Tests:   []string{"TestInsert_RefusesADocumentThatNestsTooDeep"},
		},
		{
			Name:    "sandbox: a required image that was not kept fails a stream before 6.0",
			File:    engine + "/image.go",
			Cut:     "e.Before == nil && o.EarlyImage:",
			With:    "e.Before != nil && o.EarlyImage:",
			Package: server,
			Tests:   []string{"TestImages_Before6ACollectionKeepsThoseBeforeAChange"},
		},
		{
			Name:    "sandbox: what compares text by bytes is refused under a collation",
			File:    command + "/collation.go",
			Cut:     `if operator := comparingIn(stage); operator != "" {`,
			With:    `if operator := comparingIn(stage); operator != "" && by == nil {`,
			Package: server,
			Tests:   []string{"TestCollation_IsThatOfEveryStageOfAPipeline"},
		},
		{
			Name:    "sandbox: a change stream resumes at an event only as it was split",
			File:    data + "/changestream.go",
			Cut:     "parts, err = resumedAt(event, parts)",
			With:    "parts = parts[min(int(event.Given), len(parts)):]",
			Package: server,
			Tests:   []string{"TestImages_AStreamResumesAtAnEventOnlyAsItWasSplit"},
		},
		{
			Name:    "sandbox: $lookup finds by the pipeline's collation",
			File:    mongodb + "query/stage_lookup.go",
			Cut:     "match.In(l.foreign, values, l.env.Collation)",
			With:    "match.In(l.foreign, values, nil)",
			Package: server,
			Tests:   []string{"TestCollation_IsThatOfEveryStageOfAPipeline"},
		},
	}
}
