package delivery

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/session"
)

// Versions keeps up to which version each aggregate's events were dealt with.
type Versions interface {
	// LastVersion is an aggregate's version; unknown before its first event.
	LastVersion(ctx context.Context, aggregate string) (contract.Version, error)
	// AdvanceVersion moves it up to a version. A lower one changes nothing.
	AdvanceVersion(ctx context.Context, aggregate string, version int64) error
	// ForgetVersion has whatever event comes next count as the first.
	ForgetVersion(ctx context.Context, aggregate string) error
}

// versions is what a hold knows of its aggregate's versions, between those that it has
// dealt with itself.
type versions struct {
	store     Versions // nil where missing versions are counted and passed over
	aggregate string
	// links is how far they follow each other; nil until it was looked up.
	links *links
	// chain is how far those of this hold do.
	chain chain
}

func (v *versions) on() bool { return v.store != nil }

// follow is what is missing before which item, if any is: those before it follow each
// other and what was dealt with before. What is missing is looked up again: a
// redrive may have applied it since the hold knew.
func (v *versions) follow(ctx context.Context, items []item) (n int, gap string, err error) {
	known := !v.on()
	if v.links != nil {
		n, gap = v.links.follow(items)
		known = gap == ""
	}
	if !known {
		if v.links, err = lookUp(ctx, v.store, v.aggregate); err == nil {
			n, gap = v.links.follow(items)
		}
	}
	return n, gap, err
}

// reach notes that items were dealt with. They are stored by now, and not settled yet:
// a version that is noted is never missing.
func (v *versions) reach(ctx context.Context, items []item) error {
	var last contract.Version
	for i := range items {
		if v.on() && items[i].counts() {
			last = later(last, items[i].event.Version)
		}
	}
	return v.links.reach(ctx, last)
}

// closedBy tells whether items have the version that comes next, or one that
// came before: then what follows may have been left parked by one that failed.
func (v *versions) closedBy(ctx context.Context, items []item) (closed bool, err error) {
	var now *links
	if v.on() {
		now, err = lookUp(ctx, v.store, v.aggregate)
	}
	for i := 0; now != nil && i < len(items); i++ {
		closed = closed || items[i].counts() && now.next(items[i].event.Version)
	}
	return closed, err
}

// missed is the first of items that has the version that comes next; nil where none has.
func (v *versions) missed(ctx context.Context, items []item) (*item, error) {
	now, err := lookUp(ctx, v.store, v.aggregate)
	if err != nil || !now.reached.Known {
		return nil, err
	}
	for i := range items {
		if it := &items[i]; it.counts() && it.event.Version.Known && it.event.Version.Number == now.reached.Number+1 {
			return it, nil
		}
	}
	return nil, nil
}

// counts tells whether an item's version is of those that follow each other.
func (it *item) counts() bool { return it.event != nil && it.fills == "" }

// forget ends the chain: from here on others may deal with events of the aggregate. How
// far the links go is looked up again where something is missing.
func (v *versions) forget() { v.chain = chain{} }

// links is how far an aggregate's versions follow each other.
type links struct {
	aggregate string
	versions  Versions
	reached   contract.Version
}

// lookUp reads how far they do.
func lookUp(ctx context.Context, versions Versions, aggregate string) (*links, error) {
	reached, err := versions.LastVersion(ctx, aggregate)
	if err != nil {
		return nil, fmt.Errorf("look up the version of aggregate %q: %w", aggregate, err)
	}
	return &links{aggregate, versions, reached}, nil
}

// missing says which versions are missing between one event and the next, or nothing.
func missing(last, next contract.Version) string {
	if !last.Known || !next.Known || next.Number <= last.Number+1 {
		return ""
	}
	return fmt.Sprintf("version gap: version %d follows %d", next.Number, last.Number)
}

// reach notes that events up to a version were dealt with.
func (l *links) reach(ctx context.Context, version contract.Version) error {
	if !version.Known || l.reached.Known && version.Number <= l.reached.Number {
		return nil
	}
	if err := l.versions.AdvanceVersion(ctx, l.aggregate, version.Number); err != nil {
		return fmt.Errorf("note the version of aggregate %q: %w", l.aggregate, err)
	}
	l.reached = version
	return nil
}

// follow is what is missing before which item, if any is.
func (l *links) follow(items []item) (n int, gap string) {
	last := l.reached
	for i := 0; i < len(items) && gap == ""; i++ {
		if items[i].counts() {
			n, gap, last = i, missing(last, items[i].event.Version), later(last, items[i].event.Version)
		}
	}
	return n, gap
}

// next tells whether a version comes next, or came before.
func (l *links) next(version contract.Version) bool {
	return version.Known && l.reached.Known && version.Number <= l.reached.Number+1
}

func later(a, b contract.Version) contract.Version {
	if b.Known && (!a.Known || b.Number > a.Number) {
		return b
	}
	return a
}

// byVersion returns messages in the order of their versions, and the place each
// had; nil where they are in order already, or not all of them have one.
func byVersion(messages []session.Message) (ordered []session.Message, places []int) {
	versions, known := make([]int64, len(messages)), true
	for i := range messages {
		version := contract.MessageVersion(messages[i].Message)
		versions[i], known = version.Number, known && version.Known
	}
	if !known || slices.IsSorted(versions) {
		return messages, nil
	}
	places = make([]int, len(messages))
	for i := range places {
		places[i] = i
	}
	slices.SortStableFunc(places, func(a, b int) int { return cmp.Compare(versions[a], versions[b]) })
	ordered = make([]session.Message, len(messages))
	for i, place := range places {
		ordered[i] = messages[place]
	}
	return ordered, places
}

// inPlace puts verdicts over ordered messages in the order in which those came:
// as many as there are from the first on.
func inPlace(verdicts []session.Verdict, places []int) []session.Verdict {
	if places == nil {
		return verdicts
	}
	came, done := make([]session.Verdict, len(places)), make([]bool, len(places)+1)
	for i := range verdicts {
		came[places[i]], done[places[i]] = verdicts[i], true
	}
	return came[:slices.Index(done, false)]
}
