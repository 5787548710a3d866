package rebuild

import (
	"context"
	"fmt"
	"slices"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/delivery"
	"changerelay/services/projector/internal/projection"
)

// Positions tells how far documents are.
type Positions interface {
	// Position is that which guards a write, as a majority has it; zero where there is
	// none yet.
	Position(ctx context.Context, w *projection.Write) (delivery.Position, error)
}

// filling implements delivery.Filling for the versions that are filled.
type filling struct {
	positions Positions
	next      []filled
}

// filled is a version that is filled, beside the current one.
type filled struct {
	address       string
	next, current projection.Version
	keyed         bool
	following     bool
}

// Filled chooses for the versions that are being filled, by a group's records; nil where
// there are none.
func Filled(group string, records Records, declared projection.Projections, positions Positions) delivery.Filling {
	f := &filling{positions: positions}
	for _, p := range declared {
		v, is := projection.VersionOf(p)
		if !is {
			continue
		}
		r := records.Of(&v)
		if r.Next == 0 {
			continue
		}
		next := v.Other(r.Next)
		f.next = append(f.next, filled{Address(group, next), *next, *v.Other(r.Current), projection.Keyed(p), r.State == Following})
	}
	if len(f.next) == 0 {
		return nil
	}
	return f
}

// Filled implements delivery.Filling.
func (f *filling) Filled(r contract.Resend) string {
	if of := f.of(r); of != nil {
		return of.next.Account()
	}
	return ""
}

// Has implements delivery.Filling.
func (f *filling) Has(name string) bool {
	return slices.ContainsFunc(f.next, func(n filled) bool { return n.next.Account() == name })
}

func (f *filling) of(r contract.Resend) *filled {
	for i := range f.next {
		if r.ID != "" && f.next[i].address == r.Group {
			return &f.next[i]
		}
	}
	return nil
}

// Begin implements delivery.Filling.
func (f *filling) Begin() delivery.Choice {
	return &choice{filling: f, reached: map[string]contract.Sequence{}}
}

// choice chooses for consecutive events of one aggregate.
type choice struct {
	filling *filling
	// reached is how far each version is with what was chosen, by its account.
	reached map[string]contract.Sequence
}

// Of implements delivery.Choice.
func (c *choice) Of(ctx context.Context, e *contract.Event, writes []projection.Write) ([]projection.Write, error) {
	only := c.filling.of(e.Resend)
	if only == nil {
		return c.live(ctx, e, writes)
	}
	reached, err := c.reach(ctx, only, &only.next, e)
	if err != nil {
		return nil, err
	}
	lacks, err := c.lacks(ctx, only, reached, e)
	if err != nil {
		return nil, err
	}
	c.reached[only.next.Account()] = max(reached, e.Sequence)
	return lacking(of(writes, &only.next, true), &only.next, lacks), nil
}

// lacks is the sequence of the event before a resent one where the version that it fills, which
// has come to reached, should have had that and has not; "" for none. Where an aggregate begins
// behind its first event, the source may have no more of it: then the current version begins
// there as well.
func (c *choice) lacks(ctx context.Context, f *filled, reached contract.Sequence, e *contract.Event) (contract.Sequence, error) {
	last := before(e)
	switch {
	case reached >= last:
		return "", nil
	case reached != "":
		return last, nil
	case e.Version.Number <= 1:
		return "", nil
	}
	begun, err := begun(ctx, c.filling.positions, &f.current, f.keyed, e)
	if err != nil || begun != "" && begun <= e.Sequence {
		return "", err // where it begins before that, the comparison of both shows it
	}
	return last, nil
}

// lacking are writes of which those of a version lack an event, where lacks is its sequence.
func lacking(writes []projection.Write, v *projection.Version, lacks contract.Sequence) []projection.Write {
	if lacks == "" {
		return writes
	}
	writes = slices.Clone(writes)
	for i := range writes {
		if writes[i].Projection == v.Account() {
			writes[i].Lacks = lacks
		}
	}
	return writes
}

// live leaves out what versions do not take yet.
func (c *choice) live(ctx context.Context, e *contract.Event, writes []projection.Write) ([]projection.Write, error) {
	for i := range c.filling.next {
		f := &c.filling.next[i]
		takes, lacks, err := c.takes(ctx, f, e)
		if err != nil {
			return nil, err
		}
		if !takes {
			writes = of(writes, &f.next, false)
			continue
		}
		writes = lacking(writes, &f.next, lacks)
	}
	return writes, nil
}

