// Package latency puts distance between a client and a server on one machine: a
// proxy through which every round trip takes longer by a fixed time. It delays
// and does not slow down, as distance does: any amount may be on its way.
package latency
