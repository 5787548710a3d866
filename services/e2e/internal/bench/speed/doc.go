// Package speed compares the publisher with what bounds it: the bare driver that
// drains the change stream, the bare SDK that sends the same messages in the same
// batches, and the plain loop that sends one message, saves the token, and goes
// on. Each sees the same events, on servers of its own, since what one
// measurement leaves there would weigh on the next.
package speed
