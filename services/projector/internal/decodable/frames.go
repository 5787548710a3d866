package decodable

import (
	"encoding/binary"
	"errors"
	"maps"
	"net"
	"strings"
)

// Conn returns a connection on which AMQP is received, with go-amqp on top of it. One
// goroutine reads from it. That one calls refused, which may be nil, for each message that is
// refused of a session of Service Bus, before go-amqp is given its end.
func Conn(conn net.Conn, refused func(sessionID string)) net.Conn {
	return &guarded{Conn: conn, frames: newFrames(refused)}
}

type guarded struct {
	net.Conn
	frames frames
}

var errResumes = errors.New("a link goes on after a message that cannot be decoded and of which go-amqp was given " +
	"a part; what it carried comes again on another connection")

func (g *guarded) Read(b []byte) (int, error) {
	if g.frames.resumes {
		return 0, errResumes
	}
	n, err := g.Conn.Read(b)
	if g.frames.came(b[:n]); g.frames.resumes {
		return 0, errResumes
	}
	return n, err
}

// Descriptors of performatives (AMQP 1.0, section 2.7).
const (
	beginCode    = 0x11
	attachCode   = 0x12
	transferCode = 0x14
	detachCode   = 0x16
	endCode      = 0x17
)

// Where a frame has what (AMQP 1.0, section 2.3). go-amqp takes the body for what follows the
// header, whatever the data offset says.
const (
	typeAt    = 5
	channelAt = 6
	bodyAt    = 8
	codeAt    = bodyAt + 2
	listAt    = bodyAt + 3
)

// frames follows the frames that come on a connection, and the messages in them.
type frames struct {
	head []byte // the frame's header, and its performative as far as it is of use
	size int    // of the frame; 0 before it is known
	left int    // how many bytes of the frame have not come

	// message is the one that the frame carries, if it does, of the link.
	message       *walker
	link          link
	more, aborted bool
	// resumes tells that go-amqp would resume within a message, and may not be given what came.
	resumes bool

	present walker // of messages in one frame
	links   map[link]known
	refused func(sessionID string) // may be nil
}

func newFrames(refused func(sessionID string)) frames {
	return frames{links: map[link]known{}, refused: refused}
}

// link is a link as the peer numbers it.
type link struct {
	channel uint16
	handle  uint32
}

// known is what is known of a link.
type known struct {
	kept      *walker // the message of which more frames come, or that was refused; nil for none
	answering bool    // $management answers on it
	session   string  // that it is of, if it is
}

// came follows the next bytes, and overwrites those of them that are not for go-amqp.
func (f *frames) came(b []byte) {
	for len(b) > 0 {
		n := f.missing()
		if n == 0 {
			n = min(f.left, len(b))
			f.left -= n
			if f.message != nil {
				f.message.walk(b[:n])
			}
			f.end(b[:n])
			b = b[n:]
			continue
		}
		n = min(n, len(b))
		f.head = append(f.head, b[:n]...)
		b = b[n:]
		switch {
		case len(f.head) < bodyAt:
		case f.size == 0:
			f.begin()
		default:
			f.left -= n
		}
		if f.size > 0 && f.missing() == 0 {
			f.tell()
			if f.left == 0 {
				f.end(nil)
			}
		}
	}
}

// begin begins a frame whose header has come.
func (f *frames) begin() {
	f.size = bodyAt
	if string(f.head[:4]) != "AMQP" { // as a protocol header begins, which is no longer
		f.size = max(int(binary.BigEndian.Uint32(f.head)), bodyAt)
	}
	f.left = f.size - bodyAt
}

// missing is how many bytes of the frame's head have to come before more is known of it.
func (f *frames) missing() int {
	wanted := bodyAt
	if f.size > 0 {
		wanted = min(f.wanted(), f.size)
	}
	return max(wanted-len(f.head), 0)
}

