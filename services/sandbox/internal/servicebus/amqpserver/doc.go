// Package amqpserver lets AMQP 1.0 clients use a broker the way they use Azure Service Bus: entities as link addresses,
// $cbs for tokens, <entity>/$management for requests, sessions as a filter of the source.
//
// # Goroutines
//
// A connection has one goroutine of its own: the read loop. Everything that may wait runs on goroutines that live only
// while there is something to do, all counted in the connection's wait group: a lane per link with requests (transfers
// to the broker, settlements, management) and a pump per receiving client with credit. Nobody writes for a living:
// whoever has appended frames flushes them, and while one goroutine writes the others only append, so that frames of
// many links leave in one system call.
//
// # State and its lock
//
// conn.mu guards the state of the connection, its sessions and links, and the output buffer together. A frame is encoded
// under the same lock that changes the state it tells of, so the order on the wire is the order of the changes: nothing
// follows the detach of a link or the end of a session. The lock is not held across anything that may wait: the broker is
// only asked for what it knows at once.
//
// # A receiving link
//
//	attaching ──opened──▶ attached ──peer detaches──▶ closing ──work done, answered──▶ forgotten
//	    │ refused             │ lock lost, fault, idle   ▲
//	    ▼                     ▼                          │ peer detaches
//	detaching (attach without terminus, or detach with an error, sent)
//
// Closing waits for the link's lane: what was settled or sent before the detach is carried out, then the broker's
// receiver is closed, then the peer gets its answer. So a session is free when its holder's detach has been answered.
//
// # What holds
//
//   - A transfer is accepted only after the broker's Send has returned; transfers of one link go to it in order.
//   - Deliveries leave in the broker's order; a delivery id is unsettled until the peer's disposition has reached the
//     broker, whose answer is the answer to the peer.
//   - A link that ends, with its session or its connection, orderly or not, closes its broker receiver: a session is free
//     again and what was unsettled is back without a raised delivery count. A peer that vanishes without closing its
//     connection keeps its locks until they expire or the idle timeout finds out.
//   - A peer can make the server hold no more than the configured frames, sessions, links, credit and queued bytes.
//     All peers together cannot make it hold more transfers than the configured total.
//
// Not done: transactions, link recovery by unsettled maps, dynamic nodes. Each is refused with amqp:not-implemented.
package amqpserver
