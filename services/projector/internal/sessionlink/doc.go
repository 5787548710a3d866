// Package sessionlink takes sessions from a Service Bus subscription over AMQP
// itself, with the transport that the official client stands on. It is the
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
//     never handed back by itself, which would let a later one overtake it. So
//     nothing has to be drained: the detach takes back all of it at once.
//   - What has just been asked for is waited for. Messages may be asked for while those
//     before them are on their way, and come a round trip later: a receive between the
//     two does not take the session for empty.
//   - What is under way fits the connection. No more is asked for than comes in
//     a quarter of a second and the way, so that renewals and settlements do not stand
//     behind it for long: who would ask for more waits for its turn. How much that is
//     starts small, and follows what has come. A receive lingers for as long as a
//     message that waits at the broker takes to come here. See pace.
//   - A session that was granted is held by somebody or given back. An attach is
//     never cancelled; the service is asked to wait a little shorter than the
//     caller does, and what comes when the caller has left is detached.
//   - A lost session stays lost. Nothing attaches again behind the engine's back,
//     and a link that has ended brings, renews and settles nothing.
//   - A lane is used again only when its link was given back, that was answered,
//     and no answer is owed. Anything else ends the lane, and that session alone.
//
// Settlement. The link settles in the mode second: the service answers each
// disposition when it has been carried out, and Settle returns with the answer,
// so that what is counted as completed is. Those of a batch are under way
// together. Mode first would spare the answers, and hide that a lock was lost. An
// answer that is lost leaves it open whether the message is completed. If it is
// not, it comes again, and the guard of each write finds it applied.
//
// Failures. The end of a connection ends all its sessions at once, and the next
// accept connects anew. A connection that says nothing is noticed by the first
// attach that is not answered in its time while nothing else is, by a write that
// is not taken, or by the idle timeout, and closed. Throttling is told to the
// engine with the pause that the service asks for, wherever it comes. A refusal
// for a claim that has ended has it put again, once. Redirects are
// refused by name.
//
// Not promised: that the service sees a session given back before the detach has
// been answered, nor how it chooses the next session.
package sessionlink
