// Package decodable keeps from go-amqp the messages that it cannot be given.
//
// go-amqp (v1.7.0) panics at a map with a key that Go cannot hash (Annotations.Unmarshal,
// mapAnyAny.unmarshalMapItems), on a goroutine of its own, and decodes what is nested by
// recursion, until the stack is exhausted. Either ends the process, and the broker delivers
// the message to the next one. After a message that it could not decode it goes on decoding
// where it stopped, with the next message of the link appended (Receiver.muxReceive).
//
// Conn reads frames along with go-amqp, and each message in them as go-amqp will, without
// recursion. From the first byte on that go-amqp cannot be given, or would return an error
// for, the message is overwritten with bytes that no type has, and so is everything that
// still comes to its link. go-amqp then ends the link with an error, as it does for every
// message that it cannot decode. A message that it can decode is not changed.
//
// A message of several frames may be found too short only when its last frame comes, and
// go-amqp has what is behind the size or the length at which it will stop. Where the next
// message of that link comes, Conn ends the connection instead of handing it on.
//
// Refused although go-amqp could decode them are values nested deeper than 32, arrays of
// several values without a byte of their own, and values that have the descriptor of an
// error, a delivery state or a lifetime policy.
package decodable
