// Package chaos is a campaign of faults against the real binaries: for as long
// as it is told to, it injects every fault it knows of, several at once,
// while events of changing shape are written; then it lets everything recover
// and judges what came of it.
//
//	plan       which fault when, for how long, drawn from the seed alone
//	kinds      the faults there are: to processes, connections, servers, clocks
//	network    a proxy between each process and each server (toxiproxy)
//	workload   phases of events: steady, hot, large, bursts, idle
//	shop       writes them, and archives what is old
//	operators  the mistakes of people, in place of faults: aside what they do with
//	           what is parked, groups with subscriptions and groups
//	campaign   carries the plan out, prints a timeline, and judges
//
// The same seed makes the same plan and the same events. What a fault meets (who
// leads, which session is held) depends on the run, so a run can be repeated in
// kind, not to the letter.
//
// The faults meet the binaries that ship. Only where a clock is set wrong, the
// program that restarts with it was built with another package time; see package
// clock.
//
// The witness does not go through the proxies. It is told of nothing that the
// services say of themselves.
package chaos
