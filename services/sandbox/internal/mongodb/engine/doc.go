// Package engine is the store behind the MongoDB side of the sandbox:
// databases, collections, indexes, the oplog, logical sessions, transactions
// and change streams of a replica set of one member. It knows documents as raw
// BSON and nothing of the wire protocol; filters and updates come to it as
// functions.
//
// # Shape
//
// A collection is a storage.Table, documents with their indexes, of which a
// snapshot costs a few words: a reader walks its snapshot without a lock while
// writers go on. The history of all tables is an oplog.Log.
//
//	statement ──▶ lock ──▶ table (records, indexes) ──▶ oplog ──▶ change streams
//	                 └─ transactions: a private snapshot, applied at commit
//
// One lock, Engine.mu, orders all writes. Every write to a document appends one
// entry to the oplog before the lock is given up; a transaction appends all of
// its entries at commit, under one cluster time. So the oplog is the history of
// the tables, and the only thing change streams read.
//
// # Invariants
//
//   - Cluster times in the oplog never fall, and grow from batch to batch.
//   - A record id is never used twice, so natural order is order of insertion.
//   - Each index of a table holds exactly the keys of the table's documents,
//     in snapshots too.
//   - A record or unique key that an open transaction has written is pending:
//     other transactions that touch it meet a write conflict (112), and writes
//     outside transactions wait until the transaction has ended.
//   - What a stream has given to its reader was in the oplog, in its order,
//     with nothing between left out that the stream's scope covers.
//
// # Durability
//
// There is one member, so a write is majority-committed when it is applied and,
// with a journal, on disk: neither change streams nor acknowledgements run
// ahead of the journal.
//
// # Not promised
//
// A statement that finds its documents by scanning holds the lock meanwhile.
// Readers do not see the writes of their own process order across collections,
// other than inside a transaction: each statement reads the newest state of the
// one collection it names.
package engine
