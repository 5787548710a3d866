package verify

import (
	"bytes"
	"fmt"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// mostFields bounds the fields that a verdict names.
const mostFields = 10

// judge compares a document with what was recomputed of it.
func (l *look) judge(a *account, s *state, t Target, made Document) Verdict {
	v := Verdict{
		Projection: t.Name, Collection: t.Collection, Aggregate: a.aggregate, Sequence: s.read.Sequence,
		target: t, read: s.read, made: made, versioned: a.versioned,
		lacks: a.discarded > 0 && !s.whole,
	}
	v.Partly, v.stopped, v.ahead = a.partly(s), a.haltedAt != "", s.ahead
	if l.config.Kept && a.since(s, &made) {
		v.Difference = movedOn
		return v
	}
	if l.manner == forward {
		v.Difference = a.replaced(s, &made)
		return v
	}
	v.Difference, v.Reason = a.differs(s, &made)
	if v.Difference == Equal && s.read.shown() {
		if v.Fields = differing(s.read.Raw, made.Raw); len(v.Fields) > 0 {
			v.Difference = Altered
			if v.Reason = v.Partly; v.Reason == "" && s.read.First != made.First && s.read.First != "" {
				v.Reason = fmt.Sprintf("it began at sequence %s, and the aggregate at %s", s.read.First, a.first)
			}
		}
	}
	if v.Difference == Equal && (s.behind || s.ahead != "") {
		v.Difference, v.Reason = Behind, s.ahead
	}
	if v.Difference == Behind && a.haltedAt != "" {
		v.Reason = "the aggregate is halted: see projector parked list"
	}
	if v.Difference == Equal {
		v.Partly = ""
	}
	if skipped := l.skipped[Skipper{t.Projection.Name(), a.aggregate}]; v.Difference != Equal && len(skipped) > 0 {
		v.Reason = lacking(skipped, v.Reason)
	}
	return v
}

// mostNamed is how many events a reason names.
const mostNamed = 5

// lacking says that a document lacks events because they were skipped, before what else
// is known.
func lacking(events []string, more string) string {
	reason := fmt.Sprintf("%d events were skipped, %q among them: see projector skipped list", len(events), events[:min(len(events), mostNamed)])
	if more != "" {
		reason += "; " + more
	}
	return reason
}

// replaced tells how a document is not what is to take its place.
func (a *account) replaced(s *state, made *Document) Difference {
	switch {
	case s.failed != "":
		return Failed
	case a.beyond(s):
		return Altered
	case !s.read.shown() && !made.shown():
		return Equal
	case s.read.shown() && made.shown() && s.read.Sequence == made.Sequence && len(differing(s.read.Raw, made.Raw)) == 0:
		return Equal
	}
	return Altered
}

// partly says how what the source makes may not be all of a document. Versions begin
// with 0 or 1.
func (a *account) partly(s *state) string {
	switch source, is := s.read.Raw.Lookup("_relay", "source").StringValueOK(); {
	case a.first == "":
		return nothing
	case is && source != a.source:
		return fmt.Sprintf("the document is of source %s, and these events are of %s", source, a.source)
	case a.begins.Known && a.begins.Number > 1:
		return fmt.Sprintf("the source begins the aggregate with version %d", a.begins.Number)
	case a.lacks > 0:
		return fmt.Sprintf("the source has no version %d of the aggregate, and later ones", a.lacks)
	case a.discarded > 0 && !s.whole:
		return fmt.Sprintf("%d events of the aggregate were discarded, which are left out", a.discarded)
	}
	return ""
}

const nothing = "the source has nothing of the aggregate"

// beyond tells whether a document, or a tombstone, shows a position that the source does
// not have: what comes up to there would be taken for a repeat.
func (a *account) beyond(s *state) bool {
	return a.versioned && s.read.Raw != nil && a.last != "" && s.read.Sequence > a.last
}

// since tells whether a document may show what came since the source was kept.
func (a *account) since(s *state, made *Document) bool {
	if s.read.Raw == nil {
		return !a.versioned && made.shown() // it may be deleted since
	}
	return s.read.Sequence > a.last
}

// differs tells how a document differs without a look at its fields.
func (a *account) differs(s *state, made *Document) (Difference, string) {
	read, atPosition := &s.read, a.versioned && s.read.Raw != nil
	switch {
	case s.failed != "":
		return Failed, s.failed
	case read.shown() && !made.shown() && a.last == "":
		return Extra, nothing
	case a.beyond(s):
		return Altered, fmt.Sprintf("it shows sequence %s, and the source comes to %s", read.Sequence, a.last)
	case read.shown() && !made.shown():
		return Extra, "the events up to its position make no document"
	case !read.shown() && made.shown():
		return Lost, ""
	case atPosition && read.shown() && read.Sequence != made.Sequence:
		return Altered, fmt.Sprintf("it shows sequence %s, and the last event that it follows up to there has %s", read.Sequence, made.Sequence)
	}
	return Equal, ""
}

// differing are the names of the first fields that are not the same in two documents,
// but for their keys and positions. The order of fields is not looked at.
func differing(read, made bson.Raw) (names []string) {
	for _, name := range different(read, made) {
		if name != "_id" && name != "_relay" && len(names) < mostFields {
			names = append(names, name)
		}
	}
	return names
}

// different are the names of all fields that are not the same in two documents.
func different(a, b bson.Raw) (names []string) {
	of := fields(b)
	for name, value := range fields(a) {
		if other, there := of[name]; !there || !same(value, other) {
			names = append(names, name)
		}
		delete(of, name)
	}
	for name := range of {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// fields are a document's, by their names.
func fields(document bson.Raw) map[string]bson.RawValue {
	elements, err := document.Elements()
	if err != nil {
		return nil
	}
	of := make(map[string]bson.RawValue, len(elements))
	for _, e := range elements {
		of[e.Key()] = e.Value()
	}
	return of
}

// same tells whether two values are the same, in the same type.
func same(a, b bson.RawValue) bool {
	switch {
	case a.Type != b.Type:
		return false
	case bytes.Equal(a.Value, b.Value):
		return true
	case a.Type == bson.TypeEmbeddedDocument:
		return len(different(bson.Raw(a.Value), bson.Raw(b.Value))) == 0
	case a.Type == bson.TypeArray:
		return sameElements(bson.Raw(a.Value), bson.Raw(b.Value))
	}
	return false
}

// sameElements tells whether two arrays have the same elements in the same order.
func sameElements(a, b bson.Raw) bool {
	as, errA := a.Values()
	bs, errB := b.Values()
	return errA == nil && errB == nil && slices.EqualFunc(as, bs, same)
}
