package broker

import (
	"crypto/sha256"
	"time"

	"changerelay/services/sandbox/internal/servicebus/entity"
)

// history remembers the ids of the messages of a window of time. An id is kept
// as the first half of its SHA-256, which bounds its memory and does not
// depend on the process.
type history struct {
	b      *Broker
	window time.Duration
	known  map[fingerprint]int32 // how often it is in queue: more than once only after Restore
	queue  []remembered          // by time; those before first are gone
	first  int
	alarm  alarm // of the oldest
}

type fingerprint [16]byte

type remembered struct {
	id fingerprint
	at time.Time
}

func newHistory(b *Broker, window time.Duration) *history {
	h := &history{b: b, window: window, known: map[fingerprint]int32{}}
	h.alarm = newAlarm(h)
	return h
}

// seen tells a repeat, and remembers the message otherwise. A message without
// an id repeats nothing. On a partitioned entity the id counts within its
// partition key.
func (h *history) seen(in *inlet, m *entity.Message, now time.Time) bool {
	if m.MessageID == "" {
		return false
	}
	h.purge(now)
	id := fingerprintOf(in, m)
	if h.known[id] > 0 {
		return true
	}
	h.remember(id, now)
	h.b.log.remember(in, id, now)
	return false
}

func fingerprintOf(in *inlet, m *entity.Message) fingerprint {
	key := ""
	if in.partitioned {
		key = in.partitionKey(m)
	}
	text := make([]byte, 0, 2*maxIDLength)
	text = append(text, key...)
	text = append(text, 0)
	text = append(text, m.MessageID...)
	sum := sha256.Sum256(text)
	return fingerprint(sum[:16])
}

func (h *history) remember(id fingerprint, at time.Time) {
	h.known[id]++
	h.queue = append(h.queue, remembered{id, at})
	if h.alarm.index < 0 {
		h.b.set(&h.alarm, h.queue[h.first].at.Add(h.window))
	}
}

// purge forgets what is older than the window.
func (h *history) purge(now time.Time) {
	for h.first < len(h.queue) && !now.Before(h.queue[h.first].at.Add(h.window)) {
		id := h.queue[h.first].id
		if h.known[id]--; h.known[id] == 0 {
			delete(h.known, id)
		}
		h.first++
	}
	if h.first > len(h.queue)/2 {
		h.queue = append([]remembered(nil), h.queue[h.first:]...)
		h.first = 0
	}
}

func (h *history) ring(_ *Broker, now time.Time) {
	h.purge(now)
	if h.first < len(h.queue) {
		h.b.set(&h.alarm, h.queue[h.first].at.Add(h.window))
	}
}
