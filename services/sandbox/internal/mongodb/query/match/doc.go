// Package match says which documents a filter means.
//
// A Filter is compiled once, is read only, and may be used by several goroutines
// at once. It matches a document without an index and with one alike: Bounds
// gives, for a field, ranges of index keys that never hide a document which
// matches. Only $expr and $where can fail while matching; every error is a
// *mongoerr.Error, or why the command is to end.
package match
