package session

import (
	"encoding/binary"
	"sync"
)

// What a message weighs before anything is known, and what each has beside its body.
const (
	unknownWeight = 1 << 20
	besideBody    = 1 << 10
	// inflatedMost bounds what a compressed body says of itself: a larger one is not
	// applied.
	inflatedMost = 16 << 20
)

// Weight is about how many bytes of memory a message takes, once: its body, and
// where that is compressed, what it says it becomes.
func (m *Message) Weight() int64 {
	w := int64(len(m.Body) + len(m.OtherBody) + besideBody)
	if m.ContentEncoding == "gzip" && len(m.Body) >= 4 {
		// RFC 1952, section 2.3.1: the last four bytes are the length of the original.
		w += min(int64(binary.LittleEndian.Uint32(m.Body[len(m.Body)-4:])), inflatedMost)
	}
	return w
}

// weighed is what messages weigh together, and the heaviest alone.
func weighed(messages []Message) (sum, heaviest int64) {
	for i := range messages {
		w := messages[i].Weight()
		sum, heaviest = sum+w, max(heaviest, w)
	}
	return sum, heaviest
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
