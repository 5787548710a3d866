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

// concern are the troubles of a service, those of all among them, in the order in which they
// began.
func concern(troubles []Trouble, node string) []Trouble {
	its := slices.DeleteFunc(slices.Clone(troubles), func(t Trouble) bool { return t.Node != "" && t.Node != node })
	slices.SortFunc(its, func(a, b Trouble) int { return a.From.Compare(b.From) })
	return its
}

// explain says whether troubles of a service explain what it did at a time, after another had
// taken over: one had begun by the takeover, and was not over by the time before it; and the
// service was out of trouble for no more than the time after since then. The troubles are in
// the order in which they began.
func explain(its []Trouble, takeover, at time.Time, before, after time.Duration) bool {
	caused := slices.ContainsFunc(its, func(t Trouble) bool {
		return !t.From.After(takeover) && !t.To.Before(takeover.Add(-before))
	})
	return caused && untroubled(its, takeover, at) <= after
}

// untroubled is how much of the time between two is in none of the troubles.
func untroubled(its []Trouble, from, to time.Time) time.Duration {
	var free time.Duration
	for _, t := range its {
		if t.From.After(to) {
			break
		}
		free += max(0, t.From.Sub(from))
		if t.To.After(from) {
			from = t.To
		}
	}
	return free + max(0, to.Sub(from))
}

// LateSends finds what OverlappingTerms finds, and tells what has a cause from the rest. A
// cause is trouble of whoever claimed the old term, begun when the higher term first sent,
// and not over a lease before: for so long the old term can have been asked for, and found
// to last. What was held up arrives within the time inFlight, but for the time in which
// there is such trouble. The troubles are those that hold up what is sent.
func LateSends(sends []Send, claims []Checkpoint, troubles []Trouble, lease, inFlight time.Duration) (caused, uncaused Findings) {
	owners := make(map[term]string)
	for _, c := range claims {
		owners[term{c.Stream, c.Term}] = c.Owner
	}
	overlapping(sends, func(s *Send, next time.Time) {
		owner, into := owners[termOf(s)], &uncaused
		if explain(concern(troubles, owner), next, s.Enqueued, lease, inFlight) {
			into = &caused
		}
		into.Add("term %d of %q sent %s version %d at %s, %v after a higher term had begun", s.Term, owner, s.Aggregate, s.Version, s.Enqueued.Format(millisecond), s.Enqueued.Sub(next))
	})
	return caused, uncaused
}

// millisecond writes a time of day as the broker's clock has it.
const millisecond = "15:04:05.000"

// LateWrites finds what Interleaved finds, and tells what has a cause from the rest. A
// cause is trouble of the writer, begun when another hold took over, and not over by the
// time inHand before. For so long after, and as long as there is such trouble, a hold that
// does not know that its session was taken writes what it has in hand. The troubles are
// those that take sessions from holders at work.
func LateWrites(applies []Apply, troubles []Trouble, inHand time.Duration) (caused, uncaused Findings) {
	interleaved(applies, func(a Apply, last string, since int64) {
		into := &uncaused
		// The times are whole seconds: another took over before the end of that one.
		if explain(concern(troubles, writer(a.Hold)), time.Unix(since+1, 0), time.Unix(a.At, 0), inHand+time.Second, inHand) {
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
