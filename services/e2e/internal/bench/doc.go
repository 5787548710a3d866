// Package bench drives a large number of events through the whole relay as fast
// as it takes them, and tells what that costs: events a second from the source
// to the read model, processor time per event and memory of every process.
//
// Nothing is harmed and no witness watches, for both would be measured too. At
// the end the read model is compared with a recomputation, so that a fast run
// that lost something does not count.
package bench
