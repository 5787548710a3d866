// Package session is the engine of the projector: it takes sessions from a
// broker, up to a number at once, and works on each one strictly in order.
// A session is one aggregate's messages, and whoever holds its lock holds all
// of them, present and later.
//
// A slot goes round and round:
//
//	    ┌────────── no session, or the accept failed: back off ─────────┐
//	    ▼                                                               │
//	accepting ──▶ holding: receive ─▶ check ─▶ apply ─▶ settle ──▶ released
//	                          ▲                           │             ▲
//	                          └── all that was asked for ─┘             │
//	                              came, and the hold may go on          │
//	                                                                    │
//	short receive, time or count used up, draining, any doubt ──────────┘
//
// Invariants:
//
//   - Serial. Batches of a session are applied one after another, and settled one
//     after another. Sessions run side by side. Where the receiver is a Carrier and
//     more messages are waiting, the session is a pipeline: while a batch is applied,
//     the next ones are on their way and the one before is settled. See pipeline.
//   - A slot does not wait for answers. Where messages come at once, the slot takes
//     the next session and works on it while the last batch of the one before is
//     settled and that session is given back. Each slot has at most one such ending
//     session, and receives nothing more of it. See ending.
//   - Written before settled. A message is settled only after Handler returned
//     its verdict, and Handler returns one only for what is stored for good.
//   - Nothing after the lock. Work runs under a context that ends a margin
//     before the lock does, and the deadline is checked against the clock
//     before every apply and every settlement: a process that was stopped for
//     a minute finds the deadline passed before its timers run.
//   - One owner of the lock. One goroutine of a hold renews the lock and
//     publishes the deadline; everyone else only reads it.
//   - Doubt drops the receiver. After any error of a receive, a renewal or a
//     settlement, nothing more of that hold is applied or settled, and the
//     receiver is closed for good. The broker's client would silently take a lost
//     session again; see below.
//   - Empty is released. A session that has run empty is given back at once,
//     unless it is steady and other accepts of this process are waiting; see
//     idlePolicy.
//   - No surplus credit. A receive that brings fewer messages than asked for
//     leaves credit on the link, and the client then hands late arrivals back
//     one by one, which lets a later message overtake them. So a receiver is
//     asked again only after it brought everything that was asked for; a short
//     receive is the last of its hold. A Carrier keeps late arrivals instead, and
//     the next receive gets them: it is asked again as long as some have come while a
//     batch was worked on. Where a session has had its share, what a Carrier was asked
//     for ahead is received before the session is given back.
//   - Bytes are bounded. A hold asks for as many messages as fit its share of the
//     budget, judged by the recent weight of messages. What is on its way, in hand and
//     being settled counts, until the session is given back. See budget. A Carrier also
//     makes a hold wait for its turn on the connection, which does not count as waiting
//     for messages.
//   - Rising sequence numbers. Inside a hold the broker's sequence numbers must
//     rise. Where they do not, the batch is not applied at all and the session
//     goes back: a message that was overtaken and then refused by the position
//     guard would be lost.
//   - Nobody starves. A hold ends after HoldTime or HoldMessages even when the
//     session has more, and the session queues up again.
//
// Failures:
//
//   - An error of Handler is assumed to pass: the same messages are tried again, with
//     backoff, while the lock holds. After RetryTime the session is given back so that
//     another replica can try. Messages are never abandoned one by one, so their
//     delivery count does not rise.
//   - A failed settlement ends the hold and is counted. It is harmless, since the
//     message comes again and is found applied.
//   - A settlement that the broker throttles waits in place, as long as the broker asks
//     for; so does a renewal while the lock holds. From then on receives and settlements
//     keep a pace, near what the broker allows.
//   - Accepts that fail go through a circuit breaker: one at a time probes, however many
//     slots there are.
//   - A session that alone cannot be applied (ErrRest) takes no slot: its lock is kept
//     for a growing while, so that the broker offers others. Nor does it take memory but for
//     its link: what a Carrier was asked for is withdrawn first.
//   - An outage ends with a success, or where there is nothing to do and the handler is
//     said to be able to work (Answers): others have taken the sessions.
//   - An accept that neither answers nor fails is given up by a watchdog, and the
//     acceptor is told, so that it can drop the connection.
//
// Silent re-acquisition. When a link breaks, azservicebus attaches again with
// the same session id inside Receive, RenewSessionLock and settlements, and
// reports success. What protects against it: a broken link makes the receive
// short, so that receiver is not asked again; messages taken before the break
// cannot be settled after it, which ends the hold; a receive over a new link
// starts at the first unsettled message, so sequence numbers no longer rise; and
// every write is guarded by position.
//
// Draining. When Run's context ends, no session is accepted any more, waiting
// accepts are cancelled and late ones closed. Each hold finishes the batch in
// hand, settles it and gives its session back, all within DrainTime. What is not
// done by then is cut off and comes again elsewhere.
//
// Not promised: that a message is handled once. It may come again at any time,
// and the position guard makes that harmless. Nor that only the process that holds
// the lock, by the broker's clock, handles a message: a process can be stopped between
// its check and its write. There, too, the guard decides.
package session
