// Package query says what MongoDB's filters, sorts, projections, updates and
// aggregation pipelines mean, as version 4.4 of the server does.
//
// Each is compiled once and then applied to any number of documents; what is
// compiled is read only and may be used by several goroutines at once. Nothing
// here does I/O, reads a clock or keeps state: what an expression may know of
// the world comes in an Env.
//
// Documents go in and out as raw BSON that bsonkit.Validate has accepted. A
// document that was not changed is handed out as it came in, and what comes
// out may share memory with what went in; only what an Update makes never
// does. What is compiled shares the memory of its specification. Every error
// is a *mongoerr.Error with the server's own code, but for the error of a
// context or of the documents given to a pipeline.
//
// Refused by name: $where, $text, the geographic operators, $out, $merge,
// $graphLookup, $unionWith, $bucketAuto, and all that package expression
// leaves out. There is no collation but the simple one. Regular expressions
// have Go's syntax.
package query

import "changerelay/services/sandbox/internal/query/expression"

// Env is what filters, updates and pipelines may read besides the document:
// the clock of the operation and the user's variables.
type Env = expression.Env
