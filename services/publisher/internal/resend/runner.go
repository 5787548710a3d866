package resend

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"changerelay/services/publisher/internal/backoff"
	"changerelay/services/publisher/internal/checkpoint"
	"changerelay/services/publisher/internal/relay"
)

const (
	// lookInterval is the time between looks for a resend.
	lookInterval = time.Second
	// stateTimeout bounds one request to the state database, and sourceTimeout one for
	// the source's time, or its collection.
	stateTimeout, sourceTimeout = 5 * time.Second, 5 * time.Second
	// looksUnsaid is the look at which a resend says that it waits for the stream: an idle
	// one tells within the first how far it is.
	looksUnsaid = 2
	// soon is how long a stream that has changes is given to hand on what a chunk shows,
	// before the source is asked whether there is anything.
	soon = 20 * time.Millisecond
)

// Reader reads the documents of a resend: see backfill.Source.
type Reader interface {
	// From has the next chunk be read at that time or later.
	From(start checkpoint.ClusterTime)
	// Read returns the next chunk, or the error that Deps.Ended knows, or why it cannot be
	// read, which is asked again.
	Read(ctx context.Context) (relay.Batch, error)
	// AsOf is a time behind all that the last chunk shows.
	AsOf() checkpoint.ClusterTime
	// Open is how many of the last chunk's last documents are of an aggregate of which
	// more may be left; then the next chunk begins with that.
	Open() int
}

// Deps are what a runner works with.
type Deps struct {
	Store Store
	// Open returns what reads the documents behind the place of a part.
	Open func(r *Record, behind []byte) (Reader, error)
	// Ended tells the error of a reader that has no more documents.
	Ended func(err error) bool
	// Moved returns how the collection is another one than it was when the resend
	// began, or that it is gone; empty where neither is known.
	Moved func(ctx context.Context, r *Record) (string, error)
	// Removals tells that the stream has the removals of documents: those that a resend does
	// not find any more are not missing.
	Removals bool
	// Quiet reports whether the stream has nothing behind a token that was committed
	// before a time.
	Quiet func(ctx context.Context, token []byte, before checkpoint.ClusterTime) (bool, error)
	// Now is the source's time: what is committed already is before it.
	Now func(ctx context.Context) (checkpoint.ClusterTime, error)
	Log zerolog.Logger
}

// Runner carries out the resends of a stream, or of one partition of it, in one
// term.
type Runner struct {
	deps   Deps
	beside *Beside
	part   int
	term   int64

	// Owned by the loop: what reads, for which resend, and behind what.
	reader Reader
	of     string
	behind string
	paced  time.Time // when the next chunk may be read
}

// NewRunner returns the runner of a partition in a term.
func NewRunner(beside *Beside, part int, term int64, deps Deps) *Runner {
	return &Runner{deps: deps, beside: beside, part: part, term: term}
}

// Run carries out what is asked for until ctx ends. No trouble of a resend ends it:
// the stream has to go on.
func (r *Runner) Run(ctx context.Context) {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { r.beside.Run(ctx); return nil })
	group.Go(func() error { r.loop(ctx); return nil })
	_ = group.Wait() // neither returns an error
}

func (r *Runner) loop(ctx context.Context) {
	retry := backoff.Backoff{Initial: lookInterval, Max: 30 * time.Second}
	for ctx.Err() == nil {
		err := r.step(ctx)
		pause := time.Duration(0)
		switch {
		case err == nil:
			retry.Reset()
		case errors.Is(err, ErrNone):
			r.reader = nil
			retry.Reset()
			pause = lookInterval
		case ctx.Err() != nil:
			return
		default:
			pause = retry.Next()
			r.deps.Log.Warn().Err(err).Dur("pause", pause).Msg("resend waits")
		}
		if pause > 0 && !wait(ctx, pause) {
			return
		}
	}
}

// step sends the next chunk of the resend under way, and saves that.
func (r *Runner) step(ctx context.Context) error {
	record, err := r.take(ctx)
	if err != nil {
		return err
	}
	part := record.Parts[r.part]
	moved, err := r.open(ctx, &record, part.Place)
	if err != nil {
		return r.stuck(ctx, &record, part, err)
	}
	part.Stuck = ""
	if moved != "" {
		return r.end(ctx, &record, part, moved)
	}
	if !wait(ctx, time.Until(r.paced)) {
		return context.Cause(ctx)
	}
	began := time.Now()
	changes, err := r.read(ctx, &record)
	defer r.beside.forget() // unless the chunk is handed on
	ended := r.deps.Ended(err)
	switch {
	case errors.Is(err, ErrNone):
		return err
	case err != nil && !ended:
		return r.stuck(ctx, &record, part, fmt.Errorf("read a chunk of resend %s: %w", record.ID, err))
	case record.Rate > 0:
		r.paced = began.Add(time.Duration(len(changes)) * time.Second / time.Duration(record.Rate))
	}
	if err = r.use(ctx, &record, part, changes, ended); err != nil {
		r.reader = nil // it may be ahead of what is saved
	}
	return err
}

