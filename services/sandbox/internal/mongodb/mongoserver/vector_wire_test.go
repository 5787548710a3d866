package mongoserver_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// errHungUp is what a server gives that closes the connection instead of
// answering.
var errHungUp = errors.New("the server closed the connection")

// rawClient sends plain messages, without a handshake, over one connection
// that is made anew when the server has closed it.
type rawClient struct {
	address string
	nc      net.Conn
}

func newRawClient(t testing.TB, address string) *rawClient {
	c := &rawClient{address: address}
	t.Cleanup(c.close)
	return c
}

func (c *rawClient) close() {
	if c.nc != nil {
		_ = c.nc.Close()
		c.nc = nil
	}
}

// message is a request in its parts.
type message struct {
	body bson.Raw
	// sequence, if it has a name, goes into a kind 1 section.
	sequence  string
	documents []bson.Raw
	flags     uint32
	// legacy is the database of an OP_QUERY; empty for an OP_MSG.
	legacy string
}

func (m message) encode() []byte {
	code := uint32(2013)
	var payload []byte
	if m.legacy != "" {
		code = 2004
		payload = append(make([]byte, 4), m.legacy+".$cmd\x00"...)
		payload = binary.LittleEndian.AppendUint32(payload, 0)
		payload = binary.LittleEndian.AppendUint32(payload, 0xFFFFFFFF)
		payload = append(payload, m.body...)
	} else {
		payload = append(append(binary.LittleEndian.AppendUint32(nil, m.flags), 0), m.body...)
	}
	if m.sequence != "" {
		section := append([]byte(m.sequence), 0)
		for _, doc := range m.documents {
			section = append(section, doc...)
		}
		payload = append(payload, 1)
		payload = binary.LittleEndian.AppendUint32(payload, uint32(4+len(section)))
		payload = append(payload, section...)
	}
	out := binary.LittleEndian.AppendUint32(nil, uint32(16+len(payload)))
	out = binary.LittleEndian.AppendUint32(out, 1)
	out = binary.LittleEndian.AppendUint32(out, 0)
	out = binary.LittleEndian.AppendUint32(out, code)
	return append(out, payload...)
}

// roundTrip sends a message and reads its reply within a time.
func (c *rawClient) roundTrip(m message, within time.Duration) (bson.Raw, error) {
	if c.nc == nil {
		nc, err := net.Dial("tcp", c.address)
		if err != nil {
			return nil, err
		}
		c.nc = nc
	}
	if err := c.nc.SetDeadline(time.Now().Add(within)); err != nil {
		return nil, err
	}
	reply, err := c.exchange(m.encode())
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) {
		c.close()
		return nil, errHungUp
	}
	return reply, err
}

func (c *rawClient) exchange(request []byte) (bson.Raw, error) {
	if _, err := c.nc.Write(request); err != nil {
		return nil, err
	}
	reply, err := c.readReply()
	return reply.body, err
}

// rawReply is a reply with what its header says.
type rawReply struct {
	id, responseTo int
	more           bool
	body           bson.Raw
}

func (c *rawClient) readReply() (rawReply, error) {
	header := make([]byte, 16)
	if _, err := io.ReadFull(c.nc, header); err != nil {
		return rawReply{}, err
	}
	rest := make([]byte, binary.LittleEndian.Uint32(header)-16)
	if _, err := io.ReadFull(c.nc, rest); err != nil {
		return rawReply{}, err
	}
	reply := rawReply{
		id:         int(binary.LittleEndian.Uint32(header[4:])),
		responseTo: int(binary.LittleEndian.Uint32(header[8:])),
	}
	switch code := binary.LittleEndian.Uint32(header[12:]); code {
	case 2013:
		reply.more = binary.LittleEndian.Uint32(rest)&2 != 0
		reply.body = rest[5:]
	case 1:
		reply.body = rest[20:]
	default:
		return reply, fmt.Errorf("reply of op code %d", code)
	}
	return reply, nil
}

// stream sends a message once and reads several replies.
func (c *rawClient) stream(m message, replies int, within time.Duration) ([]rawReply, error) {
	if err := c.nc.SetDeadline(time.Now().Add(within)); err != nil {
		return nil, err
	}
	if _, err := c.nc.Write(m.encode()); err != nil {
		return nil, err
	}
	all := make([]rawReply, replies)
	for i := range all {
		var err error
		if all[i], err = c.readReply(); err != nil {
			return nil, err
		}
	}
	return all, nil
}
