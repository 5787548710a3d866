// Package world says what the servers' surroundings are like: how far away they are, what they allow in a second, how
// large things may be, how long they take.
//
// A World is data. There are named ones ([Named]), and a form in JSON for one's own ([Read]):
//
//	{"name": "ours", "base": "standard", "service_bus": {"round_trip": "12ms"}}
//
// A field that is not given is as in the base; without one it is 0, which says nothing: no delay, no bound. Where each
// figure of the named worlds comes from, a guess included, stands in docs/sandbox.md, which a test holds equal to them.
//
// Who applies what: package network the distance and the bandwidth, the broker credits, throughput and sizes, the AMQP
// server times, connections and links, MongoDB's half the rest.
package world
