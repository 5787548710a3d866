// Package query says what MongoDB's aggregation pipelines, projections and sorts
// mean, as version 4.4 of the server does. It stands on packages that each know
// one part of the language and nothing of those above them:
//
//	modify      updates: operators, replacements, pipelines
//	query       pipelines, projections, sorts
//	match       filters, and the bounds of indexes that they need
//	expression  expressions
//	collation   the order of texts
//	fieldpath   the names of fields
//
// In all of them the following holds. A specification is compiled once and then
// applied to any number of documents; what is compiled is read only and may be
// used by several goroutines at once. Nothing does I/O, reads a clock or keeps
// state, but scripts (package javascript) in the session that they are given: what
// an expression may know of the world comes in an expression.Env.
//
// Documents go in and out as raw BSON that bsonkit.Validate has accepted. A
// document that was not changed is handed out as it came in, and what comes
// out may share memory with what went in; only what a modify.Update makes never
// does. What is compiled shares the memory of its specification. Every error
// is a *mongoerr.Error with the server's own code, but for the error of a
// context or of the documents given to a pipeline.
//
// Refused by name: $text, the geographic operators, the stages that
// belong to the server ($out, $merge, $changeStream and their kin), and all that
// package expression leaves out.
package query
