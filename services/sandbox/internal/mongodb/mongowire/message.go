package mongowire

import (
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// OpCode says what kind of message follows a header.
type OpCode int32

// Op codes of a server's answers and of what it answers ("Opcodes").
const (
	OpReply OpCode = 1
	// OpUpdate, OpInsert and OpDelete have no answer.
	OpUpdate OpCode = 2001
	OpInsert OpCode = 2002
	OpQuery  OpCode = 2004
	// OpGetMore and OpKillCursors go on with what an OpQuery has found.
	OpGetMore     OpCode = 2005
	OpDelete      OpCode = 2006
	OpKillCursors OpCode = 2007
	OpMsg         OpCode = 2013
)

// Flags are the flag bits of an OP_MSG ("OP_MSG: Flag Bits"). A receiver must
// refuse a message with an unknown bit among the lower sixteen.
type Flags uint32

// Flag bits in use.
const (
	ChecksumPresent Flags = 1 << 0
	MoreToCome      Flags = 1 << 1
	ExhaustAllowed  Flags = 1 << 16

	requiredBits Flags = 0xFFFF
)

// Limits, as the server announces them in its hello.
const (
	MaxMessageBytes = 48_000_000

	headerBytes = 16
)

// Sequence is a kind 1 section: documents of one array field of the command,
// sent beside its body.
type Sequence struct {
	Name      string
	Documents []bson.Raw
}

// Request is one command as it came over the wire. Its documents share the
// memory of the message, which nothing else writes to.
type Request struct {
	ID    int32
	Flags Flags
	// Legacy tells a request that is answered by an OP_REPLY.
	Legacy bool
	// Plain tells a legacy request that is no command: its reply has the documents
	// of the cursor that the body, a command of the same meaning, answers with.
	Plain bool
	// exhausts tells a legacy find whose batches are all to be sent unasked.
	exhausts bool
	// Database is the database of a legacy request; an OP_MSG names its database
	// in the body.
	Database string
	// Refused is why the request can be answered, and not be run: it nests too
	// deeply. It has no body then.
	Refused   string
	Body      bson.Raw
	Sequences []Sequence
	// room is what the message takes of an Inbox.
	room claims
}

// ProtocolError is a frame that breaks the wire protocol.
type ProtocolError struct{ Reason string }

func (e *ProtocolError) Error() string { return "wire protocol: " + e.Reason }

func broken(format string, args ...any) error {
	return &ProtocolError{Reason: fmt.Sprintf(format, args...)}
}
