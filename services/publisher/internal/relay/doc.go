// Package relay is the publisher's loop: it takes changes from a stream, sends
// each as a message, and moves the checkpoint over what was accepted.
//
//	source ─▶ read ─▶ map ─▶ window ─▶ lane per aggregate ─▶ senders ─▶ topic
//	                   │        │                               │
//	                   ▼        └──── watermark ◀──── accepted ─┘
//	                 parked             │
//	                                    ▼ at most every CheckpointInterval, and at the end
//	                                checkpoint (fenced by term)
//
// What holds:
//
//   - Order. A lane has one send in flight, and keeps what was not accepted at
//     its front. So messages of one aggregate are first accepted in the order
//     of their changes, however sends fail, and lanes do not wait for each other.
//   - Nothing is lost. The watermark is the end of the longest run of changes
//     from the beginning that are finished: accepted by the topic, parked, or
//     passed over by the mapper's rule. Only the watermark is saved.
//   - The token of an empty read is used only when nothing is unfinished:
//     it stands behind everything that was read before it.
//   - Bounded memory. The window holds MaxInFlight changes and MaxInFlightBytes;
//     when it is full, reading waits.
//   - In time. No more bytes are under way to the topic than it has accepted in the last
//     third of the time that a send has: see load. Sends that share a narrow link do not
//     fail for that.
//   - A leader's work only. Right before each send the lease is asked whether it
//     can still be trusted, and every send ends with the context of the term.
//
// What happens on failures:
//
//   - A send that fails for a reason that may pass opens the circuit breaker of all lanes.
//     One send at a time tries again, with growing pauses, and closes it. The
//     same messages are sent again before any later one of their aggregates.
//   - A topic that throttles gets messages at a pace from then on, for all lanes
//     together: see pace. The service counts messages by the second, and advises to
//     wait for two seconds or more, which would cost more than what it refuses. So
//     one message is tried again within the second, four times at most; when all
//     tries are refused, the advice is followed. The pace stays below the limit and
//     touches it only to learn where it is. That causes one refusal in several
//     seconds, and a few more at once where many sends are under way.
//   - A message that is too large is parked like a change that cannot be
//     mapped, or stops the relay: StopOnUnmappable.
//   - A message that fails again and again while others are accepted waits alone,
//     with what follows it in its aggregate, and is parked after Patience. This
//     holds only for classes of errors that a message itself can cause: see trouble.
//     An outage, throttling, a closed or a full topic park nothing, however long
//     they last.
//   - Where there is nothing else to send, because all other changes are finished or
//     the window is full of the same aggregate, a message that was accepted before
//     is sent once more as a probe: see proof. Where none was accepted yet, one
//     message that the service itself refuses is given up after a longer time, and
//     no second one.
//   - A save that fails is tried again with the watermark of that time. One that is
//     refused because of a later term ends the relay with ErrSuperseded.
//   - A source that cannot go on, or has no more, ends only the reading: all that it
//     gave is taken in, finished and saved. What it gave and what is finished are
//     counted. Run returns the source's error when the two are equal, and otherwise
//     an *UnfinishedError.
//
// What is not promised: that a message is sent once. After a crash, a lost
// acknowledgement or a change of leader the same message is sent again, with the
// same id and sequence.
package relay
