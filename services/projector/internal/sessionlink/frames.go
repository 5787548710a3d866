package sessionlink

import (
	"encoding/binary"
	"sync"
	"sync/atomic"
)

const (
	// frameHead is how much of a frame is kept to tell what it is: its header, and of an
	// attach the link's name.
	frameHead = 128
	// largeFrame is from how many bytes on a frame is of a large message: one in several
	// frames fills all but the last.
	largeFrame = 32 << 10
)

// Descriptors of performatives (AMQP 1.0, section 2.7).
const (
	openCode     = 0x10
	attachCode   = 0x12
	transferCode = 0x14
)

// frames follows the frames that come on a connection (AMQP 1.0, section 2.3), and counts
// the bytes of messages by the link that they are for. One goroutine calls came.
type frames struct {
	// large is how many bytes of large frames have come.
	large atomic.Int64
	// channels is how many channels the peer allows; 0 where it has not said so.
	channels atomic.Int64

	head []byte // what has come of the frame's beginning
	left int    // how many bytes of the frame have not come; 0 before its size is known
	size int
	told bool          // what the frame is
	to   *atomic.Int64 // counts what comes of the frame; nil where nobody does
	// links are those that are watched, by the channel that they came on.
	links map[uint16]*atomic.Int64

	mu      sync.Mutex
	watched map[string]*atomic.Int64 // guarded by mu: by name, until the link has come
}

// watch counts the bytes of messages that come to a link that is about to be attached.
func (f *frames) watch(name string) *atomic.Int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.watched == nil {
		f.watched = map[string]*atomic.Int64{}
	}
	count := new(atomic.Int64)
	f.watched[name] = count
	return count
}

// forget lets go of a link that does not come.
func (f *frames) forget(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.watched, name)
}

// came notes the next bytes.
func (f *frames) came(b []byte) {
	for len(b) > 0 {
		n := f.next(b)
		if f.size >= largeFrame {
			f.large.Add(int64(n))
		}
		if f.to != nil {
			f.to.Add(int64(n))
		}
		b = b[n:]
		if f.size > 0 && f.left == 0 {
			f.head, f.size, f.told, f.to = f.head[:0], 0, false, nil
		}
	}
}

// next takes what b has of the present frame, and returns how many bytes that is.
func (f *frames) next(b []byte) int {
	const header = 8
	if len(f.head) < header {
		n := min(header-len(f.head), len(b))
		f.head = append(f.head, b[:n]...)
		if len(f.head) == header {
			f.size = header
			if string(f.head[:4]) != "AMQP" { // as a protocol header begins, which is no longer
				f.size = max(int(binary.BigEndian.Uint32(f.head)), header)
			}
			f.left = f.size - header
		}
		return n
	}
	n := min(f.left, len(b))
	f.left -= n
	if !f.told {
		f.head = append(f.head, b[:min(n, frameHead-len(f.head))]...)
		if len(f.head) == frameHead || f.left == 0 {
			f.told = true
			f.tell()
		}
	}
	return n
}

// tell finds out what the frame is by its head.
func (f *frames) tell() {
	const ofAMQP, offsetWords, frameType, channelAt = 0, 4, 5, 6
	body := 4 * int(f.head[offsetWords])
	if f.head[frameType] != ofAMQP || len(f.head) < body+3 || f.head[body] != 0 || f.head[body+1] != 0x53 {
		return
	}
	channel := binary.BigEndian.Uint16(f.head[channelAt:])
	switch f.head[body+2] {
	case openCode:
		f.channels.Store(int64(channelsOf(f.head[body+3:])))
	case transferCode:
		f.to = f.links[channel]
	case attachCode:
		f.attached(channel, nameOf(f.head[body+3:]))
	}
}

// attached notes that a link is on a channel, which it has for itself.
func (f *frames) attached(channel uint16, name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	count := f.watched[name]
	if count == nil {
		return
	}
	delete(f.watched, name)
	if f.links == nil {
		f.links = map[uint16]*atomic.Int64{}
	}
	f.links[channel] = count
}

// nameOf is the first field of a performative, as a string of up to 255 bytes; "" where it
// is none (AMQP 1.0, section 1.6).
func nameOf(list []byte) string {
	const list8, list32, string8 = 0xc0, 0xd0, 0xa1
	at := 0
	switch {
	case len(list) == 0:
		return ""
	case list[0] == list8:
		at = 3
	case list[0] == list32:
		at = 9
	default:
		return ""
	}
	if len(list) < at+2 || list[at] != string8 || len(list) < at+2+int(list[at+1]) {
		return ""
	}
	return string(list[at+2 : at+2+int(list[at+1])])
}
