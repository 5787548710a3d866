// Package backfill copies what a collection holds, as changes that a relay can
// publish: whole, or only what was written since a time.
//
// A copy goes along an order of fields that ends in _id, in chunks. In an events
// collection the order begins with the aggregate's id and its version, so each
// aggregate's events are copied in the order in which they were committed.
//
// What holds:
//
//   - Each chunk is read in one snapshot of the database, at or after the cluster
//     time at which the copy began, and only from data that a majority has. So
//     every document from before that time is copied, if it still exists.
//   - A prefix of each aggregate. Within a chunk the snapshot shows no event
//     without those before it, and a chunk that ends inside an aggregate is
//     followed by one that begins there. What is missing at an aggregate's end
//     was written after the copy began, and is in the stream from that time.
//   - That is so under any type of id. Integers come before strings, and those before
//     UUIDs and ObjectIds, while an aggregate is told by its text: where a chunk has an
//     aggregate of which an earlier version comes later in the order, the copy ends in
//     a *SpelledError before it. So it does where an earlier version is under an id that
//     the copy has passed, and is not known to have been there before the copy began.
//   - It can be taken up after any document: the token of each change holds the
//     place. Documents of one place are never copied under two positions.
//   - The order is total: behind the last document of a chunk are all that sort
//     after it, whatever types their values have, missing ones and NaN too.
//   - A document in which a field of the order is an array, undefined or a regular
//     expression has no one place in it. These come behind all others, in the
//     order of their _id, so that each document is read once.
//   - A copy is complete when as many documents are finished and kept as such as
//     were read: see Source.Complete. That nothing is left to read is not enough.
//   - A copied event has the same message id and sequence as the one of its
//     insert, where the source numbers its events.
//
// What is not promised: documents that were deleted before they were reached are
// not copied.
package backfill
