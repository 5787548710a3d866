// Package partition splits a stream's aggregates into partitions, and shares
// the partitions out among instances.
//
// A partition is a stream of its own, with a lease and a checkpoint of its own.
// Of decides which partition an aggregate belongs to, so an aggregate's order
// holds as it does in one stream.
//
// Every instance announces itself for a while, by the server's clock, and looks
// regularly at who is there and who holds what. Assign makes the same division
// of the same snapshot for everybody: as even as it gets, and with as few moves
// as that takes. So an instance campaigns for the partitions that are to be its
// own, and gives up those that are not, once two snapshots in a row say so. A
// partition that an instance stands aside from goes to one that does not.
//
// Nothing rests on the snapshots being the same: a partition's lease decides who
// tries, and its term who may write. Two snapshots that differ cost a campaign
// that waits, and are over with the next look.
package partition
