package readmodeltest

import (
	"context"
	"slices"
	"time"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/delivery"
	"changerelay/services/projector/internal/projection"
)

// skip is the key of a record.
type skip struct{ projection, event string }

// Skip is a record of an event that a projection has skipped.
type Skip struct {
	projection.Skipped
	event     contract.Event
	at        time.Time
	uncounted bool
}

// record records skipped events, each once: one that is there is a repeat.
func (f *Fake) record(writes []projection.Write, outcomes []delivery.Outcome) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range writes {
		w := &writes[i]
		if w.Skipped == nil {
			continue
		}
		key := skip{w.Projection, w.Event.ID}
		if _, there := f.skips[key]; there {
			outcomes[i] = delivery.Recorded
			continue
		}
		if d := f.documents[w.Collection][w.ID]; w.Skipped.Action == projection.DeadLetter && d != nil && d.sequence >= w.Event.Sequence {
			outcomes[i] = delivery.Repeated
			continue
		}
		if f.skips == nil {
			f.skips = map[skip]Skip{}
		}
		f.skips[key], outcomes[i] = Skip{Skipped: *w.Skipped, event: *w.Event, at: time.Now()}, delivery.Applied
	}
}

// Skips are the records of an event's skips, by projection.
func (f *Fake) Skips(event string) map[string]Skip {
	f.mu.Lock()
	defer f.mu.Unlock()
	of := map[string]Skip{}
	for key, s := range f.skips {
		if key.event == event {
			of[key.projection] = s
		}
	}
	return of
}

// AcceptSkips has the skipped events that there are count no more.
func (f *Fake) AcceptSkips(context.Context) (n int64, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for key, s := range f.skips {
		if !s.uncounted {
			s.uncounted = true
			f.skips[key] = s
			n++
		}
	}
	return n, nil
}

// LastSkipped implements delivery.Records.
func (f *Fake) LastSkipped(_ context.Context, aggregate string) (last contract.Sequence, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.skips {
		if s.event.AggregateID == aggregate {
			last = max(last, s.event.Sequence)
		}
	}
	return last, nil
}

// SkippedBy implements delivery.Records.
func (f *Fake) SkippedBy(_ context.Context, e *contract.Event) (projections []string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for key := range f.skips {
		if key.event == e.ID {
			projections = append(projections, key.projection)
		}
	}
	slices.Sort(projections)
	return projections, nil
}

// mend removes the records of events that are applied after all.
func (f *Fake) mend(writes []projection.Write, outcomes []delivery.Outcome) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range writes {
		if w := &writes[i]; w.Mends && outcomes[i] == delivery.Applied {
			delete(f.skips, skip{w.Projection, w.Event.ID})
		}
	}
}

// Reapplied implements delivery.ParkedMessages.
func (f *Fake) Reapplied(_ context.Context, e *contract.Event, projections []string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for key, s := range f.skips {
		if key.event == e.ID && s.Action == projection.DeadLetter && slices.Contains(projections, key.projection) {
			delete(f.skips, key)
		}
	}
	return nil
}

// Stop implements delivery.HaltTimes.
func (f *Fake) Stop(_ context.Context, s delivery.Stop) error {
	if err := f.fail("stop"); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stop == nil {
		f.stop = &s
	}
	return nil
}

// Stopped implements delivery.HaltTimes.
func (f *Fake) Stopped(context.Context) (*delivery.Stop, error) {
	if err := f.fail("stopped"); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.stop, nil
}

// Resume ends a stop.
func (f *Fake) Resume(context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stop = nil
	return nil
}
