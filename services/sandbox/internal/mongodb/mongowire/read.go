package mongowire

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
)

// firstRead bounds the memory a length alone can claim.
const firstRead = 1 << 20

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// ReadRequest reads one message. It returns io.EOF when the stream ends
// between two messages, a *ProtocolError for a message that cannot be
// understood, and the reader's error otherwise.
func ReadRequest(r io.Reader) (*Request, error) {
	return (*Inbox)(nil).ReadRequest(context.Background(), r)
}

// ReadRequest reads one message as the function of that name does, and waits
// for room when it is a large one. Its Release gives the room back.
func (b *Inbox) ReadRequest(ctx context.Context, r io.Reader) (*Request, error) {
	room := claims{inbox: b}
	message, err := readMessage(ctx, r, &room)
	if err != nil {
		room.give()
		return nil, err
	}
	request, err := parse(message)
	if err != nil {
		room.give()
		return nil, err
	}
	request.room = room
	return request, nil
}

// Release gives back the room that the message takes. Its documents must not be
// used any more.
func (r *Request) Release() { r.room.give() }

// readMessage reads a whole message, header included ("Standard Message
// Header").
func readMessage(ctx context.Context, r io.Reader, room *claims) ([]byte, error) {
	var header [headerBytes]byte
	if _, err := io.ReadFull(r, header[:]); err != nil {
		return nil, err
	}
	length := int(int32(binary.LittleEndian.Uint32(header[:])))
	if length < headerBytes || length > MaxMessageBytes {
		return nil, broken("message length %d is not between %d and %d", length, headerBytes, MaxMessageBytes)
	}
	message := make([]byte, headerBytes, min(length, firstRead))
	copy(message, header[:])
	for len(message) < length {
		if len(message) == cap(message) {
			// All of it at once: two messages never wait for each other's parts.
			if err := room.take(ctx, length); err != nil {
				return nil, err
			}
			grown := make([]byte, len(message), min(length, 2*cap(message)))
			copy(grown, message)
			message = grown
		}
		n := len(message)
		message = message[:cap(message)]
		if _, err := io.ReadFull(r, message[n:]); err != nil {
			return nil, unexpectedEnd(err)
		}
	}
	return message, nil
}

func unexpectedEnd(err error) error {
	if err == io.EOF { //nolint:errorlint // io.ReadFull returns the bare value
		return io.ErrUnexpectedEOF
	}
	return err
}

func parse(message []byte) (*Request, error) {
	id := int32(binary.LittleEndian.Uint32(message[4:]))
	var request *Request
	var err error
	code := OpCode(int32(binary.LittleEndian.Uint32(message[12:])))
	switch code {
	case OpMsg:
		request, err = parseMsg(id, message)
	case OpQuery:
		request, err = parseQuery(id, message[headerBytes:])
	case OpGetMore:
		request, err = parseGetMore(id, message[headerBytes:])
	case OpKillCursors:
		request, err = parseKillCursors(id, message[headerBytes:])
	case OpInsert:
		request, err = parseInsert(id, message[headerBytes:])
	case OpUpdate:
		request, err = parseUpdate(id, message[headerBytes:])
	case OpDelete:
		request, err = parseDelete(id, message[headerBytes:])
	default:
		return nil, broken("op code %d is not supported", code)
	}
	if errors.Is(err, bsonkit.ErrTooDeep) {
		return refused(id, code, message, err), nil
	}
	return request, err
}

// refused is a request whose documents are not read.
func refused(id int32, code OpCode, message []byte, reason error) *Request {
	r := &Request{ID: id, Legacy: code != OpMsg, Refused: reason.Error()}
	if code == OpMsg {
		r.Flags = Flags(binary.LittleEndian.Uint32(message[headerBytes:])) & MoreToCome
	}
	if code == OpInsert || code == OpUpdate || code == OpDelete {
		r.Flags = MoreToCome
	}
	return r
}

