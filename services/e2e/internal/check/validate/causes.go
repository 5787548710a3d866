package validate

import (
	"slices"
	"strings"
	"time"
)

// Trouble is a time in which a service suffered a fault.
type Trouble struct {
	// Node is the service; empty for all.
	Node     string
	From, To time.Time
}

// suffered says whether a service was in trouble at some time between two.
func suffered(troubles []Trouble, node string, from, to time.Time) bool {
	return slices.ContainsFunc(troubles, func(t Trouble) bool {
		return (t.Node == "" || t.Node == node) && !t.To.Before(from) && !t.From.After(to)
	})
}

// LateSends finds what OverlappingTerms finds, and tells what has a cause from the rest. A
// cause is trouble of whoever claimed the old term, not over a lease before the higher term
// first sent, and begun before the late message: for so long the old term can have been
// asked for, and found to last. The troubles are those that hold up what is sent.
func LateSends(sends []Send, claims []Checkpoint, troubles []Trouble, lease time.Duration) (caused, uncaused Findings) {
	owners := make(map[term]string)
	for _, c := range claims {
		owners[term{c.Stream, c.Term}] = c.Owner
	}
	overlapping(sends, func(s *Send, next time.Time) {
		owner, into := owners[termOf(s)], &uncaused
		if suffered(troubles, owner, next.Add(-lease), s.Enqueued) {
			into = &caused
		}
		into.Add("term %d of %q sent %s version %d at %s, %v after a higher term had begun", s.Term, owner, s.Aggregate, s.Version, s.Enqueued.Format(millisecond), s.Enqueued.Sub(next))
	})
	return caused, uncaused
}

// millisecond writes a time of day as the broker's clock has it.
const millisecond = "15:04:05.000"

// LateWrites finds what Interleaved finds, and tells what has a cause from the rest. A
// cause is trouble of the writer, not over by the time inHand before another hold took
// over, and begun before the write: for so long a hold that does not know that its session
// was taken writes what it has in hand. The troubles are those that take sessions from
// holders at work.
func LateWrites(applies []Apply, troubles []Trouble, inHand time.Duration) (caused, uncaused Findings) {
	interleaved(applies, func(a Apply, last string, since int64) {
		into := &uncaused
		if suffered(troubles, writer(a.Hold), time.Unix(since, 0).Add(-inHand), time.Unix(a.At+1, 0)) {
			into = &caused
		}
		into.Add("%s was written to version %d by %s at %s, after %s had taken over", a.Document, a.Version, a.Hold, time.Unix(a.At, 0).Format(time.TimeOnly), last)
	})
	return caused, uncaused
}

// writer is the service whose hold it is, which names itself, its process and a number.
func writer(hold string) string {
	process, _, _ := strings.Cut(hold, "/")
	if end := strings.LastIndexByte(process, '-'); end > 0 {
		return process[:end]
	}
	return process
}
