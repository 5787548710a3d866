package relay

import (
	"context"
	"fmt"
	"sync"
	"time"

	"changerelay/pkg/contract"
	"changerelay/services/publisher/internal/backoff"
	"changerelay/services/publisher/internal/patience"
)

// changeOverhead is what one change in flight costs beside its bytes: the
// message's properties and our own bookkeeping.
const changeOverhead = 2 << 10

// takeIn reads changes and puts them in their lanes. It returns why the source
// gave no more, when everything that it gave is in the lanes; or nil when ctx
// ended, and what stands in the way of a change.
func (r *Relay) takeIn(ctx context.Context) (ended, err error) {
	// One batch is read while the one before is mapped.
	batches := make(chan readBatch, 1)
	reading, endReading := context.WithCancel(ctx)
	var reader sync.WaitGroup
	reader.Go(func() {
		defer close(batches)
		ended = r.readInto(reading, batches)
	})
	for batch := range batches {
		if err = r.takeBatch(ctx, batch); err != nil {
			break
		}
	}
	endReading()
	reader.Wait()
	switch {
	case ctx.Err() != nil:
		return nil, nil
	case err != nil:
		return nil, err
	default:
		return ended, nil
	}
}

// readInto reads batches until the source gives no more, and returns why. Its
// end takes nothing back of what it has read.
func (r *Relay) readInto(ctx context.Context, batches chan<- readBatch) error {
	for {
		batch, err := r.deps.Source.Read(ctx)
		if err != nil {
			return fmt.Errorf("read the stream: %w", err)
		}
		r.given += uint64(len(batch.Changes))
		select {
		case batches <- readBatch{batch, time.Now()}:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (r *Relay) takeBatch(ctx context.Context, batch readBatch) error {
	if len(batch.Changes) == 0 && batch.Idle.Token != nil {
		r.watermark.idleAt(batch.Idle)
		return nil
	}
	for _, change := range batch.Changes {
		if change.Resent == nil {
			r.deps.Counters.read.Add(1)
		}
		if err := r.take(ctx, change, batch.at); err != nil {
			return err
		}
	}
	return nil
}

// take maps one change and puts it in its lane.
func (r *Relay) take(ctx context.Context, change Change, readAt time.Time) error {
	event, carries, err := r.deps.Mapper.Map(change)
	if err == nil && !carries {
		number, err := r.begin(ctx, change, 0)
		if err != nil {
			return err
		}
		r.pass(number, change)
		return nil
	}
	var message contract.Message
	if err == nil {
		event.Term = r.config.Term
		if change.Resent != nil {
			event.Resend = change.Resent.Resend
		}
		message, err = contract.Encode(event, contract.EncodeOptions{CompressAbove: r.config.CompressAbove})
	}
	if err != nil {
		return r.takeUnmappable(ctx, change, err)
	}
	it := &item{change: change, message: message}
	it.trace(r.deps.Tracer, event, readAt)
	if it.number, err = r.begin(ctx, change, len(message.Body)); err != nil {
		return err
	}
	r.lanes.add(event.AggregateID, it)
	return nil
}

func (r *Relay) takeUnmappable(ctx context.Context, change Change, reason error) error {
	number, err := r.begin(ctx, change, 0)
	if err != nil {
		return err
	}
	if change.Resent != nil {
		r.failResent(number, change, "", reason.Error())
		return nil
	}
	if err := r.park(ctx, Parked{Change: change, Reason: reason.Error(), Term: r.config.Term}); err != nil {
		return err
	}
	r.watermark.finish(number)
	return nil
}

func (r *Relay) begin(ctx context.Context, change Change, body int) (uint64, error) {
	return r.watermark.begin(ctx, change.Point(), int64(len(change.Raw)+body+changeOverhead))
}

// park keeps a change that cannot be sent, or refuses to go on, as configured. One
// that is kept already, and is read again, takes no room. It returns only when the change is
// kept, or ctx ends.
func (r *Relay) park(ctx context.Context, parked Parked) error {
	if r.config.StopOnUnmappable {
		return &UnsendableError{Position: parked.Change.Position, Reason: parked.Reason, Raw: parked.Change.Raw}
	}
	select {
	case r.parking <- struct{}{}:
		defer func() { <-r.parking }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	var waits, full bool
	err := r.insist(ctx, parked, r.config.ParkTimeout, func(ctx context.Context) (err error) {
		if waits, err = r.deps.Parker.Waits(ctx, parked.Change); err == nil && !waits {
			full, err = r.deps.Parker.Full(ctx)
		}
		return err
	})
	if err != nil {
		return err
	}
	if full {
		return &OverparkedError{Position: parked.Change.Position, Reason: parked.Reason}
	}
	bound := SendTimeout(r.config.ParkTimeout, len(parked.Change.Raw))
	if err := r.insist(ctx, parked, bound, func(ctx context.Context) error { return r.deps.Parker.Park(ctx, parked) }); err != nil {
		return err
	}
	if !waits {
		r.deps.Counters.parked.Add(1)
	}
	r.log.Warn().Str("reason", parked.Reason).Str("position", string(parked.Change.Position)).
		Str("aggregate_id", parked.AggregateID).Msg("change parked")
	return nil
}

// longestPark is how long an attempt to park a change may take at most.
const longestPark = time.Hour

// insist tries to keep a change until that is done, or ctx ends. An attempt may take as
// long as bound. After each one that takes longer the next, which begins anew, has twice
// the time: over a link that is narrower than expected, no other would ever end.
func (r *Relay) insist(ctx context.Context, parked Parked, bound time.Duration, try func(context.Context) error) error {
	retry := backoff.Backoff{Initial: firstPause, Max: longestPause}
	attempts := patience.Patience{Least: bound, Most: longestPark}
	what := string(parked.Change.Position)
	defer r.saves.note(what, nil)
	for {
		began := time.Now()
		attempt, cancel := context.WithTimeout(ctx, attempts.Bound())
		err := try(attempt)
		cancel()
		if err == nil {
			return nil
		}
		attempts.Note(time.Since(began), err)
		r.saves.note(what, fmt.Errorf("park the change at position %s: %w", what, err))
		r.log.Warn().Err(err).Str("position", string(parked.Change.Position)).Msg("change not parked, trying again")
		if err := retry.Wait(ctx); err != nil {
			return err
		}
	}
}
