// Package readmodel keeps the read documents in MongoDB.
//
// A Store consists of the ports that messages are delivered to. Each is a type of its
// own, and these write the collections:
//
//	Writes             the read documents, and their positions in applied_positions
//	Halts              halted_aggregates, and the marks of halts on read documents
//	Parking            parked_messages, as they come
//	Parked             parked_messages, as they are applied, listed or discarded
//	Skipped            skipped_events, but for the records that Writes makes
//	AggregateVersions  the versions of aggregates in applied_positions
//
// They share a database: its handle, the names in it, and transactions. Parking and
// Parked change a halt only through Halts, in their own transaction.
//
// Every document carries the position of the last event that changed it, under
// _relay, and every write is an upsert that asks for a lower one:
//
//	{_id: …, "_relay.sequence": {$lt: mine}}  →  {$set: {…, "_relay.sequence": mine, …}}
//
// So a message that comes again, or comes late, changes nothing. On a document
// whose position is not lower the filter finds nothing, the upsert tries to
// insert, and the unique _id refuses it with code 11000. That is not a failure but
// the answer "already applied", once a read has confirmed it: the same code also
// comes from a unique index of the user's, and from a document that somebody
// else has put there. Where the position is the same but the event is another,
// the source has given two events one version: the write is refused, so that
// the second one is parked instead of lost.
//
// The confirmation reads what a majority has. A message is settled because of it, and
// a position that only the primary has could still be rolled back.
//
// Neighbouring writes of one document are coalesced into one where a single update can
// do the same. Its guard asks for a position below the first one's, so that all of them
// apply or none, and it sets the last one's position. When the server refuses the content
// of such a write, the writes go again one by one, so that the right one is blamed. A
// state between two coalesced writes is never stored: a validator or a unique index of
// the user's does not see it.
//
// The coalesced writes of a batch for one collection are one ordered bulk write. The
// server stops such a bulk at the first error. The writes behind it go out again in
// the next bulk, without those that the confirmation has also shown to be applied, so
// that a batch that comes again as a whole costs three round trips. An unordered bulk
// would continue by itself, but the server may then change the order, and a later event
// that is written first makes the guard refuse the earlier one for ever.
//
// A batch that comes down to one write shares a command with the writes of other sessions
// while enough commands are under way: see groupCommit. That command is unordered, since
// its writes are independent, and each has its own answer.
//
// A document that many aggregates change cannot tell what was applied of each.
// For such a projection the positions are in a collection of their own, one for each
// aggregate, and a batch is one transaction: the guarded move of the position, then the
// documents. Two sessions that change one document conflict, and the later one starts
// over.
//
// A deleted document leaves a tombstone, the position alone, so that an old
// message cannot bring it back; an index lets the server remove it later.
// Readers use a view that does not show it.
//
// While an aggregate is halted its own documents say so under _relay.halted.
// The mark is set and removed in the transactions that store and lift the halt,
// and each write that a redrive makes meanwhile sets it anew.
//
// A batch for one collection needs no transaction. After coalescing, most batches are
// one write of one document, and the commit of a transaction would add a round trip to
// the one there is. A transaction pays where hundreds of writes remain, which does not
// happen in a session's batch.
//
// A batch for several collections is one transaction: an event that one of them
// refuses is stored in none, and nothing after it either, so that a halted
// aggregate stands at the same event everywhere. That costs the round trip of a
// commit for a batch. When a batch comes again, in whole or in part, its transaction is
// refused, and it goes on without what is confirmed to be applied.
//
// A write that depends on its document also needs a transaction: the document is read
// and changed in one, after everything before it in the batch. Where the document is not
// below the event, it is not looked at: the event is a repeat, and the document may show
// what the event itself has made.
//
// An event that changes nothing moves the position of an existing document, and makes
// none. A tombstone keeps the position of the deletion.
//
// An event that a projection skips by its policy is recorded in skipped_events, in the
// transaction that moves the position over it.
//
// Every write asks for a majority, whatever the server's default is.
package readmodel
