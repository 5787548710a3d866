// Package verify recomputes aggregates' read documents from the source, and compares
// them with those that readers see.
//
//	source ─▶ messages ─▶ projections ─▶ recomputed ─┐
//	                                                 ├─▶ Verdict
//	read documents, each at its position ────────────┘
//
// # The invariant
//
// A document and what is recomputed are compared at one position: the document's. Events
// after it are not applied. So a document that moves on while it is compared, however
// busy, is no difference, and every difference that is found was one when the document
// was read.
//
// This requires that every event up to the document's position is known, which holds if
// the document was read before the source: a careful look. A pass over many aggregates
// reads the source first; whatever then looks different gets a careful look.
//
// Two differences may resolve themselves: a missing document, and one behind the source.
// They are looked at again until Config.Wait is over.
//
// Sources without versions give states instead of events, placed at the time at which
// they were read. There is no position to compare at, so such documents are looked at
// until both agree, or the time is over. A document that has changed since the last look
// is then Unsettled.
//
// # Mending
//
// Mend replaces a document, in one step, with what was recomputed up to the source's
// present, if the document is still at the position at which it was read; otherwise it
// looks again. Those events, where they are still on their way, are then repeats; later
// events continue from there; and readers see the old document or the new one. Events
// after the one at which an aggregate is halted are left to its redrive.
//
// It ends with a look that finds no difference. So the document also has what came in
// between: if the old position was too high, an event may have been taken for a repeat,
// but it was committed before that look.
//
// # Failures
//
//   - The source ends early, or prints something that is no message: an error. What was
//     reported until then stands.
//   - The process dies. It leaves recomputed documents, which Documents removes in a later
//     run.
//
// What is not promised: anything about documents of another key than the aggregate's id.
// Many aggregates change them, in an order that the source does not know.
package verify
