// Package bsonkit reads BSON documents without decoding them: it walks and
// validates raw bytes, compares values in BSON's order, turns them into keys
// that sort the same way, finds the values that a path means, and edits a
// document while leaving the parts nobody touches as the bytes they were.
//
// A value is a bson.RawValue; its zero value means "missing". Everything here
// is pure: no state, no clock, and arguments are never changed. Results may
// share memory with the arguments, so documents must not be changed afterwards.
//
// Documents from outside go through Validate once. The other functions then
// rely on it; on bytes that are broken all the same they stop early, and they
// never panic.
package bsonkit
