// Package resend sends again what was sent before, beside the running stream: by the
// same mapping, through the same lanes, with the same ids and sequences.
//
//	change stream ─▶ Beside ─▶ relay: map, window, lanes, send
//	collection ─▶ chunk ─┘       │
//	                  ▲          ▼ what became of each
//	                  └── progress, in the state database, fenced by term
//
// The documents that an operator has selected are read in chunks along an order of
// aggregate and version, each chunk in one snapshot, and each is handed to the relay
// between two changes of the stream. The next chunk is read when every message of
// the one before is accepted, or is known never to be. So at most one chunk is in
// the window, whatever else waits there, and the stream never waits for a chunk to
// be read.
//
// # Order
//
// Repeats are harmless to whoever writes over a lower sequence alone, and what is resent
// is to be nothing else: an event that was selected must not overtake an earlier one of
// its aggregate that was not, or is not there any more. So
//
//   - A chunk is handed on when the stream has handed on all that was committed up to the
//     time of the chunk's snapshot. A lane keeps that order. The stream is behind a
//     time when it shows a change of a later one, or looks past it and finds none; not
//     with a change of that very time, since a transaction's changes have one.
//
// A stream that is behind, halted, or not read has the resend wait, with its chunk, and
// that is kept for whoever asks. A later term has a place of its own, and waits anew.
//
// What a resend has to see to besides is whoever begins an aggregate from nothing, and takes its versions
// one after another from the resend, passing over live ones that are ahead of it.
// Two things hold:
//
//   - Within a resend an aggregate's events enter its lane in their order, from the
//     first selected on. A lane sends in order, and the next chunk waits for it.
//   - When the last resent event of an aggregate has entered the lane, no live event
//     has that is later. So the next one is live, and nothing is missing between.
//
// The first is the order in which chunks are read. The second is not: while a chunk is
// read, changes of the stream go on to the lanes, and the snapshot may lack them. So
//
//  1. before a chunk is read, Beside begins to keep the changes that it hands on;
//  2. then the source's time is asked for, and raised above the last change handed
//     on, or the checkpoint that the term began at; the snapshot is of that time or later, so it has all that was handed on
//     before;
//  3. behind the chunk's documents go the changes kept since, of aggregates that end
//     in it, as resent ones, too; but for those that were committed before 2's time,
//     which the chunk has.
//
// Whatever was handed on before the chunk is thus in it: by 2 what came before 1, and
// by 3 the rest. What the snapshot and 3 both have goes twice, under one message id.
//
// The last aggregate of a chunk may go on in the next one, which then begins with what
// is left of it. What was kept of it would come before that, and is left out: it is
// committed, so the next chunk has it. Where a chunk is not full, nothing is left, and
// the resend ends there, however fast its last aggregate grows.
//
// A live event may well come between two resent ones of its aggregate, where these
// are of two chunks. It was committed before the second was read, so it comes again
// in its place, by the resend, before any later live one does. An aggregate whose
// first event is committed after its place was passed is in no chunk: all of it is
// live.
//
// Documents are one aggregate each, and what is sent is their state at the snapshot,
// placed at its time: above any change that it surely has, and below those that 3
// puts behind it.
//
// # Failures
//
//   - The leader ends, or is replaced. Progress is saved behind each chunk, in the
//     term; the next leader goes on behind the last one saved. What was sent of the
//     chunk under way is sent again under the same message ids, which the topic's
//     duplicate detection drops.
//   - A stale leader. A term takes the resend from all earlier ones before it hands
//     anything on, and saves are fenced by it. So a stale one saves nothing once its
//     successor has sent anything, and what it still sends comes again, or was sent
//     already: it is one chunk, in order, under the same ids.
//   - A message that is never accepted. It is counted, with its reason, and not
//     parked: the stream has met the same change before.
//   - More changes pass during a read than are kept. The chunk is thrown away, and
//     read again.
//   - The source does not answer. Only the resend waits.
//   - The collection is dropped, renamed, replaced or emptied. That nothing is left to
//     read is then no end: a part whose collection is not the one that was selected
//     from, or that has read less than was selected, is short, with the reason, and the
//     resend incomplete. It is compared where reading begins in a term, and behind each
//     chunk before it is handed on: so nothing of another collection is sent.
//
// What is not promised: that a message is sent once; anything about documents that
// were deleted before they were reached, where as many or more were written; the order
// of a stretch whose versions do not rise with the commits.
package resend
