// Package rebuild builds a projection's documents anew beside those that readers see,
// as another version of it, which the same projectors write.
//
//	resent for the version ─▶ ┌────────┐ ─▶ the version that is filled
//	live ───────────────────▶ │ Choice │ ─▶
//	                          └────────┘ ─▶ the version that is current
//
// # States
//
// A Record says which versions a declared projection has:
//
//		Settled ──Begin──▶ Filling ──▶ Following ──Settle──▶ Settled
//		    ▲                 │            │
//		    └─────Abandon─────┴────────────┘
//
//	  - Settled: there is the current version alone.
//	  - Filling: there is a next one, filled by a resend for it.
//	  - Following: the next one has had everything; readers are switched to it, and the
//	    current one is written on, so that the way back stays open.
//
// Each change raises the record's revision. A projector works by one revision from its
// start to its end, and says by which. Numbers of versions are not given out twice.
//
// # The invariant
//
// What the next version has of an aggregate is what its events make from the first one
// up to some event, without any missing between. So
//
//   - what is resent for it, it takes in order: a resend begins with the aggregate's
//     first event, and leaves none out;
//   - a live event it takes where it has the version before. One that is ahead is
//     passed by, and completed: it comes again, by the resend, before any later live
//     one that follows;
//   - while following, it also takes one where it has all that the current version has.
//     Then what is missing before the event, where versions have holes, was never sent.
//
// What decides is the position in the next version itself. Positions of the current
// version are believed only after what it lacks was compared.
//
// Sources without versions have documents whose state is resent: the next version
// begins with a resent state, or with the document's insertion, and goes on with what
// is later.
//
// # Failures
//
//   - A process dies, or a session moves: positions are in the database, and are looked
//     up for each batch.
//   - A projector that knows nothing of the next version completes an event. The next
//     version falls behind the current one there, which the comparison shows; it takes
//     no later event over it.
//   - An event cannot be applied in the next version, or its aggregate is halted. What is
//     resent for the version is given back until it can be taken, and all of its session
//     waits behind it. It is never parked: it would stand in the place of the live event,
//     which has the same id and sequence.
//   - The command dies. Whoever runs it again finds the record, and goes on.
//
// What is not promised: that the next version comes to its end by itself where versions
// have holes. It is then behind, and is not switched to.
package rebuild
