// Package leadership is where lease and checkpoint are tested together: what
// their calls looked like to several instances must be what one lease and one
// checkpoint could have answered, whatever failed on the way, and no schedule of
// failures may move the checkpoint back or leave the stream without a leader.
// It has no code of its own.
package leadership
