// Package resend sends again what was sent before, beside the running stream: by the
// same mapping, through the same lanes, with the same ids and sequences.
//
//	change stream ─▶ Beside ─▶ relay: map, window, lanes, send
//	collection ─▶ chunk ─┘       │
//	                  ▲          ▼ what became of each
//	                  └── progress, in the state database, fenced by term
//
// The documents that an operator has selected are read in chunks, ordered by aggregate
// and version, each chunk in one snapshot. Each chunk is handed to the relay between
// two changes of the stream. The next one is read when every message of the one before
// is accepted, or is known never to be. So at most one chunk is in the window, and the
// stream never waits for a chunk to be read.
//
// # Order
//
// Repeats are harmless to a consumer that writes only over a lower sequence, and a resend
// must add nothing but repeats: an event that was selected must not overtake an earlier
// one of its aggregate that was not selected, or no longer exists. So
//
//   - A chunk is handed on when the stream has handed on all that was committed up to the
//     time of the chunk's snapshot. A lane keeps that order. The stream has passed a time
//     when it shows a change of a later time, or looks past it and finds none. A change
//     of that very time is not enough, because all changes of a transaction have one time.
//
// While the stream has not come so far, is halted, or is not read, the resend waits with
// its chunk, and its status says so. A later term has a place of its own, and waits again.
//
// A resend also serves consumers that begin an aggregate from nothing: they take its
// versions one after another from the resend, and pass over live ones that are ahead of
// it. For them two things hold:
//
//   - Within a resend an aggregate's events enter its lane in their order, from the
//     first selected on. A lane sends in order, and the next chunk waits for it.
//   - When the last resent event of an aggregate enters the lane, no later live event
//     has entered it yet. So the next one is live, and nothing is missing between them.
//
// The first is the order in which chunks are read. The second is not: while a chunk is
// read, changes of the stream go on to the lanes, and the snapshot may lack them. So
//
//  1. before a chunk is read, Beside begins to keep the changes that it hands on;
//  2. then it asks for the source's time, and raises that above the last change handed
//     on, or the checkpoint that the term began at; the snapshot is of that time or
//     later, so it has everything that was handed on before;
//  3. behind the chunk's documents go the changes kept since, of aggregates that end
//     in the chunk, marked as resent; except those committed before the time of 2,
//     and those of no later version than the last that the chunk has of their aggregate:
//     these the chunk has, or they were not selected.
//
// So the chunk has whatever was handed on before it: step 2 covers what came before
// step 1, and step 3 the rest. What both the snapshot and step 3 have is sent once where
// events have versions, and else twice, under one message id.
//
// The last aggregate of a chunk may continue in the next one, which then begins with the
// rest of it. What was kept of that aggregate would come too early, and is left out: it
// is committed, so the next chunk has it. Where a chunk is not full, nothing is left, and
// the resend ends there, however fast its last aggregate grows.
//
// A live event may come between two resent ones of its aggregate, if these are of two
// chunks. It was committed before the second chunk was read, so the resend sends it again
// in its place, before any later live one. An aggregate whose first event is committed
// after its place was passed is in no chunk: all of it is live.
//
// In documents mode each document is an aggregate. What is sent is its state at the
// snapshot, placed at the snapshot's time: above any change that the state surely
// contains, and below those that step 3 puts behind it.
//
// # Failures
//
//   - The leader ends, or is replaced. Progress is saved after each chunk, fenced by the
//     term; the next leader continues after the last chunk saved. What was sent of the
//     chunk under way is sent again under the same message ids, which the topic's
//     duplicate detection drops.
//   - A stale leader. A term takes the resend over from all earlier ones before it hands
//     anything on, and saves are fenced by it. So a stale leader saves nothing once its
//     successor has sent anything. What it still sends is one chunk, in order, under the
//     same ids: it comes again, or was sent already.
//   - A message that is never accepted. It is counted, with its reason, and not
//     parked: the stream has met the same change before.
//   - More changes pass during a read than are kept. The chunk is thrown away, and
//     read again.
//   - The source does not answer, or not in time. Only the resend waits, its progress says
//     why, and it can be paused and cancelled all the while.
//   - The collection is dropped, renamed, replaced or emptied. Nothing left to read is
//     then not the end: a part whose collection is another one than was selected from,
//     or that has read less than was selected, is short, with the reason, and the resend
//     is incomplete. In documents mode the stream has the deletions: less of a collection
//     that is known to be the same is all of it, unless a filter selects: then what is
//     missing may only have ceased to match. The collection is compared where reading
//     begins in a term, and after each chunk before it is handed on, so nothing of another
//     collection is sent.
//
// What is not promised: that a message is sent once; anything about documents that were
// deleted before the resend reached them, where at least as many were written; the order
// of events whose versions do not rise in the order of their commits.
package resend
