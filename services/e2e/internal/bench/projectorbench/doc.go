// Package projectorbench measures the projector beside what bounds it: receiving
// and settling with the bare Service Bus client, guarded writes with the bare
// MongoDB driver, and the loop that one would write first. All on one set of
// servers, on the same messages.
package projectorbench
