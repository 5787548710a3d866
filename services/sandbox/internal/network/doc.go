// Package network makes connections as slow as a network does: with a distance and a bandwidth, both of which may change
// while they are open.
//
// A Shape wraps a listener; each connection that it accepts has two lines, one for each direction. A line carries bytes
// in order, at the bandwidth, and has them arrive the distance later; what follows does not wait for what is under way,
// so requests may be pipelined. A writer waits only while more is under way than a socket's buffers would hold.
//
// A connection that was never slow is passed through. Not done: loss, reordering, slow start. The time to connect is
// charged to the first bytes, since the system has connected already when a listener hears of it.
package network
