// Package lease elects one leader among the instances that share a lease
// record. The leader leads only as long as it can prove that it may.
//
//	            free, over, or ours: take
//	standby ───────────────────────────────▶ leading
//	   ▲     lost: local deadline passed, or     │ stopped: the led work has
//	   └──── the record names another holder ────┤ returned, release, done
//	                                             ▼
//	                                         displaced by our own id: an error
//
// What holds:
//
//   - Only the server's clock decides who holds the lease: it writes the expiry
//     and judges it, and a standby learns from the server how much of a lease
//     is left. No instance's wall clock takes part.
//   - The leader's own clock can only make it stop sooner. It trusts its lease
//     for RenewDeadline, counted on the monotonic clock from before the last
//     good renewal was sent. That is shorter than the TTL by a margin that covers
//     clocks running at different rates: they may differ by the factor
//     TTL/RenewDeadline.
//   - A renewal whose outcome is unknown counts as not made. It costs nothing
//     until the deadline: a short outage of the store costs no leadership.
//   - A holder has three parts: an instance id; an incarnation, random per
//     process; and a tenure, new with each take. A renewal or release names all
//     three and never creates the record, so a late one neither revives nor frees
//     anybody's lease.
//   - One goroutine, Run, owns the lease: it alone has it taken, renewed and
//     released. Renewals may overlap: one that is not answered soon is followed by
//     another. The release comes after the led work has returned.
//   - A lease is kept as long as a majority of the store has a renewal before the
//     deadline: within RenewDeadline less the latest Heartbeat. Takes are given as
//     much time where they have come to need it.
//
// What is not promised: mutual exclusion. A process may be paused between the
// check and the act, so whatever the leader writes must be fenced by a term
// that the written store checks (package checkpoint), and what it sends to a
// store that checks nothing must be harmless when sent late.
package lease
