// Package verify recomputes aggregates' read documents from the source, and compares
// them with those that readers see.
//
//	source ─▶ messages ─▶ projections ─▶ recomputed ─┐
//	                                                 ├─▶ Verdict
//	read documents, each at its position ────────────┘
//
// # The invariant
//
// A document and what is recomputed are compared at one position: that of the document.
// Events behind it are not applied. So a document that moves on while it is compared is
// no difference, however busy it is, and whatever is found was wrong when it was read.
//
// For that every event up to the document's position must be known, which is so where
// the document was read before the source: a careful look. Where many aggregates pass,
// the source comes first; what then looks different is looked at again, carefully.
//
// Two differences may be none a moment later: a document that is not there, and one
// behind the source. They are looked at again until Config.Wait is over.
//
// Sources without versions give states instead of events, placed at the time at which
// they were read. There is no position to compare at; such documents are looked at until
// both agree, or the time is over. One that has changed since the last look is then
// Unsettled.
//
// # Mending
//
// Mend puts what was recomputed up to the source's present in the place of a document, in
// one step, if that is still at the position at which it was read; else it looks again.
// Whatever of that is on its way is a repeat then, later events go on from there, and
// readers see the old document or the new one. What is behind the event at which an
// aggregate is halted is left to its redrive. It ends with a look that finds no
// difference, so what came in between is in the document, too: an event that was taken
// for a repeat, where the old position was too high, was committed before that look.
//
// # Failures
//
//   - The source ends early, or says something that is no message: an error. What was
//     reported until then stands.
//   - The process dies. Recomputed documents are left, which Documents removes in a later
//     run.
//
// What is not promised: anything of documents of another key than the aggregate's id.
// Many aggregates change them in an order of which the source knows nothing.
package verify
