// Package readmodel keeps the read documents in MongoDB.
//
// A Store is made of the ports that messages are delivered to. Each is a type, and each
// collection has one that writes it:
//
//	Writes             the read documents, and their positions in applied_positions
//	Halts              halted_aggregates, and the marks of halts on read documents
//	Parking            parked_messages, as they come
//	Parked             parked_messages, as they are applied, listed or discarded
//	AggregateVersions  the versions of aggregates in applied_positions
//
// They share a database: its handle, the names in it, and transactions. What Parking and
// Parked do to a halt they do in a transaction of theirs, through Halts.
//
// Every document carries the position of the last event that changed it, under
// _relay, and every write is an upsert that asks for a lower one:
//
//	{_id: …, "_relay.sequence": {$lt: mine}}  →  {$set: {…, _relay: {sequence: mine, …}}}
//
// So a message that comes again, or comes late, changes nothing. On a document
// whose position is not lower the filter finds nothing, the upsert tries to
// insert, and the unique _id refuses it with code 11000. That is no failure but
// the answer "already applied", once a read has confirmed it: the same code
// comes from a unique index of the user's, and from a document that somebody
// else has put there. Where the position is the same but the event is another,
// the source has given two events one version: the write is refused, so that
// the second one is parked instead of lost.
//
// The confirmation reads what a majority has. A message is settled on the word
// of it, and a position that only the primary has could still be rolled back.
//
// Neighbouring writes of one document are folded into one, where an update can
// be made that does what they do one after another: its guard asks for a
// position below the first one's, so that all of them apply or none, and it
// leaves the last one's. When the server refuses a fold for what it says, the
// writes go again one by one, so that the right one is blamed. A state between
// two folded writes is never stored: a validator or a unique index of the
// user's does not see it.
//
// What is left of a batch for one collection is one ordered bulk write. The
// server stops such a bulk at the first error; the writes behind it go out
// again in the next one, without those that the confirmation has shown to be
// applied as well, so that a batch which comes again as a whole costs three
// round trips. An unordered bulk would go on by itself, but the server may then
// change the order, and a later event that is written first makes the guard
// refuse the earlier one for ever.
//
// A document that many aggregates change cannot tell what was applied of each.
// For such a projection the positions stand in a ledger, one for each aggregate,
// and a batch is one transaction: the guarded move of the position, then the
// documents. Two sessions that change one document are in each other's way, and
// the later one starts over.
//
// A deleted document leaves a tombstone, the position alone, so that an old
// message cannot bring it back; an index lets the server remove it later.
// Readers use a view that does not show it.
//
// While an aggregate is halted its own documents say so under _relay.halted.
// The mark is set and removed in the transactions that store and lift the halt,
// and each write that a redrive makes meanwhile sets it anew, since it replaces
// _relay as a whole.
//
// What a batch asks of one collection goes without a transaction. Most batches are
// one write of one document after folding, and a transaction would add a round
// trip, its commit, to the one there is; it pays where hundreds of writes remain,
// and a session's batch has none such.
//
// What it asks of several collections goes in one: an event that one of them
// refuses is stored in none, and nothing after it either, so that a halted
// aggregate stands at the same event everywhere. That costs the round trip of a
// commit for a batch. A batch that comes again, in whole or in part, has its
// transaction refused, and goes on without what is confirmed to be applied.
//
// So does a write that depends on its document: it is read, and changed, in one
// transaction, after all that stands before it in the batch. A document that is not
// below the event is not looked at: the event is a repeat, and the document may show
// what the event itself has made.
//
// An event that changes nothing moves the position of a document that is there, and
// makes none. A tombstone keeps the position of the deletion.
//
// Every write asks for a majority, whatever the server's default is.
package readmodel
