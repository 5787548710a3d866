package crashpoint

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// largestFrame bounds a frame: MongoDB's messages end at 48 MB.
const largestFrame = 64 << 20

// readMongo reads one message of MongoDB's wire protocol: its length, header
// included, stands first, little-endian.
func readMongo(r io.Reader) ([]byte, error) {
	return readFrame(r, func(head []byte) int { return int(binary.LittleEndian.Uint32(head)) })
}

// readAMQP reads one frame of AMQP 1.0 (section 2.3), or one of the protocol
// headers of 8 bytes that come before frames (2.2).
func readAMQP(r io.Reader) ([]byte, error) {
	return readFrame(r, func(head []byte) int {
		if bytes.Equal(head, []byte("AMQP")) {
			return 8
		}
		return int(binary.BigEndian.Uint32(head))
	})
}

func readFrame(r io.Reader, size func(head []byte) int) ([]byte, error) {
	head := make([]byte, 4)
	if _, err := io.ReadFull(r, head); err != nil {
		return nil, err
	}
	n := size(head)
	if n < len(head) || n > largestFrame {
		return nil, fmt.Errorf("a frame of %d bytes", n)
	}
	frame := make([]byte, n)
	copy(frame, head)
	_, err := io.ReadFull(r, frame[len(head):])
	return frame, err
}

// command is what a message of MongoDB's wire protocol asks for.
type command struct {
	name       string
	collection string
	body       bson.Raw
}

const opMsg = 2013

// parseCommand reads an OP_MSG; false for anything else.
func parseCommand(message []byte) (command, bool) {
	const header, flags = 16, 4
	if len(message) < header+flags+1+5 || binary.LittleEndian.Uint32(message[12:]) != opMsg || message[header+flags] != 0 {
		return command{}, false
	}
	body := message[header+flags+1:]
	n := int(binary.LittleEndian.Uint32(body))
	if n < 5 || n > len(body) {
		return command{}, false
	}
	c := command{body: bson.Raw(body[:n])}
	first, err := c.body.IndexErr(0)
	if err != nil {
		return command{}, false
	}
	c.name = first.Key()
	c.collection, _ = first.Value().StringValueOK()
	if c.name == "getMore" {
		c.collection, _ = c.body.Lookup("collection").StringValueOK()
	}
	return c, true
}

func requestID(message []byte) uint32  { return binary.LittleEndian.Uint32(message[4:]) }
func responseTo(message []byte) uint32 { return binary.LittleEndian.Uint32(message[8:]) }

// Descriptors of AMQP performatives (section 2.7).
const (
	attach      = 0x12
	transfer    = 0x14
	disposition = 0x15
)

// performative is the descriptor of a frame's performative; 0 for none.
func performative(frame []byte) byte {
	const header = 8
	if len(frame) < header+3 || bytes.HasPrefix(frame, []byte("AMQP")) || frame[5] != 0 {
		return 0
	}
	body := frame[min(int(frame[4])*4, len(frame)):]
	if len(body) < 3 || body[0] != 0x00 || body[1] != 0x53 { // a described type, by a small number
		return 0
	}
	return body[2]
}

// carriesChange is whether a transfer is of a message of the relay, and not of
// $cbs or $management.
func carriesChange(frame []byte) bool {
	return performative(frame) == transfer && bytes.Contains(frame, []byte("cloudEvents_"))
}
