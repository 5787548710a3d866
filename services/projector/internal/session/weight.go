package session

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"io"
	"sync"
)

// What a message weighs before anything is known, and what each has beside its body.
const (
	unknownWeight = 1 << 20
	besideBody    = 1 << 10
	// inflatedMost bounds what a compressed body becomes: a larger one is not applied.
	inflatedMost = 16 << 20
)

// memberBegins is how each member of a gzip begins (RFC 1952, section 2.3), and
// wraps how long one has to be, at least, for its length not to fit in its trailer:
// no more than 1,032 bytes come of one.
var memberBegins = []byte{0x1f, 0x8b, 8}

const wraps = 4 << 20

// Weight is about how many bytes of memory a message takes, once: its body, and
// where that is compressed, what it becomes.
func (m *Message) Weight() int64 {
	w := int64(len(m.Body) + len(m.OtherBody) + besideBody)
	if m.ContentEncoding == "gzip" && len(m.Body) >= 4 {
		w += min(inflated(m.Body), inflatedMost)
	}
	return w
}

// inflated is how many bytes a compressed body becomes, if no more than inflatedMost:
// what its last four bytes say (RFC 1952, section 2.3.1), or where it may have other
// members before the last, or be too long for them, what is counted. A body that
// cannot be read to its end becomes as much as can.
func inflated(body []byte) int64 {
	if len(body) < wraps && !bytes.Contains(body[1:], memberBegins) {
		return int64(binary.LittleEndian.Uint32(body[len(body)-4:]))
	}
	unpacked, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		return 0
	}
	n, _ := io.Copy(io.Discard, io.LimitReader(unpacked, inflatedMost))
	return n
}

// weights are what messages weigh, each.
func weights(messages []Message) []int64 {
	all := make([]int64, len(messages))
	for i := range messages {
		all[i] = messages[i].Weight()
	}
	return all
}

// lightest is how many weights, from the first on, are no more than most together, and what
// they are together; it is one at least.
func lightest(weights []int64, most int64) (n int, sum int64) {
	for _, w := range weights {
		if n > 0 && sum+w > most {
			break
		}
		n, sum = n+1, sum+w
	}
	return n, sum
}

// scales know what the heaviest messages have weighed lately.
type scales struct {
	mu    sync.Mutex
	heavy int64 // guarded by mu; 0 before the first
}

// note follows a heavier message at once, and lighter ones slowly.
func (s *scales) note(heaviest int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.heavy = max(heaviest, s.heavy-s.heavy/8)
}

// expect is what the next message may weigh.
func (s *scales) expect() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.heavy == 0 {
		return unknownWeight
	}
	return s.heavy
}