// wanted is up to where the frame is of use, beside a message.
func (f *frames) wanted() int {
	switch {
	case f.head[typeAt] != 0 || string(f.head[:4]) == "AMQP":
		return bodyAt
	case len(f.head) < listAt:
		return listAt
	case f.head[bodyAt] != 0 || f.head[bodyAt+1] != smallUlongCode:
		return listAt
	}
	switch f.head[codeAt] {
	case attachCode, transferCode, detachCode:
	default:
		return listAt
	}
	if len(f.head) == listAt {
		return listAt + 1
	}
	switch f.head[listAt] {
	case list8Code:
		if len(f.head) < listAt+2 {
			return listAt + 2
		}
		return listAt + 2 + int(f.head[listAt+1])
	case list32Code:
		if len(f.head) < listAt+5 {
			return listAt + 5
		}
		return listAt + 5 + int(binary.BigEndian.Uint32(f.head[listAt+1:]))
	}
	return listAt + 1
}

// tell finds out what the frame is.
func (f *frames) tell() {
	if len(f.head) < listAt || f.head[typeAt] != 0 {
		return
	}
	channel := binary.BigEndian.Uint16(f.head[channelAt:])
	switch p := list(f.head[listAt:]); f.head[codeAt] {
	case transferCode:
		f.transfers(channel, p)
	case attachCode:
		f.attaches(channel, p)
	case detachCode:
		delete(f.links, link{channel, p.next().uint()})
	case beginCode, endCode:
		maps.DeleteFunc(f.links, func(l link, _ known) bool { return l.channel == channel })
	}
}

// transfers finds the message that the frame carries (AMQP 1.0, section 2.7.5).
func (f *frames) transfers(channel uint16, p parts) {
	f.link = link{channel, p.next().uint()}
	for range 4 { // the delivery's id and tag, the format, and whether it is settled
		p.next()
	}
	f.more = p.next().bool()
	for range 3 { // how it is settled, its state, and whether it is resumed
		p.next()
	}
	f.aborted = p.next().bool()
	of := f.links[f.link]
	if f.message = of.kept; f.message == nil {
		f.message = &f.present
		f.message.reset(of.answering)
	}
	f.resumes = f.resumes || f.message.left
	if !f.more {
		f.message.end = f.message.at + int64(f.left)
	}
}

// attaches notes a link that begins (AMQP 1.0, sections 2.7.3 and 3.5.3).
func (f *frames) attaches(channel uint16, p parts) {
	p.next() // its name
	l := link{channel, p.next().uint()}
	delete(f.links, l)
	for range 3 { // the role, and how both ends settle
		p.next()
	}
	source := p.next()
	if source.code != 0 {
		return
	}
	of := parts(source.content)
	of.next() // its descriptor
	of = list(of)
	k := known{answering: strings.HasSuffix(string(of.next().content), "/$management")}
	for range 6 { // what becomes of the source, and how it distributes
		of.next()
	}
	k.session = sessionOf(of.next())
	f.links[l] = k
}

// sessionOf is the session that a link is for by the filters of its source.
func sessionOf(filters part) string {
	of := filters.values()
	for len(of) > 0 {
		name, filter := of.next(), of.next()
		if string(name.content) != "com.microsoft:session-filter" {
			continue
		}
		described := parts(filter.content)
		if filter.code == 0 {
			described.next() // its descriptor
			filter = described.next()
		}
		return string(filter.content)
	}
	return ""
}

// end ends the frame where it has come, with a last piece of its message.
func (f *frames) end(last []byte) {
	if f.left > 0 {
		return
	}
	if f.message != nil {
		f.ends(last)
	}
	f.head, f.size, f.message = f.head[:0], 0, nil
}

// ends ends what the frame has of its message.
func (f *frames) ends(last []byte) {
	m, of := f.message, f.links[f.link]
	if !f.more && !f.aborted && !m.whole() {
		m.bad, m.left = true, m.reach > m.at
		overwrite(last)
		if of.session != "" && f.refused != nil {
			f.refused(of.session)
		}
	}
	switch {
	case f.aborted, !f.more && !m.bad: // go-amqp begins anew
		of.kept = nil
	case m == &f.present:
		kept := *m
		of.kept, m.within = &kept, nil
	}
	f.links[f.link] = of
}