// takes tells whether a version takes a live event: see the package. lacks is the sequence of
// the event before where that is lost: the version was filled without it, and the current one,
// which shows what there was, has lost the aggregate.
func (c *choice) takes(ctx context.Context, f *filled, e *contract.Event) (takes bool, lacks contract.Sequence, err error) {
	reached, err := c.reach(ctx, f, &f.next, e)
	if err != nil {
		return false, "", err
	}
	current, err := c.reach(ctx, f, &f.current, e)
	if err != nil {
		return false, "", err
	}
	takes = reached != "" && reached >= before(e) || reached == "" && begins(e, current) || f.following && reached >= current
	c.reached[f.current.Account()] = max(current, e.Sequence)
	if takes {
		c.reached[f.next.Account()] = max(reached, e.Sequence)
	}
	if last := before(e); takes && current == "" && reached != "" && reached < last {
		lacks = last
	}
	return takes, lacks, nil
}

// before is the sequence of the event before another, "" where that is not known.
func before(e *contract.Event) contract.Sequence {
	if !e.Version.Known {
		return ""
	}
	return contract.SequenceOf(contract.VersionOf(e.Version.Number-1), "")
}

// begins tells whether a live event is the first of its aggregate, of which the current
// version has come to a sequence. Versions begin with 0 or 1.
func begins(e *contract.Event, current contract.Sequence) bool {
	switch {
	case !e.Version.Known:
		return e.Operation == contract.Insert
	case e.Version.Number == 1:
		return current == ""
	}
	return e.Version.Number <= 0
}

// reach is how far a version is with the aggregate of an event, and with what was chosen since.
func (c *choice) reach(ctx context.Context, f *filled, v *projection.Version, e *contract.Event) (contract.Sequence, error) {
	if reached, known := c.reached[v.Account()]; known {
		return reached, nil
	}
	reached, err := reach(ctx, c.filling.positions, v, f.keyed, e)
	if err == nil {
		c.reached[v.Account()] = reached
	}
	return reached, err
}

// reach is how far a version is with the aggregate of an event, by its document and by what is noted
// of events that change none.
func reach(ctx context.Context, positions Positions, v *projection.Version, keyed bool, e *contract.Event) (reached contract.Sequence, err error) {
	err = each(ctx, positions, v, keyed, e, func(at delivery.Position) { reached = max(reached, at.Sequence) })
	return reached, err
}

// begun is where a version begins the aggregate of an event; "" where that is not known, or it has
// nothing of it.
func begun(ctx context.Context, positions Positions, v *projection.Version, keyed bool, e *contract.Event) (first contract.Sequence, err error) {
	known := true
	err = each(ctx, positions, v, keyed, e, func(at delivery.Position) {
		switch {
		case at.Sequence == "":
		case at.First == "":
			known = false
		case first == "" || at.First < first:
			first = at.First
		}
	})
	if !known {
		first = ""
	}
	return first, err
}

// each calls each for the positions of a version that show how far it is with the aggregate of
// an event.
func each(ctx context.Context, positions Positions, v *projection.Version, keyed bool, e *contract.Event, each func(delivery.Position)) error {
	places := []projection.Write{{Projection: v.Account(), Keyed: true, Event: e}}
	if !keyed {
		places = append(places, projection.Write{Collection: v.Collection(), ID: e.AggregateID, Event: e})
	}
	for i := range places {
		at, err := positions.Position(ctx, &places[i])
		if err != nil {
			return fmt.Errorf("look up how far version %d of projection %q is: %w", v.Number, v.Projection, err)
		}
		each(at)
	}
	return nil
}

// Level tells whether the next version has what the current one has of an aggregate. The
// current version has something of it.
func Level(ctx context.Context, positions Positions, next, current *projection.Version, keyed bool, aggregate string) (bool, error) {
	e := &contract.Event{AggregateID: aggregate}
	has, err := reach(ctx, positions, next, keyed, e)
	if err != nil {
		return false, err
	}
	asked, err := reach(ctx, positions, current, keyed, e)
	return asked != "" && has >= asked, err
}

// of are the writes that are a version's, or those that are not.
func of(writes []projection.Write, v *projection.Version, its bool) []projection.Write {
	var left []projection.Write
	for i := range writes {
		if (writes[i].Projection == v.Account()) == its {
			left = append(left, writes[i])
		}
	}
	return left
}