// use sends a chunk that was read, or keeps that there is none, and saves that.
func (r *Runner) use(ctx context.Context, record *Record, part Part, changes []relay.Change, ended bool) error {
	moved, err := r.moved(ctx, record)
	if err != nil {
		return err
	}
	if ended || moved != "" {
		return r.end(ctx, record, part, cmp.Or(moved, r.short(record, &part)))
	}
	if err := r.await(ctx, record, part); err != nil {
		return err
	}
	part, err = r.send(ctx, record, part, changes)
	if errors.Is(err, errOverrun) {
		part.Overrun, part.Awaits = part.Overrun+1, checkpoint.ClusterTime{}
		return errors.Join(err, r.save(ctx, record, part))
	}
	if err != nil {
		return err
	}
	return r.save(ctx, record, part)
}

// await waits until the stream has handed on all that a chunk shows: nothing may
// overtake what is still to come of its aggregate. It keeps what it waits for where it
// takes longer, and returns an error when the resend is not to go on meanwhile.
func (r *Runner) await(ctx context.Context, record *Record, part Part) error {
	asOf := r.reader.AsOf()
	ticks := time.NewTicker(lookInterval)
	defer ticks.Stop()
	ask := time.NewTimer(soon)
	defer ask.Stop()
	for looks := 0; !r.beside.has(asOf); {
		select {
		case <-r.beside.moved:
			continue
		case <-ask.C:
			r.ask(ctx, asOf)
			continue
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ticks.C:
		}
		if err := r.goesOn(ctx, record); err != nil {
			return err
		}
		if looks++; looks != looksUnsaid {
			continue
		}
		r.deps.Log.Info().Str("resend", record.ID).Time("until", asOf.Time()).Msg("resend waits for the stream")
		part.Awaits = asOf
		if err := r.save(ctx, record, part); err != nil {
			return err
		}
	}
	return nil
}

// ask asks the source whether a stream that says nothing has handed on all that a chunk
// shows. An answer that fails is none: the stream says it by itself.
func (r *Runner) ask(ctx context.Context, asOf checkpoint.ClusterTime) {
	at := r.beside.place()
	if at == nil {
		return
	}
	asking, cancel := context.WithTimeout(ctx, lookInterval)
	defer cancel()
	quiet, err := r.deps.Quiet(asking, at, asOf)
	if err != nil {
		r.deps.Log.Debug().Err(err).Msg("whether the stream is quiet is not known")
	}
	if quiet {
		r.beside.quiet(asOf)
	}
}

func (r *Runner) take(ctx context.Context) (Record, error) {
	ctx, cancel := context.WithTimeout(ctx, stateTimeout)
	defer cancel()
	return r.deps.Store.Take(ctx, r.part, r.term)
}

// goesOn returns an error that is ErrNone where the resend is not to go on.
func (r *Runner) goesOn(ctx context.Context, record *Record) error {
	taken, err := r.take(ctx)
	if err == nil && taken.ID != record.ID {
		err = fmt.Errorf("resend %s: %w", record.ID, ErrNone)
	}
	return err
}

// send hands a chunk to the relay, and waits until all of it is finished. It returns
// the progress with it.
func (r *Runner) send(ctx context.Context, record *Record, part Part, changes []relay.Change) (Part, error) {
	place := changes[len(changes)-1].Token
	c := newChunk(record.of(), changes, r.reader.Open())
	select {
	case r.beside.chunks <- c:
	case <-ctx.Done():
		return part, context.Cause(ctx)
	}
	select {
	case <-c.done:
	case <-ctx.Done():
		return part, context.Cause(ctx)
	}
	part, err := c.added(part)
	if err != nil {
		return part, err
	}
	part.Place, part.Read, part.Awaits, part.Overrun = place, part.Read+int64(len(changes)), checkpoint.ClusterTime{}, 0
	return part, nil
}

// short says what is missing of a part that has come to the end of what there is to read.
// Fewer documents of a collection that is known to be the same, without a filter that they
// may not match any more, were removed, which the stream tells.
func (r *Runner) short(record *Record, part *Part) string {
	if r.deps.Removals && record.Collection != "" && !record.Selection.Filtered() {
		return ""
	}
	return part.short(record.Total)
}

// end keeps that there is no more to read for a part: all of it was, unless it is
// short of something.
func (r *Runner) end(ctx context.Context, record *Record, part Part, short string) error {
	part.Done, part.Short, part.Awaits = true, short, checkpoint.ClusterTime{}
	if err := r.save(ctx, record, part); err != nil {
		return err
	}
	if short != "" {
		r.deps.Log.Error().Str("resend", record.ID).Int64("sent", part.Sent).Int64("failed", part.Failed).Str("why", short).Msg("resend is incomplete")
		return nil
	}
	r.deps.Log.Info().Str("resend", record.ID).Int64("sent", part.Sent).Int64("failed", part.Failed).Msg("resend is done")
	return nil
}

// stuck keeps why the next chunk of a part cannot be read, and returns it.
func (r *Runner) stuck(ctx context.Context, record *Record, part Part, why error) error {
	part.Stuck = why.Error()
	return errors.Join(why, r.save(ctx, record, part))
}

// save keeps the progress of a part, under this term.
func (r *Runner) save(ctx context.Context, record *Record, part Part) error {
	part.Term, part.UpdatedAt = r.term, time.Now().UTC()
	saving, cancel := context.WithTimeout(ctx, stateTimeout)
	defer cancel()
	if err := r.deps.Store.Save(saving, record.ID, r.part, part); err != nil {
		return err
	}
	r.behind = string(part.Place)
	return nil
}

// wait waits for d and returns true, or false when ctx ends first.
func wait(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
