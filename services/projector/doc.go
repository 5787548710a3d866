// Package projector makes a projector with projections written in Go. A program of one's
// own hands them to Main, and is a complete projector: it has every command, setting and
// exit status of the one that is shipped, with these projections beside those that
// PROJECTIONS declares, or in their place where that is not set.
//
// # What a projection promises
//
// Decide says what one event changes, and nothing else. It is called again for the same
// event, by other processes and years later: when a message is delivered twice, when an
// aggregate is redriven, in a rebuild, and by projector verify, which recomputes documents
// and reports those that differ. So it depends on the event alone. It reads no clock, no
// environment, nothing at random and no other data, it keeps nothing from one call for
// the next, and it does not go through a map in the order of range. It is called from
// many goroutines at once.
//
// Guarding and storing is done for it. An event whose writes are stored counts once,
// however often it is delivered, and events of an aggregate are applied in their order.
//
// # What becomes of its faults
//
// An error, a panic, more than 10 seconds, and writes beyond the bounds are what OnError
// says something about, as with a declared projection. Where it and ON_ERROR say nothing
// they halt the event's aggregate: its events are parked in order, others go on, and
// projector parked redrive applies them once the code is mended. The log has the stack of a
// panic. A goroutine that decides for ever is left to itself and goes on until the
// process ends. What no program can recover from, such as memory or a stack that runs out,
// ends the process; after CRASH_LIMIT such deaths the message is parked, or what OnError says of a crash.
//
// The bounds: one write for each event, or with Shared 1,000 of them; 16 MiB of updates,
// nested up to 1,000 levels deep.
package projector
