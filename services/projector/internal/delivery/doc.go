// Package delivery does what a session's messages ask for: it decodes them, has
// the projections decide, stores the writes, and says how each message is to be
// settled.
//
// A batch goes one way through it:
//
//	guard → decode → screen → project → write → verdicts, and park the rest
//
// A stage looks at what the ones before it let on, from the first message to the end
// of the batch; where it lets a message not on, it moves the end before that one and
// says why. What the last to move it has said becomes of the rest: it is parked, or it
// comes again. So nothing is applied over what was not, whichever stage found it, and
// all ways lead to the verdicts: see batch.
//
// What becomes of a message:
//
//   - Applied, repeated or passed by: its writes are stored, or were stored
//     already, or no projection follows its type. It is completed.
//   - Of no aggregate: its id, its session or its sequence is missing or
//     contradicts itself, so nobody can say what follows it. It is dead-lettered
//     with the fields that are wrong.
//   - Not projectable: it cannot be read, though its place is known (a body that
//     is broken, a contract version of the future), or a projection or the store
//     refuses it for what it says. What follows in its aggregate builds on it, so the aggregate is halted:
//     this message and all later ones of the aggregate go in order to the
//     parked messages, and are completed. Other aggregates flow.
//   - Not stored for a reason that passes: Apply returns the error, and the
//     engine offers the message again. One that only its aggregate meets, for a
//     time in which others are stored, is taken for lasting: the aggregate is
//     halted. See Config.HaltAfter.
//
// Invariants:
//
//   - A verdict is given only for what a majority of the read database has.
//
//   - A halt is stored before the failed message is parked, and the message is
//     parked before it is completed; a crash in between leads to the same again.
//
//   - No later message of a halted aggregate is applied, by any replica. Each
//     replica knows the halted aggregates from a list that it reads every
//     second, and looks an aggregate up when that list is older than trustTime.
//     So whoever learns of a halt keeps the session for longer than that before
//     completing anything of it: then every list that is still trusted names
//     the aggregate, whoever gets the session next. That goes for each halt by
//     itself: a list may say of an aggregate that its earlier halt is lifted.
//     It parks before it waits: a redrive that comes meanwhile finds what the halt
//     is for, and does not lift it at once.
//
//   - Nothing is parked without a halt: parking and lifting a halt exclude each
//     other in the store. So a redrive, which applies what is parked in order and
//     lifts the halt once nothing is, leaves nothing behind that would be passed
//     over; a message that comes too late to be parked is applied.
//
// Versions. Where the source numbers its events, one may be missing: the publisher
// has parked it, and what follows was sent. Missing versions are counted and passed
// over, or waited for (Deps.Versions). Then the batch ends before the gap, and its
// session is given back until the missing one has come; a batch is applied in the
// order of versions, so one that comes behind the others is found. After a while
// the aggregate is halted as for an event that fails, and what is parked is applied
// as soon as the missing one arrives. How far an aggregate is, is noted after its
// events are stored and before they are settled, so no event is taken for missing
// that was dealt with.
//
// A process that dies leaves no trace at the broker, which counts nothing then.
// So each process says that it lives, and after one has died the others note
// what they are about to apply, for some minutes. A message that a few processes
// have died of is parked; good times cost nothing. See Care.
package delivery
