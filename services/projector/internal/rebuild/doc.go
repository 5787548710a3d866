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
//	Settled ──Begin──▶ Filling ──▶ Following ──Settle──▶ Settled
//	    ▲                 │            │
//	    └─────Abandon─────┴────────────┘
//
// The states are
//
//   - Settled: there is only the current version.
//   - Filling: there is a next version, filled by a resend for it.
//   - Following: the next version has had everything; readers are switched to it, and the
//     current one is still written, so that the way back stays open.
//
// Each change raises the record's revision. A projector works by one revision from its
// start to its end, and reports which. A version number is never used twice.
//
// # What readers see
//
// Only a command that holds the record, unchanged since it decided, changes what readers
// see. Each change of the record raises its turn, even a change that projectors do not
// care about, and applies only to the turn that was read. So
//
//   - a command that will change the view first holds the record, for some seconds by
//     the database's clock, in which nobody else changes it; the command ends its work
//     well before that;
//   - what will be dropped is first noted in the record, and from then on no command
//     shows it to readers;
//   - a command that dies leaves a turn from which the next one continues, once the time
//     is over. A command that stood still, and finds that others have continued, shows
//     readers what the record says by then.
//
// The record has a hash of the projection as it was when the rebuild began. A projector
// that works by another projection notes that in the record before it takes a session.
// Then commands only cancel, unless they are forced.
//
// # The invariant
//
// What the next version has of an aggregate is what the aggregate's events make, from the
// first one up to some event, with none missing in between. So
//
//   - it takes resent events in order: a resend begins with the aggregate's first event,
//     and leaves none out. Where one has not come, the next one goes over a hole, which is
//     noted, and which nothing fills. Where the aggregate begins behind its first event,
//     that is a hole unless the current version is known to begin no later: then either the
//     source has no more, or a comparison shows it;
//   - it takes a live event where it has the version before. It passes by one that is
//     ahead, which is completed: the resend brings it again before any later live event
//     that directly follows;
//   - while following, it also takes a live event where it has all that the current
//     version has. If versions are missing before that event, they were never sent; unless
//     the current version has nothing of the aggregate, and so does not show what was: that
//     is a hole as well.
//
// The position in the next version itself decides. Positions of the current version are
// trusted only after a comparison has shown what the next one lacks.
//
// Sources without versions resend the state of documents: the next version begins with a
// resent state, or with the document's insertion, and continues with what is later.
//
// # Failures
//
//   - A process dies, or a session moves: positions are in the database, and are looked
//     up for each batch.
//   - A process stands still, or cannot say that it lives, for so long that nobody waits
//     for it any more. It then applies nothing until it has looked at the record again.
//   - A projector that knows nothing of the next version completes an event. The next
//     version falls behind the current one there, and takes no later event over it; the
//     comparison shows it.
//   - An event cannot be applied in another projection. What is resent is decided by the
//     next version alone.
//   - A resent event cannot be applied in the next version, and was discarded. The next
//     version passes it by, and is then at it.
//   - An event cannot be applied in the next version, or its aggregate is halted. The
//     resent message is given back until it can be applied, and the rest of its session
//     waits behind it, but for a missing version that ends the halt. It is never parked: it
//     would take the place of the live event, which has the same id and sequence.
//   - The command dies. Whoever runs it again finds the record, and it continues.
//   - Two commands run at once: the second to act on a turn is refused.
//
// What is not promised: that the next version becomes complete by itself where versions
// have holes. It is then behind, and readers are not switched to it. Nor is it promised
// that a change of the view is harmless if the network delivers it to the database after
// the command's time, when the command itself is gone.
package rebuild
