// Package amqp encodes and decodes AMQP 1.0 as standardised by OASIS: types (part 1), performatives and frames (part 2),
// message sections and delivery states (part 3) and the SASL frames (part 5, section 5.3).
//
// It knows bytes only. Connections, sessions and links live in amqpserver.
//
// Encoding appends to a byte slice and cannot fail. Decoding never panics: a [Reader] keeps the first error and returns
// zero values after it, so that a composite is read field by field and checked once. What a peer can make a decoder
// allocate is bounded by the bytes it sent: an element count reserves next to nothing until its elements have been read,
// nesting has a limit, and elements that take no bytes have a small limit of their own.
package amqp
