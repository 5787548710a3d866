package readmodeltest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"changerelay/services/projector/internal/delivery"
	"changerelay/services/projector/internal/projection"
)

// Halt implements delivery.Parking.
func (f *Fake) Halt(_ context.Context, h delivery.Halt) (delivery.HaltID, error) {
	if err := f.fail("halt"); err != nil {
		return "", err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, halted := f.halts[h.Event.AggregateID]; !halted {
		f.halted++
		f.halts[h.Event.AggregateID], f.haltIDs[h.Event.AggregateID] = h, delivery.HaltID(fmt.Sprint(f.halted))
		if !h.Uncounted {
			f.haltedAt[h.Event.AggregateID] = time.Now()
		}
		for i := range f.parked {
			if f.parked[i].Event.AggregateID == h.Event.AggregateID {
				f.kept[h.Event.AggregateID]++
				delete(f.behind, f.parked[i].Event.ID)
			}
		}
		if h.Deleted {
			f.kept[h.Event.AggregateID] = max(f.kept[h.Event.AggregateID], 1)
		}
		f.noted[h.Event.AggregateID] = h.Event
		f.mark(h.Event.AggregateID, h.Reason)
	}
	return f.haltIDs[h.Event.AggregateID], nil
}

// LatestHalts implements delivery.HaltTimes.
func (f *Fake) LatestHalts(_ context.Context, limit int) ([]time.Time, error) {
	if err := f.fail("latest halts"); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	times := slices.Collect(maps.Values(f.haltedAt))
	events := map[string]time.Time{} // one that several projections have skipped counts once
	for key, s := range f.skips {
		if !s.uncounted {
			events[key.event] = s.at
		}
	}
	times = slices.AppendSeq(times, maps.Values(events))
	slices.SortFunc(times, func(a, b time.Time) int { return b.Compare(a) })
	return times[:min(limit, len(times))], nil
}

// AcceptHalts has the halts that there are count no more.
func (f *Fake) AcceptHalts(context.Context) (int64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := int64(len(f.haltedAt))
	clear(f.haltedAt)
	return n, nil
}

// mark marks the aggregate's own documents; f.mu is held.
func (f *Fake) mark(aggregate, reason string) {
	for _, documents := range f.documents {
		if d := documents[aggregate]; d != nil && !d.foreign && !d.shared {
			d.mark = reason
		}
	}
}

// List implements delivery.HaltedAggregates.
func (f *Fake) List(_ context.Context, limit int) (map[string]delivery.HaltID, error) {
	if err := f.fail("list"); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	listed := map[string]delivery.HaltID{}
	for _, aggregate := range slices.Sorted(maps.Keys(f.haltIDs))[:min(limit, len(f.haltIDs))] {
		listed[aggregate] = f.haltIDs[aggregate]
	}
	return listed, nil
}

// Halted implements delivery.HaltedAggregates.
func (f *Fake) Halted(_ context.Context, aggregate string) (delivery.HaltID, error) {
	if err := f.fail("halted"); err != nil {
		return "", err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.haltIDs[aggregate], nil
}

// Lift implements delivery.ParkedMessages.
func (f *Fake) Lift(_ context.Context, aggregate string) (bool, error) {
	if err := f.fail("lift"); err != nil {
		return false, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if slices.ContainsFunc(f.parked, func(p delivery.Parked) bool { return p.Event.AggregateID == aggregate }) {
		return false, nil
	}
	delete(f.halts, aggregate)
	delete(f.kept, aggregate)
	delete(f.taken, aggregate)
	delete(f.haltIDs, aggregate)
	delete(f.haltedAt, aggregate)
	delete(f.noted, aggregate)
	f.mark(aggregate, "")
	return true, nil
}

// Mark implements delivery.ParkedMessages.
func (f *Fake) Mark(_ context.Context, aggregate string) (*projection.Halted, error) {
	if err := f.fail("mark"); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	h, halted := f.halts[aggregate]
	if !halted {
		return nil, nil
	}
	return &projection.Halted{Reason: h.Reason, EventID: h.Event.ID}, nil
}

// Marked returns the reason that a document is marked with; "" where it is not.
func (f *Fake) Marked(_ context.Context, collection string, id any) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if d := f.documents[collection][id]; d != nil {
		return d.mark, nil
	}
	return "", nil
}
