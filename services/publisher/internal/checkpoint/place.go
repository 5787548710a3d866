package checkpoint

import (
	"time"

	"changerelay/pkg/contract"
)

// ClusterTime is a moment of the source cluster's operation log.
type ClusterTime struct{ Seconds, Increment uint32 }

// IsZero reports whether the time is unset.
func (t ClusterTime) IsZero() bool { return t == ClusterTime{} }

// Before reports whether the time is earlier than another.
func (t ClusterTime) Before(other ClusterTime) bool {
	return t.Seconds < other.Seconds || t.Seconds == other.Seconds && t.Increment < other.Increment
}

// Next is the earliest time behind this one.
func (t ClusterTime) Next() ClusterTime { return ClusterTime{t.Seconds, t.Increment + 1} }

// Time is the time to the second.
func (t ClusterTime) Time() time.Time { return time.Unix(int64(t.Seconds), 0).UTC() }

// Place is where a stream goes on: after a token; without one, at a cluster time; or with
// a copy, and at that time once the copy is complete.
type Place struct {
	// Token is the resume token, a BSON document, of the last change up to which
	// everything is published; nil before the first save.
	Token []byte
	// Position is where that change stands; empty before the first save.
	Position contract.Position
	// Event is when the last change was made that was read up to there; zero where
	// none was, or that is not known. A token of an empty read says only a time, which
	// a source that is put back to an older copy comes to again by itself.
	Event ClusterTime
	// Start is where the stream begins while there is no token; zero until pinned.
	Start ClusterTime
	// Copy is the copy that comes, or came, before Start; nil where there is none.
	Copy *Copy
	// Anew says that an operator gave the place up: the stream begins where its
	// configuration says, as a new one does.
	Anew bool
}

// Time is the place on the source's clock; zero where there is none.
func (p Place) Time() ClusterTime {
	if seconds, increment, err := p.Position.ClusterTime(); err == nil {
		return ClusterTime{Seconds: seconds, Increment: increment}
	}
	return p.Start
}

// Before reports whether a stream that goes on at the other place passes over
// something that it would send from this one. All changes of a transaction have the same
// time: among them positions decide, and a place without a position is before all of them.
func (p Place) Before(other Place) bool {
	if from, to := p.Time(), other.Time(); from != to {
		return from.Before(to)
	}
	return p.Position < other.Position
}

// Passed reports whether a stream that goes on at the place has dealt with the change
// at a position, and so with all before it. What was copied has no place in a stream: all
// of it is passed once the copy is complete.
func (p Place) Passed(at contract.Position) bool {
	if at.OfSnapshot() && !p.Copying() {
		return !p.Time().Before(Place{Position: at}.Time())
	}
	return !p.Before(Place{Position: at})
}

// Pinned reports whether it is decided where the stream goes on.
func (p Place) Pinned() bool { return p.Token != nil || !p.Start.IsZero() }

// Copying reports whether a copy has to be made before the stream is read.
func (p Place) Copying() bool { return p.Token == nil && p.Copy != nil && !p.Copy.Done }

// Copy is a copy of what the source holds, and how far it has come.
type Copy struct {
	// Cause is why it is made, for people.
	Cause string
	// Since leaves out what was written before; zero copies everything.
	Since time.Time
	// Order names what the copy goes along, so that After is a place in it; empty
	// where a release before this one began the copy.
	Order string
	// After is the key of the last document copied, as package backfill writes it;
	// nil before the first.
	After []byte
	// Copied counts the documents up to there.
	Copied int64
	// Total is how many there were at the beginning, an estimate; 0 is unknown.
	Total int64
	// BeganAt is when it began, by the clock of whoever began it.
	BeganAt time.Time
	// Done says that it is complete, and the stream not yet read past Start.
	Done bool
}

// Reaches is the time back to which the copy goes. What it copies whole may be of
// any time: then it is the beginning of time, 1970.
func (c Copy) Reaches() time.Time {
	if c.Since.IsZero() {
		return time.Unix(0, 0).UTC()
	}
	return c.Since
}
