// Package journal keeps an append-only log of records in a directory, so that a
// state machine in memory can be rebuilt after its process was killed.
//
// # Files
//
//	lock                      held (flock) while a process uses the directory
//	segment-0000000000000003  records in order; the last one is being written
//	snapshot-0000000000000003 the state before segment 3, in records
//
// A file begins with a magic line and goes on in frames: the record's length
// and a CRC32C over length and record, both four bytes, little endian, then the
// record. A snapshot ends with an empty frame.
//
// # Invariants
//
//   - Commit returns nil only when all records up to the position are on
//     storage (fsync). Concurrent commits share one write and one fsync.
//   - Open replays the newest snapshot and every record after it, in order. A
//     tail that a crash tore off is cut: by the first invariant nobody was told
//     that it is there. Damage anywhere else is an error, never skipped.
//   - A snapshot appears whole (rename after fsync) before what it replaces goes.
//   - After the first failed write or fsync nothing is accepted any more: what
//     the kernel has kept is then unknown.
//
// Not promised: protection against bit rot in the last segment, which looks
// like a torn tail. Open reports how much it cut.
package journal
