// Package storage keeps the documents of a collection with their indexes, and
// chooses by which of them a statement is read.
//
// A Table is an ordered map from record id to document and one from key to record
// id per index. Each index holds exactly the keys of the table's documents, after
// every write that succeeds or fails. Both are copy-on-write trees: a snapshot
// costs a few words, and what is read from it never changes. A Table does no
// locking; its owner is the only writer.
package storage
