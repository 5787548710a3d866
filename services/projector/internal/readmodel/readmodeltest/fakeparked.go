package readmodeltest

import (
	"context"
	"slices"
	"strings"
	"sync"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/delivery"
	"changerelay/services/projector/internal/projection"
)

// Park implements delivery.Parking.
func (f *Fake) Park(_ context.Context, messages []delivery.Parked) error {
	for i := range messages {
		if err := f.fail("park"); err != nil {
			return err
		}
		if err := f.park(messages[i]); err != nil {
			return err
		}
	}
	return nil
}

func (f *Fake) park(p delivery.Parked) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	halt, halted := f.halts[p.Event.AggregateID]
	switch {
	case !halted:
		return delivery.ErrLifted
	case slices.ContainsFunc(f.discarded, func(e contract.Event) bool { return sameEvent(&e, &p.Event) }):
		return delivery.ErrDiscarded
	}
	at := slices.IndexFunc(f.parked, func(q delivery.Parked) bool { return sameEvent(&q.Event, &p.Event) })
	switch {
	case at < 0:
		f.parked = append(f.parked, p)
		f.kept[p.Event.AggregateID]++
		f.behind[p.Event.ID] = p.Event.Sequence < halt.Event.Sequence || p.Event.Sequence <= f.taken[p.Event.AggregateID]
	case f.parked[at].Message.Body == nil && f.parked[at].Message.Properties == nil:
		p.Failed = f.parked[at].Failed
		f.parked[at] = p
	}
	return nil
}

// Discard takes a parked message away by an operator's decision.
func (f *Fake) Discard(ctx context.Context, e *contract.Event) error {
	there, err := f.Unpark(ctx, e)
	if err != nil || !there {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.discarded = append(f.discarded, *e)
	return nil
}

// Discarded implements delivery.Parking.
func (f *Fake) Discarded(_ context.Context, e *contract.Event) (bool, error) {
	if err := f.fail("discarded"); err != nil {
		return false, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.ContainsFunc(f.discarded, func(d contract.Event) bool { return sameEvent(&d, e) }), nil
}

func sameEvent(a, b *contract.Event) bool {
	return a.AggregateID == b.AggregateID && a.Sequence == b.Sequence && a.ID == b.ID
}

// Parked returns an aggregate's parked sequences, in their order.
func (f *Fake) Parked(_ context.Context, aggregate string) ([]contract.Sequence, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var sequences []contract.Sequence
	for _, p := range f.parked {
		if p.Event.AggregateID == aggregate {
			sequences = append(sequences, p.Event.Sequence)
		}
	}
	slices.Sort(sequences)
	return sequences, nil
}

// fakePage is how many messages the fake has room for at once.
const fakePage = 2

// Next implements delivery.ParkedMessages.
func (f *Fake) Next(_ context.Context, aggregate string) (messages []delivery.ParkedMessage, done func(), err error) {
	if err := f.fail("next"); err != nil {
		return nil, nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	parked := slices.Clone(f.parked)
	slices.SortStableFunc(parked, func(a, b delivery.Parked) int {
		return strings.Compare(string(a.Event.Sequence), string(b.Event.Sequence))
	})
	for i := range parked {
		if parked[i].Event.AggregateID == aggregate && len(messages) < fakePage {
			messages = append(messages, delivery.ParkedMessage{Message: parked[i].Message.Message, FollowedBy: f.FollowedBy, Returned: parked[i].Returned, Behind: f.behind[parked[i].Event.ID]})
		}
	}
	f.open++
	f.mostOpen = max(f.mostOpen, f.open)
	return messages, sync.OnceFunc(func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.open--
	}), nil
}

// Pages are how many pages of parked messages nobody has given back yet, and how
// many there were at most.
func (f *Fake) Pages() (open, most int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.open, f.mostOpen
}

// Position implements delivery.ParkedMessages.
func (f *Fake) Position(_ context.Context, w *projection.Write) (delivery.Position, error) {
	if err := f.fail("position"); err != nil {
		return delivery.Position{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if w.Keyed {
		account := [2]string{w.Projection, w.Event.AggregateID}
		if e := f.positions[account]; e != nil {
			return delivery.Position{Sequence: e.Sequence, EventID: e.ID, First: f.firsts[account]}, nil
		}
		return delivery.Position{}, nil
	}
	if d := f.documents[w.Collection][w.ID]; d != nil {
		return delivery.Position{Sequence: d.sequence, EventID: d.eventID, First: d.first}, nil
	}
	return delivery.Position{}, nil
}

// Unpark implements delivery.ParkedMessages.
func (f *Fake) Unpark(_ context.Context, e *contract.Event) (bool, error) {
	if err := f.fail("unpark"); err != nil {
		return false, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	before := len(f.parked)
	f.parked = slices.DeleteFunc(f.parked, func(p delivery.Parked) bool { return sameEvent(&p.Event, e) })
	there := len(f.parked) < before
	if _, halted := f.halts[e.AggregateID]; there && halted {
		f.kept[e.AggregateID]--
		f.taken[e.AggregateID] = max(f.taken[e.AggregateID], e.Sequence)
	}
	return there, nil
}
