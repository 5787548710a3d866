// Package mongowire reads and writes the frames of the MongoDB wire protocol:
// OP_MSG with its sections, and the OP_QUERY that drivers still send as their
// first hello. See
// https://www.mongodb.com/docs/manual/reference/mongodb-wire-protocol/.
//
// Bytes come from whoever connects, so nothing about them is believed: lengths
// are checked before memory is taken, memory grows with what has arrived, and
// every document handed out has been validated to its last nested value. A
// frame that breaks the protocol is a *ProtocolError, after which the
// connection cannot be read on.
package mongowire
