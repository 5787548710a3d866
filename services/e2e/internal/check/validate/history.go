package validate

import (
	"cmp"
	"hash/fnv"
	"iter"
	"slices"
	"strconv"
	"time"

	"changerelay/services/e2e/internal/check/expect"
)

// Event names one event of the source.
type Event struct {
	Aggregate string
	Version   int64
}

// Fingerprint is a number that stands for the sequence of an event without a version.
func Fingerprint(sequence string) int64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(sequence))
	return int64(h.Sum64())
}

// Source is the truth: the versions of every aggregate that the source holds.
type Source map[string][]int64

// Len is how many events the source holds.
func (s Source) Len() int {
	n := 0
	for _, versions := range s {
		n += len(versions)
	}
	return n
}

// Send is one message as the topic accepted it.
type Send struct {
	Event
	// MessageID is the message's own id.
	MessageID string
	// Stream is the one that carries the aggregate, each of which counts terms of its own;
	// "" where it is not known.
	Stream string
	// Term is the sender's term of leadership, as the message says.
	Term int64
	// Number is the broker's sequence number: it orders the messages of one
	// aggregate, and of one partition, as the broker accepted them.
	Number int64
	// Enqueued is the broker's time of acceptance, to the millisecond.
	Enqueued time.Time
	// Position is the cluster time at which the message says that its change stands
	// in its stream; 0 where it does not say.
	Position uint64
	// Place is a number that stands for the whole position, Copied says that the message
	// is one of a copy, which has one position for many events.
	Place  uint64
	Copied bool
	// TimeToLive is when the broker may drop the message; 0 where it keeps it.
	TimeToLive time.Duration
	// Resend is by which resend the event was sent again; zero where it was not.
	Resend expect.Resend
	// Print is the message part by part; of a resent one, that of the message it repeats.
	Print expect.Print
}

// Apply is one write to a read document, in the order of the writes.
type Apply struct {
	Document string
	// Version is the document's aggregate version after the write.
	Version int64
	// Hold is the hold of a session under which it was written; "" where the
	// document does not say.
	Hold string
	// At is when it was written, on the server's clock, in seconds since 1970.
	At int64
}

// Checkpoint is one state of a stream's checkpoint, in the order of the writes.
type Checkpoint struct {
	Stream string
	// Owner is who claimed the term.
	Owner string
	Term  int64
	// Position is the place that was saved last, At when, on the server's clock, in
	// seconds since 1970.
	Position string
	At       int64
}

// stamp is how many hex digits of a position are its cluster time.
const stamp = 16

// ClusterTime reads the cluster time of a position: seconds, then increment; 0
// where there is none.
func ClusterTime(position string) uint64 {
	if len(position) < stamp+2 || position[stamp] != '.' {
		return 0
	}
	at, err := strconv.ParseUint(position[:stamp], 16, 64)
	if err != nil {
		return 0
	}
	return at
}

// Holding is one state of a lease, in the order of the writes.
type Holding struct {
	Lease string
	// Leader and Incarnation name the holder; both are empty where nobody holds it.
	Leader, Incarnation string
	// From is when the state was written, Until when the holder's time is over,
	// both on the server's clock.
	From, Until time.Time
}

// InOrderOfAcceptance sorts sends by the broker's number. A client may hand out
// messages in another order than the broker accepted them; the number cannot
// be mistaken.
func InOrderOfAcceptance(sends []Send) {
	slices.SortStableFunc(sends, func(a, b Send) int { return cmp.Compare(a.Number, b.Number) })
}

// EventsOf runs over the events of the sends, repeats included.
func EventsOf(sends []Send) iter.Seq[Event] {
	return func(yield func(Event) bool) {
		for i := range sends {
			if !yield(sends[i].Event) {
				return
			}
		}
	}
}
