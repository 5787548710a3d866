// Package cluster runs the relay as it is run for real: every part its own
// operating-system process, spoken to only over its sockets, its signals and
// its admin port.
//
// A Process is one run of a program. A Node is a place in the cluster
// (publisher-1, projector-2, sandbox) that may see several runs, one after
// another, all in one log file. A Cluster holds the nodes and ends them all.
//
// No process outlives the one that started it: Close kills what is left, and
// where the system can do so (Linux), the kernel kills the children of a parent
// that was itself killed.
package cluster
