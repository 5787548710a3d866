// Package validate judges histories: what a source committed, what a topic
// accepted, what a read model went through. Each function looks for one kind of
// fault and returns what it found; none of them reads a server, waits, or knows
// how a history was gathered, so each can be shown a history with a planted
// fault and must find it.
//
// Histories are gathered from outside, by clients that the relay does not know
// of. A validator trusts nothing that a publisher or projector says of itself.
package validate
