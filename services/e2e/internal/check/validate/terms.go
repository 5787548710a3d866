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

// Handovers returns the passings of the lead in a history, oldest first. A term
// that sent nothing does not appear.
func Handovers(sends []Send) []Handover {
	first := firstOfTerm(sends)
	terms := slices.Sorted(maps.Keys(first))
	var handovers []Handover
	for i := 1; i < len(terms); i++ {
		h := Handover{From: terms[i-1], To: terms[i], FirstNew: first[terms[i]]}
		for _, s := range sends {
			if s.Term == h.From && s.Enqueued.After(h.LastOld) && !s.Enqueued.After(h.FirstNew) {
				h.LastOld = s.Enqueued
			}
		}
		handovers = append(handovers, h)
	}
	return handovers
}

// OverlappingTerms finds messages of a term accepted after a higher term had
// begun to send: two leaders at work. Equal times are no overlap, for the
// broker's clock counts in milliseconds.
func OverlappingTerms(sends []Send) Findings {
	first := firstOfTerm(sends)
	terms := slices.Sorted(maps.Keys(first))
	// begun[i] is when any term above terms[i] first sent.
	begun := make(map[int64]time.Time, len(terms))
	for i := len(terms) - 2; i >= 0; i-- {
		next := first[terms[i+1]]
		if later, found := begun[terms[i+1]]; found && later.Before(next) {
			next = later
		}
		begun[terms[i]] = next
	}
	inTime := slices.Clone(sends)
	slices.SortStableFunc(inTime, func(a, b Send) int { return cmp.Compare(a.Enqueued.UnixMilli(), b.Enqueued.UnixMilli()) })
	var f Findings
	for _, s := range inTime {
		if next, found := begun[s.Term]; found && s.Enqueued.After(next) {
			f.Add("term %d sent %s version %d %v after a higher term had begun", s.Term, s.Aggregate, s.Version, s.Enqueued.Sub(next))
		}
	}
	return f
}

func firstOfTerm(sends []Send) map[int64]time.Time {
	first := make(map[int64]time.Time)
	for _, s := range sends {
		if at, found := first[s.Term]; !found || s.Enqueued.Before(at) {
			first[s.Term] = s.Enqueued
		}
	}
	return first
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
	type term struct {
		stream string
		number int64
	}
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
