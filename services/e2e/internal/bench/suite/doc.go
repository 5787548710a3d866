// Package suite runs the benchmark: named experiments, one after another, each
// on servers of its own, with every repetition kept.
//
//	Experiment ── rounds, in turn ── each: fresh servers → measure → points
//
// A round measures some points of its experiment once. Repetitions go round and
// round over all points, so that what changes on the machine meanwhile meets all
// of them, and what is compared with each other is measured in one round and
// compared there, as a ratio.
//
// The sandbox and the relay run with their defaults. Servers of one's own are
// named by TEST_MONGODB_URI and TEST_SERVICEBUS_CONNECTION_STRING; nothing else
// changes then, but that nothing is put at a distance.
package suite
