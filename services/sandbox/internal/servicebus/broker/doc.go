// Package broker is a Service Bus namespace as a state machine: queues, topics,
// subscriptions, sessions, locks and time. It knows nothing of AMQP; a message
// is an opaque payload with the few properties that routing looks at.
//
// # A message
//
//	           Send                      Receive
//	(topic) ────────▶ active ──────────────────────────▶ locked ──▶ completed (gone)
//	   │                ▲ ▲  ◀── abandon, expiry (+1) ───┘  │ │
//	   │ scheduled      │ │  ◀── release, session close ────┘ │ defer
//	   ▼                │ │                                   ▼
//	scheduled ── due ───┘ └──────── (never) ──────────── deferred ── ReceiveDeferred ──▶ locked
//
// From every state a message can go to the dead-letter queue: by its receiver,
// by one failed delivery too many, or at the end of its time to live; a deferred
// one when somebody then asks for it. A message goes back to the place it had:
// what is available is handed out in the order of arrival, always.
//
// # A session
//
//	(none) ── first message, or named accept ──▶ free ◀──── close, lock lost, expiry ────┐
//	   ▲                                          │                                      │
//	   └──────── no message, state, holder ───────┴── accept by name or as the next ──▶ held
//
// # Invariants
//
//   - A session has at most one holder, and only the holder is given its
//     messages, present and later ones.
//   - First deliveries of a session are in the order in which its messages were
//     sent, and so are their sequence numbers, also on partitioned entities.
//   - The next session is the free one whose oldest message has waited longest;
//     accepts that wait are served in turn. Neither takes a scan.
//   - A message is completed at most once, and in one place: every lock has its
//     own token, and a token is good for one settlement before its end.
//   - A delivery counts when it is abandoned or its lock expires. It does not
//     when a session's receiver closes, detaches or loses the session otherwise.
//   - A batch is taken in whole or not at all. Only of one that takes more than
//     32 MiB of the journal, as to hundreds of subscriptions, a crash before it
//     is acknowledged may leave a part.
//   - A session without messages, state and holder takes no memory.
//
// # Time and storage
//
// Run rings the alarms of locks, lifetimes, schedules and histories. A lock is
// also checked when it is used, so a late Run never lets an overdue one pass.
// Every durable change is appended to the Journal under the lock and is durable
// before the call that made it, or that saw it, returns. Locks and receivers
// are not durable: after a restart every message is as it was before its lock.
//
// # Not promised
//
// Order across sessions, or across the receivers of an entity without sessions.
package broker
