package validate

import (
	"iter"
	"slices"

	"changerelay/services/e2e/internal/check/expect"
)

// Overtaking finds events that came again before they had come at all: all holds both,
// in the order in which the broker accepted the messages of an aggregate.
func Overtaking(all []Send) Findings {
	live := make(map[Event]bool)
	var f Findings
	for i := range all {
		s := &all[i]
		switch {
		case s.Resend.ID == "":
			live[s.Event] = true
		case !live[s.Event]:
			f.Add("%s version %d came by resend %s before it came live", s.Aggregate, s.Version, s.Resend.ID)
		}
	}
	return f
}

// ResentInOrder finds events that a resend sent first after a later one of their
// aggregate. To whoever begins an aggregate from a resend they would be repeats.
func ResentInOrder(resent []Send) Findings {
	of := make(map[string][]Event)
	for i := range resent {
		of[resent[i].Resend.ID] = append(of[resent[i].Resend.ID], resent[i].Event)
	}
	var f Findings
	for _, events := range of {
		f = f.And(Reordered(slices.Values(events)))
	}
	return f
}

// Asked is a resend that an operator has asked for, and that is done.
type Asked struct {
	expect.Resend
	// Selected are the events that it has to send at least.
	Selected iter.Seq[Event]
}

// Unselected finds messages of resends that are of none of the events that these may send.
// What resends may send of which nothing is said, nobody knows.
func Unselected(may map[string]func(Event) bool, resent []Send) Findings {
	var f Findings
	for i := range resent {
		s := &resent[i]
		if allowed, known := may[s.Resend.ID]; known && !allowed(s.Event) {
			f.Add("%s version %d came by resend %s, which was not asked for it", s.Aggregate, s.Version, s.Resend.ID)
		}
	}
	return f
}

// NotResent finds events that a resend was to send, and did not.
func NotResent(asked []Asked, resent []Send) Findings {
	type one struct {
		Event
		id string
	}
	sent := make(map[one]bool, len(resent))
	for i := range resent {
		sent[one{resent[i].Event, resent[i].Resend.ID}] = true
	}
	var f Findings
	for _, a := range asked {
		for e := range a.Selected {
			if !sent[one{e, a.ID}] {
				f.Add("%s version %d was not sent by resend %s", e.Aggregate, e.Version, a.ID)
			}
		}
	}
	return f
}

// ResentForNobody finds messages of resends that are for a group for which nobody has
// asked for one.
func ResentForNobody(resent []Send, groups map[string]bool) Findings {
	var f Findings
	for i := range resent {
		if s := &resent[i]; !groups[s.Resend.Group] {
			f.Add("%s version %d came by resend %s for %q", s.Aggregate, s.Version, s.Resend.ID, s.Resend.Group)
		}
	}
	return f
}
