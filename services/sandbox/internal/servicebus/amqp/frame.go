package amqp

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
)

// Frame types (part 2, section 2.3.1).
const (
	FrameAMQP = 0x00
	FrameSASL = 0x01
)

const (
	// HeaderSize is the size of a frame header in bytes.
	HeaderSize = 8
	// MinMaxFrameSize is the smallest maximum frame size a peer may ask for (section 2.8.19).
	MinMaxFrameSize = 512
)

// Frame is one frame of a connection (section 2.3).
type Frame struct {
	Type    byte
	Channel uint16
	// Body is empty in a heartbeat. It is valid until the next read.
	Body []byte
}

// FrameReader reads frames from a stream.
type FrameReader struct {
	src io.Reader
	// max is the largest frame accepted, in bytes.
	max    uint32
	buf    []byte
	header [HeaderSize]byte
}

// NewFrameReader reads frames of at most limit bytes from src, which should be buffered.
func NewFrameReader(src io.Reader, limit uint32) *FrameReader {
	return &FrameReader{src: src, max: limit}
}

// Read blocks for the next frame. It fails with an [*Error] on bad framing and with the source's error otherwise.
func (f *FrameReader) Read() (Frame, error) {
	if _, err := io.ReadFull(f.src, f.header[:]); err != nil {
		return Frame{}, err
	}
	size := binary.BigEndian.Uint32(f.header[:])
	offset := uint32(f.header[4]) * 4
	if size < HeaderSize || size > f.max || offset < HeaderSize || offset > size {
		return Frame{}, &Error{
			Condition:   ConditionFramingError,
			Description: fmt.Sprintf("frame of %d bytes with data offset %d, at most %d bytes are allowed", size, offset, f.max),
		}
	}
	body := int(size - HeaderSize)
	if cap(f.buf) < body {
		f.buf = make([]byte, max(body, 512))
	}
	if _, err := io.ReadFull(f.src, f.buf[:body]); err != nil {
		return Frame{}, io.ErrUnexpectedEOF
	}
	return Frame{
		Type:    f.header[5],
		Channel: binary.BigEndian.Uint16(f.header[6:]),
		Body:    f.buf[offset-HeaderSize : body],
	}, nil
}

// AppendFrame appends a whole frame.
func AppendFrame(b []byte, kind byte, channel uint16, p Performative) []byte {
	start := len(b)
	b = append(b, 0, 0, 0, 0, 2, kind, byte(channel>>8), byte(channel))
	b = p.append(b)
	binary.BigEndian.PutUint32(b[start:], uint32(len(b)-start))
	return b
}

// AppendTransfer appends a transfer frame with as many bytes of payload as limit (in bytes, of the whole frame) has room
// for, and returns the rest. More is set when there is a rest.
func AppendTransfer(b []byte, channel uint16, p *Transfer, payload []byte, limit int) (out, rest []byte) {
	start := len(b)
	p.More = false
	b = append(b, 0, 0, 0, 0, 2, FrameAMQP, byte(channel>>8), byte(channel))
	body := len(b)
	b = p.append(b)
	if room := limit - (len(b) - start); len(payload) > room {
		p.More = true
		b = p.append(b[:body])
		room = max(limit-(len(b)-start), 0)
		payload, rest = payload[:room], payload[room:]
	}
	b = append(b, payload...)
	binary.BigEndian.PutUint32(b[start:], uint32(len(b)-start))
	return b, rest
}

// FrameBuffered tells whether the next frame can be read without waiting.
func FrameBuffered(r *bufio.Reader) bool {
	if r.Buffered() < HeaderSize {
		return false
	}
	header, err := r.Peek(4)
	return err == nil && int64(binary.BigEndian.Uint32(header)) <= int64(r.Buffered())
}

// Heartbeat is an empty frame (section 2.4.5).
var Heartbeat = [HeaderSize]byte{0, 0, 0, HeaderSize, 2, FrameAMQP, 0, 0}
