// Package oplog is the history of a replica set: its entries, the bounded log
// that keeps them, and the tokens by which change streams find a place in it.
//
// Entries are never changed. The log numbers them without gaps and gives up the
// oldest when its bounds are passed; a reader that comes too late is told so and
// never skips. Appended entries are seen by readers only when they are advanced
// to, which the engine does once they are durable. Cluster times in it never
// fall, and tokens sort as the changes that they stand for.
package oplog
