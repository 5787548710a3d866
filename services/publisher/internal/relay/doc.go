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
//   - A leader's work only. Right before each send the lease is asked whether it
//     can still be trusted, and every send ends with the context of the term.
//
// What happens on failures:
//
//   - A send that fails for a reason that may pass closes a gate for all lanes.
//     One send at a time tries again, with growing pauses, and opens it. The
//     same messages are sent again before any later one of their aggregates.
//   - A message that is too large is parked like a change that can not be
//     mapped, or stops the relay: StopOnUnmappable.
//   - A save that fails is tried again with the then latest watermark. One that
//     is refused because of a later term ends the relay with ErrSuperseded.
//   - A source that can not go on ends the intake; what is in flight is finished
//     and saved, and Run returns the source's error.
//
// What is not promised: that a message is sent once. After a crash, a lost
// acknowledgement or a change of leader the same message is sent again, with the
// same id and sequence.
package relay
