package validate

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// Handover is the passing of the lead from one term to the next that sent.
type Handover struct {
	From, To int64
	// LastOld is when the last message of the old term was accepted before the
	// new term's first, FirstNew when that first one was.
	LastOld, FirstNew time.Time
}

// Gap is how long nothing was accepted between the two terms.
func (h Handover) Gap() time.Duration { return h.FirstNew.Sub(h.LastOld) }

// Handovers returns the passings of the lead in a history, oldest first of each stream. A
// term that sent nothing does not appear.
func Handovers(sends []Send) []Handover {
	first, terms := firstOfTerm(sends)
	var handovers []Handover
	for i := 1; i < len(terms); i++ {
		if terms[i-1].stream != terms[i].stream {
			continue
		}
		h := Handover{From: terms[i-1].number, To: terms[i].number, FirstNew: first[terms[i]]}
		for _, s := range sends {
			if termOf(&s) == terms[i-1] && s.Enqueued.After(h.LastOld) && !s.Enqueued.After(h.FirstNew) {
				h.LastOld = s.Enqueued
			}
		}
		handovers = append(handovers, h)
	}
	return handovers
}

// OverlappingTerms finds messages of a term accepted after a higher term of their stream
// had begun to send: two leaders at work. Equal times are no overlap, for the
// broker's clock counts in milliseconds.
func OverlappingTerms(sends []Send) Findings {
	var f Findings
	overlapping(sends, func(s *Send, next time.Time) {
		f.Add("term %d sent %s version %d %v after a higher term had begun", s.Term, s.Aggregate, s.Version, s.Enqueued.Sub(next))
	})
	return f
}

// overlapping calls found for each such message, in the order of their times, with when a
// higher term first sent.
func overlapping(sends []Send, found func(s *Send, next time.Time)) {
	first, terms := firstOfTerm(sends)
	// begun[i] is when any term above terms[i] first sent.
	begun := make(map[term]time.Time, len(terms))
	for i := len(terms) - 2; i >= 0; i-- {
		if terms[i].stream != terms[i+1].stream {
			continue
		}
		next := first[terms[i+1]]
		if later, found := begun[terms[i+1]]; found && later.Before(next) {
			next = later
		}
		begun[terms[i]] = next
	}
	inTime := slices.Clone(sends)
	slices.SortStableFunc(inTime, func(a, b Send) int { return cmp.Compare(a.Enqueued.UnixMilli(), b.Enqueued.UnixMilli()) })
	for i := range inTime {
		if next, later := begun[termOf(&inTime[i])]; later && inTime[i].Enqueued.After(next) {
			found(&inTime[i], next)
		}
	}
}

// term is a term of a stream.
type term struct {
	stream string
	number int64
}

func termOf(s *Send) term { return term{s.Stream, s.Term} }

// firstOfTerm is when each term first sent, and the terms of each stream in their order.
func firstOfTerm(sends []Send) (map[term]time.Time, []term) {
	first := make(map[term]time.Time)
	for i := range sends {
		of := termOf(&sends[i])
		if at, found := first[of]; !found || sends[i].Enqueued.Before(at) {
			first[of] = sends[i].Enqueued
		}
	}
	return first, slices.SortedFunc(maps.Keys(first), func(a, b term) int {
		return cmp.Or(cmp.Compare(a.stream, b.stream), cmp.Compare(a.number, b.number))
	})
}

// LeaseOverlaps finds leases that passed to another holder before the time of
// the one before was over, and without its having given the lease up.
func LeaseOverlaps(history []Holding) Findings {
	last := make(map[string]Holding)
	var f Findings
	for _, h := range history {
		prev := last[h.Lease]
		last[h.Lease] = h
		held, taken := prev.Leader != "", h.Leader != ""
		same := prev.Leader == h.Leader && prev.Incarnation == h.Incarnation
		if held && taken && !same && h.From.Before(prev.Until) {
			f.Add("%s took lease %s from %s %v before its time was over", h.Leader, h.Lease, prev.Leader, prev.Until.Sub(h.From))
		}
	}
	return f
}

// TermsShared finds terms of a stream that two publishers claimed: two leaders
// in one term, which no fence keeps apart.
func TermsShared(history []Checkpoint) Findings {
	claimed := make(map[term]string)
	var f Findings
	for _, c := range history {
		t := term{c.Stream, c.Term}
		if first, found := claimed[t]; found && first != c.Owner {
			f.Add("term %d of %s belongs to %s and to %s", c.Term, c.Stream, first, c.Owner)
		}
		claimed[t] = c.Owner
	}
	return f
}
