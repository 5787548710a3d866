// Package modify says what an update makes of a document, and what an upsert
// makes of none.
//
// An Update is compiled once, is read only, and may be used by several goroutines
// at once. What it makes is a valid document with the _id of the old one, shares
// no memory with it, and can be stored: within bsonkit.MaxDocument, and with no
// names that the server keeps for itself. A change by operators comes with its
// Delta; applied to the old document, it gives the new one. Every error is a
// *mongoerr.Error, and then nothing has changed.
package modify
