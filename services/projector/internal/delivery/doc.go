// Package delivery processes a session's messages: it decodes them, has the projections
// decide, stores the writes, and says how each message is to be settled.
//
// A batch goes one way through it:
//
//	guard → decode → screen → project → write → verdicts, and park the rest
//
// A stage looks at what the earlier stages let pass, from the first message to the end
// of the batch. Where it stops a message, it moves the end of the batch before that one
// and says why. The reason of the last stage that moved the end decides what becomes of
// the rest: it is parked, or it comes again. So no message is applied over an earlier one
// that was not, whichever stage stopped that, and all ways lead to the verdicts: see
// batch.
//
// What becomes of a message:
//
//   - Applied, repeated or passed by: its writes are stored, or were stored
//     already, or no projection follows its type. It is completed.
//   - Of no aggregate: its id, its session or its sequence is missing or
//     contradictory, so nobody can say what follows it. It is dead-lettered
//     with the fields that are wrong.
//   - Not projectable: it cannot be read, though its place is known (a broken body, a
//     future contract version), or a projection or the store refuses its content. What
//     follows in its aggregate builds on it, so the aggregate is halted: this message
//     and all later ones of the aggregate are parked in order, and completed. Other
//     aggregates flow.
//   - Skipped: a projection cannot apply it, and its policy says to go on without it. The
//     others apply it, it is recorded, and it is completed, or dead-lettered where the
//     policy says so. Where the policy is to stop, no projector takes sessions any more.
//     See projection.Policy.
//   - Not stored for a reason that passes: Apply returns the error, and the
//     engine offers the message again. An error that only one aggregate meets, while
//     others are stored for some time, is taken for lasting: the aggregate is halted.
//     See Config.HaltAfter.
//
// Invariants:
//
//   - A verdict is given only for what a majority of the read database has.
//
//   - A halt is stored before the failed message is parked, and the message is
//     parked before it is completed. After a crash in between, the same happens again.
//
//   - No later message of a halted aggregate is applied, by any replica. Each
//     replica knows the halted aggregates from a list that it reads every
//     second, and looks an aggregate up when that list is older than trustTime.
//     So a replica that learns of a halt keeps the session for longer than that before
//     it completes anything of it: then every list that is still trusted names the
//     aggregate, whoever gets the session next. It waits for each halt anew, since a
//     list may still say that the aggregate's earlier halt is lifted. It parks before
//     it waits, so that a redrive that comes meanwhile finds what the halt is for, and
//     does not lift it at once.
//
//   - Nothing is skipped without a record: both are one transaction. An event that is
//     skipped has a batch of its own, so the brake counts it before it is stored.
//
//   - Nothing is parked without a halt: parking and lifting a halt exclude each
//     other in the store. A redrive applies what is parked, in order, and lifts the halt
//     once nothing is left. So it leaves nothing behind that would be passed over, and a
//     message that comes too late to be parked is applied.
//
// Versions. Where the source numbers its events, one may be missing: the publisher
// has parked it, and what follows was sent. Missing versions are counted and passed
// over, or waited for (Deps.Versions). To wait, the batch ends before the gap, and its
// session is given back until the missing version has come. A batch is applied in the
// order of versions, so a version that comes behind later ones is found. After a while
// the aggregate is halted as for an event that fails, and what is parked is applied
// as soon as the missing one arrives. The version that an aggregate has reached is noted
// after its events are stored and before they are settled. So no event that was dealt
// with is taken for missing.
//
// A process that dies leaves no trace at the broker, which counts no delivery then.
// So each process says that it lives. After one has died, the others note for some
// minutes what they are about to apply, and a message that a few processes have died of
// is parked. While no process dies this costs nothing. See CrashNotes.
package delivery
