// Package sessionlink takes sessions from a Service Bus subscription directly over
// AMQP, with the transport that the official client is built on. It is the
// adapter for many short sessions: a session costs one attach and one detach,
// where the official client needs some fifteen exchanges more.
//
//	connection ──┬── $cbs           one pair of links: a claim for each entity, put again before its end
//	             ├── $management    one pair of links, opened before any lock is renewed
//	             └── lane, lane …   an AMQP session each, with the link of one held session
//
// A held session, on the wire:
//
//	attach (session filter null, timeout) ─▶ attach (the session's id, locked until)
//	flow (credit) ─▶ transfers             as many as were asked for, no more
//	dispositions ─▶ dispositions           many under way at once, each answered
//	detach ─▶ detach                       what is not settled is free again, uncounted
//
// Invariants:
//
//   - Credit is what was asked for and has not come. What comes after a receive
//     has ended stays with the link, in order, for the next one; a message is
//     never handed back by itself, which would let a later one overtake it: the detach
//     hands back everything at once. Credit is drained only before a session is kept
//     without being received from.
//   - A receive waits for what has just been asked for. Messages may be asked for while
//     earlier ones are on their way, and then come a round trip later. A receive in
//     between does not take the session for empty.
//   - What is under way fits the connection. No more is asked for than arrives in a
//     quarter of a second plus the time of the way, so that renewals and settlements do
//     not queue behind it for long; a receiver that would ask for more waits for its
//     turn. That amount starts small, and follows what has arrived. A receive lingers for
//     as long as a message that waits at the broker takes to arrive. See pace.
//   - A session that was granted is held by somebody or given back. An attach is
//     never cancelled; the service is asked to wait a little shorter than the
//     caller does, and a session that is granted after the caller has left is detached.
//   - A lost session stays lost. Nothing attaches again without the engine's knowledge,
//     and a link that has ended delivers, renews and settles nothing.
//   - A lane is reused only when its link was given back, the detach was answered, and
//     all that came was settled. Otherwise the lane ends, and with it only its session.
//
// Settlement. The receiver settles second: the service answers each disposition when it
// has carried it out, and Settle returns with the answer. So what is counted as
// completed is completed. The dispositions of a batch are under way together. Settling
// first would save the answers, and hide that a lock was lost. A lost answer leaves open
// whether the message is completed. If it is not, it comes again, and the guard of each
// write finds it applied.
//
// Failures. The end of a connection ends all its sessions at once, and the next
// accept connects anew. A dead connection is noticed by an attach that is not answered
// in its time while nothing else is answered either, by a write that is not taken, or by
// the idle timeout, and is closed. The engine is told that an accept, a renewal or a
// settlement is throttled, with the pause that the service asks for. Where a link or a
// connection ends for it, only an accept can wait. When the service refuses because a
// claim has expired, the claim is put again, once. Redirects are refused by name.
//
// Not promised: that the service sees a session given back before the detach has
// been answered, nor how it chooses the next session.
package sessionlink
