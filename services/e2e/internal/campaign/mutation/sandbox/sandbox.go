// Package sandbox lists guards of the sandbox.
package sandbox

import (
	"slices"

	"changerelay/services/e2e/internal/campaign/mutation/guard"
)

const (
	mongodb = "services/sandbox/internal/mongodb/"

	engine  = mongodb + "engine"
	command = mongodb + "command"
	server  = mongodb + "mongoserver"
	journal = "services/sandbox/internal/journal"
)

// Guards are all guards of the sandbox.
func Guards() []guard.Guard {
	return slices.Concat(storeGuards(), clientGuards(), queryGuards(), busGuards())
}

// clientGuards are those that a hostile or careless client meets.
func clientGuards() []guard.Guard {
	return []guard.Guard{
		{
			Name:    "sandbox: a document with repeated elements has each key once",
			File:    engine + "/storage/index.go",
			Cut:     "return slices.Compact(keys), multikey, err",
			With:    "return keys, multikey, err",
			Package: engine + "/storage",
			Tests:   []string{"TestIndex_ADocumentHasEachKeyOnce"},
		},
		{
			Name:    "sandbox: a rename waits for the transaction that makes its target",
			File:    engine + "/ddl.go",
			Cut:     "if maker := e.creating[to]; maker != nil {",
			With:    "if maker := e.creating[to]; maker != nil && false {",
			Package: engine,
			Tests:   []string{"TestTransaction_ARenameWaitsForTheTransactionThatMakesItsTarget"},
		},
		{
			Name:    "sandbox: a variable of a command looks at no document",
			File:    command + "/let.go",
			Cut:     "if e.Reads() {",
			With:    "if false {",
			Package: server,
			Tests:   []string{"TestLet_VariablesOfACommandAreReadByItsExpressions"},
		},
		{
			Name:    "sandbox: a view's collation stays",
			File:    command + "/views.go",
			Cut:     "if !same {",
			With:    "if !same && false {",
			Package: server,
			Tests:   []string{"TestAView_RefusesWhatAnAggregationCannotDo"},
		},
		{
			Name:    "sandbox: a cursor keeps the time limit of the command that opened it",
			File:    mongodb + "commands/data/getmore.go",
			Cut:     "if cur.Limited && (",
			With:    "if !cur.Limited && (",
			Package: server,
			Tests:   []string{"TestFailPoint_MaxTimeAlwaysTimeOutEndsWhatHasALimit"},
		},
		{
			Name:    "sandbox: a transaction stays out of the server's own databases",
			File:    command + "/generic.go",
			Cut:     `case c.DB == "admin" || c.DB == "config" || c.DB == "local":`,
			With:    `case c.DB == "":`,
			Package: server,
			Tests:   []string{"TestTransactions_RefuseWhatTheServerDoes"},
		},
		{
			Name:    "sandbox: no transaction begins with killCursors",
			File:    command + "/generic.go",
			Cut:     `case c.Generic.startTransaction && c.Name == "killCursors":`,
			With:    `case c.Generic.startTransaction && c.Name == "":`,
			Package: server,
			Tests:   []string{"TestTransactions_RefuseWhatTheServerDoes"},
		},
		{
			Name:    "sandbox: a session that is killed keeps its number",
			File:    mongodb + "commands/admin/sessions.go",
			Cut:     "return eachSession(ctx, c, c.Server.Engine.KillSession)",
			With:    "return eachSession(ctx, c, c.Server.Engine.EndSession)",
			Package: server,
			Tests:   []string{"TestKillSessions_AbortsTheTransactionAndKeepsTheNumber"},
		},
		{
			Name:    "sandbox: a rounded long that leaves the range of longs is refused",
			File:    mongodb + "query/expression/rounding.go",
			Cut:     "if v.Type == bson.TypeInt64 && rounded.Type != bson.TypeInt64 {",
			With:    "if v.Type == bson.TypeInt64 && rounded.Type == bson.TypeNull {",
			Package: mongodb + "query/expression",
			Tests:   []string{"TestArithmetic"},
		},
		{
			Name:    "sandbox: the sessions of single users are not taken for all",
			File:    mongodb + "commands/admin/sessions.go",
			Cut:     "len(users) > 0",
			With:    "len(users) < 0",
			Package: server,
			Tests:   []string{"TestKillAllSessions_TakesAnArray"},
		},
		{
			Name:    "sandbox: a number is that of a transaction or of a retryable write",
			File:    engine + "/session.go",
			Cut:     "	if s.state != sessionRetryable {",
			With:    "	if s.state == sessionFresh {",
			Package: server,
			Tests:   []string{"TestTransactionNumbers_BelongToATransactionOrARetryableWrite"},
		},
		{
			Name:    "sandbox: an upsert does not wait for itself",
			File:    engine + "/write.go",
			Cut:     "if doc, _, err = prepareInsert(doc); err != nil {",
			With:    "if doc, err = e.PrepareInsert(doc); err != nil {",
			Package: server,
			Tests:   []string{"TestEmptyTimestamps_AreFilledInInsertsAndReplacements"},
		},
		{
			Name:    "sandbox: empty timestamps of replacements are filled in",
			File:    engine + "/prepare.go",
			Cut:     "err != nil || !emptyTimestamp {",
			With:    "err != nil || emptyTimestamp {",
			Package: server,
			Tests:   []string{"TestEmptyTimestamps_AreFilledInInsertsAndReplacements"},
		},
		{
			Name:    "sandbox: a fail point without commands fails none",
			File:    mongodb + "commands/admin/configurefailpoint.go",
			Cut:     "\trule.Commands = []string{}",
			With:    "\trule.Commands = nil",
			Package: server,
			Tests:   []string{"TestTransaction_FailPointModes"},
		},
		{
			Name:    "sandbox: a fail point of a collection leaves others alone",
			File:    command + "/failpoint.go",
			Cut:     "rule.Namespace != c.target() {",
			With:    `rule.Namespace == "" {`,
			Package: server,
			Tests:   []string{"TestTransaction_FailPointModes"},
		},
		{
			Name:    "sandbox: a field that moved is not told as removed",
			File:    mongodb + "query/modify/diff.go",
			Cut:     "\t\tdelete(missing, name)",
			With:    `		delete(missing, "")`,
			Package: mongodb + "query/modify",
			Tests:   []string{"TestPipelines_WhatIsToldGivesTheNewDocument"},
		},
		{
			Name:    "sandbox: before 5.0 what a pipeline changed is told as a replacement",
			File:    mongodb + "commands/data/update.go",
			Cut:     "SinceFive: c.Server.Version.Has(5)",
			With:    "SinceFive: c.Server.Version.Has(4)",
			Package: server,
			Tests:   []string{"TestStreams_TellAPipelinesChangesByVersion"},
		},
		{
			Name:    "sandbox: events of indexes and options come only where they are asked for",
			File:    engine + "/stream.go",
			Cut:     "if !s.options.Expanded || e.Further == nil {",
			With:    "if e.Further == nil {",
			Package: server,
			Tests:   []string{"TestVector_Vectors"},
		},
		{
			Name:    "sandbox: a statement without a number is not remembered",
			File:    engine + "/session.go",
			Cut:     "|| statement == NotRetryable {",
			With:    "|| statement == NotRetryable-1 {",
			Package: server,
			Tests:   []string{"TestRetryableWrites_NumberTheirStatements"},
		},
		{
			Name:    "sandbox: nothing writes while writes are locked",
			File:    engine + "/engine.go",
			Cut:     "\tif e.writeLock.times > 0 {",
			With:    "\tif e.writeLock.times > 99 {",
			Package: server,
			Tests:   []string{"TestFsync_WithALockKeepsWritesOutUntilItIsTakenBack"},
		},
		{
			Name:    "sandbox: nobody but the profiler writes to the profile",
			File:    mongodb + "commands/data/writes.go",
			Cut:     "if w.ns.Collection == command.ProfileCollection {",
			With:    "if w.ns.Collection == command.ProfileCollection && false {",
			Package: server,
			Tests:   []string{"TestProfile_NotesTheCommandsOfADatabase"},
		},
		{
			Name:    "sandbox: a stage of a pipeline has no $where",
			File:    mongodb + "query/stage.go",
			Cut:     "env.Where = false",
			With:    "env.Where = true",
			Package: server,
			Tests:   []string{"TestScripts_WhereSelectsDocuments"},
		},
		{
			Name:    "sandbox: an engine of scripts is given back with its command",
			File:    mongodb + "javascript/session.go",
			Cut:     "s.work.AtEnd(s.close)",
			With:    "_ = s.close",
			Package: mongodb + "javascript",
			Tests:   []string{"TestPool_EnginesAreGivenBack"},
		},
		{
			Name:    "sandbox: a script names no field that BSON cannot have",
			File:    mongodb + "javascript/decode.go",
			Cut:     `if strings.Contains(name, "\x00") {`,
			With:    "if false {",
			Package: mongodb + "javascript",
			Tests:   []string{"TestSession_ForgedValuesAreRefused"},
		},
		{
			Name:    "sandbox: keys of several elements do not tell what matches two conditions",
			File:    mongodb + "query/match/indexbounds.go",
			Cut:     "return !multikey || len(conditions) < 2",
			With:    "return true",
			Package: server,
			Tests:   []string{"TestExplain_ReadsKeysOnly"},
		},
		{
			Name:    "sandbox: a key of null does not tell a null from no value",
			File:    engine + "/storage/covered.go",
			Cut:     "if v.Type != bsonkit.Missing && v.Type",
			With:    "if v.Type",
			Package: server,
			Tests:   []string{"TestExplain_ReadsKeysOnly"},
		},
		{
			Name:    "sandbox: a long $range is interrupted",
			File:    mongodb + "query/expression/array.go",
			Cut:     "(step > 0 && i < at[1] || step < 0 && i > at[1]) && s.goesOn(1)",
			With:    "(step > 0 && i < at[1] || step < 0 && i > at[1])",
			Package: mongodb + "query/expression",
			Tests:   []string{"TestExpression_OperatorsAreInterruptedAmongManyElements"},
		},
		{
			Name:    "sandbox: a long $split is interrupted",
			File:    mongodb + "query/expression/text.go",
			Cut:     "\tfor part := range strings.SplitSeq(content(a), content(b)) {\n\t\tif !s.goesOn(1) {",
			With:    "\tfor part := range strings.SplitSeq(content(a), content(b)) {\n\t\tif s == nil {",
			Package: mongodb + "query/expression",
			Tests:   []string{"TestExpression_OperatorsAreInterruptedAmongManyElements"},
		},
		{
			Name:    "sandbox: the rows of a long $zip are interrupted",
			File:    mongodb + "query/expression/array.go",
			Cut:     "if !s.goesOn(len(inputs)) {",
			With:    "if s == nil {",
			Package: mongodb + "query/expression",
			Tests:   []string{"TestExpression_ZipCountsTheRowsThatItMakes"},
		},
		{
			Name:    "sandbox: what goes through a long array is interrupted",
			File:    mongodb + "query/expression/walk.go",
			Cut:     "return w.Iterator.Next() && w.scope.goesOn(1)",
			With:    "return w.Iterator.Next()",
			Package: mongodb + "query/expression",
			Tests:   []string{"TestExpression_OperatorsAreInterruptedAmongManyElements"},
		},
		{
			Name:    "sandbox: a lost token opens a stream before 5.0, which fails",
			File:    mongodb + "engine/stream.go",
			Cut:     "lost && (s.resume == nil || !o.LateLoss) {",
			With:    "lost {",
			Package: mongodb + "engine",
			Tests:   []string{"TestStream_LostHistory"},
		},
		{
			Name:    "sandbox: a view makes no event",
			File:    mongodb + "engine/stream.go",
			Cut:     "if e.UUID == uuid.Nil {",
			With:    "if e.UUID == uuid.Nil && e == nil {",
			Package: mongodb + "engine",
			Tests:   []string{"TestStream_Scopes"},
		},
		{
			Name:    "sandbox: requests of before 5.1 are refused from 6.0 on",
			File:    mongodb + "command/legacy.go",
			Cut:     "case !c.Request.Legacy || !c.Server.Version.Has(6):",
			With:    "case !c.Request.Legacy || c.Server.Version.Has(4):",
			Package: mongodb + "mongoserver",
			Tests:   []string{"TestLegacy_RequestsAreRefusedSince6"},
		},
		{
			Name:    "sandbox: a retried insert leaves out what 4.4.1 leaves out",
			File:    mongodb + "commands/data/insert.go",
			Cut:     "if !c.Retry.Done(number(last)) {",
			With:    "if c.Retry == nil || last >= 0 {",
			Package: mongodb + "mongoserver",
			Tests:   []string{"TestVector_Vectors"},
		},
	}
}
