// Package speed compares the publisher with what bounds it, in one run on one
// machine against one sandbox: the bare driver that drains the change stream, the
// bare SDK that sends batches, and the plain loop that sends one message, saves
// the token, and goes on. Each sees the same events.
package speed
