// Package journal keeps an append-only log of records in a directory, so that a
// state machine in memory can be rebuilt after its process was killed.
//
// # Files
//
//	lock                      held (flock) while a process uses the directory
//	head                      the number of the segment that is being written
//	segment-0000000000000003  records in order; the last one is being written
//	snapshot-0000000000000003 the state before segment 3, in records
//
// A file begins with a magic line and goes on in frames: the record's length,
// a CRC32C of these bytes and one of the record, each four bytes, little endian,
// then the record. A snapshot ends with an empty frame. The checksum of the
// length tells a record that ends too soon from one whose length is damaged.
//
// # Invariants
//
//   - Commit returns nil only when all records up to the position are on
//     storage (fsync). Concurrent commits share one write and one fsync.
//   - Open replays the newest snapshot and every record after it, in order. The
//     last segment may end within a frame, or in zeroes, where a crash tore it
//     off: that is cut, as by the first invariant nobody was told that it is
//     there. Everything else that is not as it was written, a missing segment
//     or a record that cannot be replayed too, is an error that names file and
//     offset, never skipped.
//   - A snapshot appears whole (rename after fsync) before what it replaces goes.
//   - After the first failed write or fsync nothing is accepted any more: what
//     the kernel has kept is then unknown.
//
// Salvage makes a good directory of a damaged one, with what can be read.
//
// Not promised: that a last segment which was cut short between or within frames
// is noticed, as that is what a crash leaves. Open reports how much it cut.
package journal
