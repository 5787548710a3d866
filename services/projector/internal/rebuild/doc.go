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
// # What readers see
//
// It changes only by a command that holds the record as it was when the command decided.
// Each change of the record, also one that no projector works by, raises its turn, and is
// made only of the turn that was read. So
//
//   - whoever is to change the view holds the record first, for some seconds that the
//     database's clock counts, and meanwhile nobody else changes it; what is done ends
//     well before;
//   - what is to be dropped stands in the record before, and no command has readers see
//     it after that;
//   - a command that dies leaves a turn that the next one goes on from, once the time is
//     over. One that stood still, and finds afterwards that others have gone on, has
//     readers see what the record says by then.
//
// The record has a hash of what the projection said when it began. A projector that
// writes by another notes that in the record before it takes a session: then no command
// goes on but to cancel, or where it is forced.
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
//   - Two commands at once: the one that comes second to a turn is refused.
//
// What is not promised: that the next version comes to its end by itself where versions
// have holes. It is then behind, and is not switched to. Nor that a change of the view is
// harmless which the network delivers to the database after the command's time, when the
// command itself is gone.
package rebuild
