// Package partition splits a stream's aggregates into partitions, and shares
// the partitions out among instances.
//
// A partition is a stream of its own, with a lease and a checkpoint of its own.
// Of decides which partition an aggregate belongs to, so an aggregate's order
// holds as it does in one stream.
//
// Every instance announces itself for a while, by the server's clock, and takes a
// snapshot regularly of who is there and who holds what. Assign divides the same
// snapshot in the same way on every instance: as evenly as possible, with as few moves
// as that takes. An instance campaigns for the partitions that fall to it, and gives up
// those that do not, once two snapshots in a row say so. A partition that an instance
// stands aside from goes to one that does not.
//
// Correctness does not depend on the snapshots being the same: a partition's lease
// decides who leads it, and its term who may write. Snapshots that differ only make an
// instance campaign in vain until its next look.
package partition