// parseMsg reads flags, sections and checksum ("OP_MSG").
func parseMsg(id int32, message []byte) (*Request, error) {
	rest := message[headerBytes:]
	if len(rest) < 4 {
		return nil, broken("OP_MSG without flag bits")
	}
	req := &Request{ID: id, Flags: Flags(binary.LittleEndian.Uint32(rest))}
	rest = rest[4:]
	if unknown := req.Flags & requiredBits &^ (ChecksumPresent | MoreToCome); unknown != 0 {
		return nil, broken("OP_MSG with unknown required flag bits %#x", uint32(unknown))
	}
	if req.Flags&ChecksumPresent != 0 {
		if len(rest) < 4 {
			return nil, broken("OP_MSG without its checksum")
		}
		covered := message[:len(message)-4]
		if crc32.Checksum(covered, castagnoli) != binary.LittleEndian.Uint32(message[len(covered):]) {
			return nil, broken("OP_MSG checksum does not match")
		}
		rest = rest[:len(rest)-4]
	}
	return req, parseSections(req, rest)
}

// parseSections reads the sections; exactly one of them is a body ("OP_MSG:
// Sections").
func parseSections(req *Request, rest []byte) error {
	for len(rest) > 0 {
		kind := rest[0]
		var err error
		switch kind {
		case 0:
			if req.Body != nil {
				return broken("OP_MSG with two bodies")
			}
			req.Body, rest, err = takeDocument(rest[1:])
		case 1:
			var sequence Sequence
			if sequence, rest, err = takeSequence(rest[1:]); err == nil {
				req.Sequences = append(req.Sequences, sequence)
			}
		default:
			return broken("OP_MSG section of unknown kind %d", kind)
		}
		if err != nil {
			return err
		}
	}
	if req.Body == nil {
		return broken("OP_MSG without a body")
	}
	return refuseDoubles(req)
}

// refuseDoubles keeps a field from being given twice: in two sequences, or in
// a sequence and the body.
func refuseDoubles(req *Request) error {
	for i, sequence := range req.Sequences {
		if _, err := req.Body.LookupErr(sequence.Name); err == nil {
			return broken("field %q is in the body and in a document sequence", sequence.Name)
		}
		for _, other := range req.Sequences[:i] {
			if other.Name == sequence.Name {
				return broken("two document sequences are named %q", sequence.Name)
			}
		}
	}
	return nil
}

// takeSequence reads a kind 1 section after its kind byte: its length, which
// counts itself, its name, and documents to its end.
func takeSequence(src []byte) (Sequence, []byte, error) {
	if len(src) < 4 {
		return Sequence{}, nil, broken("document sequence without a length")
	}
	length := int(int32(binary.LittleEndian.Uint32(src)))
	if length < 5 || length > len(src) {
		return Sequence{}, nil, broken("document sequence of length %d in %d bytes", length, len(src))
	}
	section, rest := src[4:length], src[length:]
	end := bytes.IndexByte(section, 0)
	if end < 0 {
		return Sequence{}, nil, broken("document sequence whose name does not end")
	}
	sequence := Sequence{Name: string(section[:end])}
	for section = section[end+1:]; len(section) > 0; {
		doc, after, err := takeDocument(section)
		if err != nil {
			return Sequence{}, nil, err
		}
		sequence.Documents = append(sequence.Documents, doc)
		section = after
	}
	return sequence, rest, nil
}

func takeDocument(src []byte) (bson.Raw, []byte, error) {
	if len(src) < 4 {
		return nil, nil, broken("document cut off after %d bytes", len(src))
	}
	length := int(int32(binary.LittleEndian.Uint32(src)))
	if length < 5 || length > len(src) {
		return nil, nil, broken("document of length %d in %d bytes", length, len(src))
	}
	// The capacity ends with the document, so that no append to it can reach
	// its neighbour.
	doc := src[:length:length]
	if err := bsonkit.Validate(doc, bsonkit.MaxDepth); errors.Is(err, bsonkit.ErrTooDeep) {
		return nil, nil, err
	} else if err != nil {
		return nil, nil, broken("%s", err)
	}
	return doc, src[length:], nil
}
