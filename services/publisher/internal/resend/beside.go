package resend

import (
	"context"
	"errors"
	"slices"
	"sync"

	"changerelay/pkg/contract"
	"changerelay/services/publisher/internal/checkpoint"
	"changerelay/services/publisher/internal/relay"
)

// mostKept bounds the changes that are kept while a chunk is read.
const mostKept = 20_000

// Beside is a stream with the chunks of a resend between its changes. It implements
// relay.Source. Run must run while it is read.
type Beside struct {
	stream relay.Source
	mapper relay.Mapper
	// mostBytes bounds the bytes of the changes that are kept while a chunk is read.
	mostBytes int

	asked   chan struct{} // holds one token while the stream is to be read
	answers chan answer   // has room for the one that was asked for
	chunks  chan *chunk
	moved   chan struct{} // holds one token when the stream has come further

	waiting bool // owned by Read: whether an answer is to come

	mu        sync.Mutex
	latest    relay.Point            // guarded by mu: the last point that was handed on, in this term or before
	last      checkpoint.ClusterTime // guarded by mu: of the last change that was handed on, or the checkpoint
	whole     checkpoint.ClusterTime // guarded by mu: all that was committed before it is handed on
	needed    checkpoint.ClusterTime // guarded by mu: what was committed before it need not be kept
	keeping   bool                   // guarded by mu
	kept      []relay.Change         // guarded by mu: handed on since keep
	keptBytes int                    // guarded by mu
	overrun   bool                   // guarded by mu: more were handed on than are kept
}

type answer struct {
	batch relay.Batch
	err   error
}

// NewBeside returns a stream, read from a position on, without a resend beside it yet. While
// a chunk is read, it keeps up to mostBytes bytes of the changes that pass.
func NewBeside(stream relay.Source, from contract.Position, mapper relay.Mapper, mostBytes int) *Beside {
	return &Beside{
		stream: stream, mapper: mapper, mostBytes: mostBytes, latest: relay.Point{Position: from}, last: timeOf(from),
		asked: make(chan struct{}, 1), answers: make(chan answer, 1), chunks: make(chan *chunk), moved: make(chan struct{}, 1),
	}
}

// timeOf is the time of a position; zero where it has none.
func timeOf(p contract.Position) checkpoint.ClusterTime {
	seconds, increment, err := p.ClusterTime()
	if err != nil {
		return checkpoint.ClusterTime{}
	}
	return checkpoint.ClusterTime{Seconds: seconds, Increment: increment}
}

// Run reads the stream whenever Read asks for it, until ctx ends.
func (b *Beside) Run(ctx context.Context) {
	for {
		select {
		case <-b.asked:
			batch, err := b.stream.Read(ctx)
			b.answers <- answer{batch, err}
		case <-ctx.Done():
			return
		}
	}
}

// Read implements relay.Source: what comes first, changes of the stream or a chunk.
func (b *Beside) Read(ctx context.Context) (relay.Batch, error) {
	for {
		if !b.waiting {
			b.asked <- struct{}{} // taken before the last answer came
			b.waiting = true
		}
		select {
		case a := <-b.answers:
			b.waiting = false
			if a.err == nil {
				b.handOn(a.batch)
			}
			return a.batch, a.err
		case c := <-b.chunks:
			if batch, whole := b.insert(c); whole {
				return batch, nil
			}
		case <-ctx.Done():
			return relay.Batch{}, context.Cause(ctx)
		}
	}
}

// handOn notes what the relay gets of the stream.
func (b *Beside) handOn(batch relay.Batch) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if n := len(batch.Changes); n > 0 {
		last := batch.Changes[n-1]
		b.latest = last.Point()
		b.last = timeOf(last.Position)
		b.come(b.last) // a transaction's changes are of one time, and may be of two batches
	} else if batch.Idle.Token != nil {
		b.latest = batch.Idle
		if at := timeOf(batch.Idle.Position); b.last.Before(at) {
			b.come(at.Next())
		}
	}
	if !b.keeping || b.overrun {
		return
	}
	for _, change := range batch.Changes {
		if b.isRead(change) {
			continue
		}
		b.kept = append(b.kept, change)
		b.keptBytes += len(change.Raw)
	}
	if len(b.kept) > mostKept || b.keptBytes > b.mostBytes {
		b.overrun, b.kept = true, nil
	}
}

// come notes that all that was committed before a time is handed on. mu must be held.
func (b *Beside) come(to checkpoint.ClusterTime) {
	if !b.whole.Before(to) {
		return
	}
	b.whole = to
	select {
	case b.moved <- struct{}{}:
	default:
	}
}

// has reports whether all that was committed before a time is handed on.
func (b *Beside) has(before checkpoint.ClusterTime) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return !b.whole.Before(before)
}

// place is where the stream is, as a token; nil while that is not known.
func (b *Beside) place() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.latest.Token
}

// quiet notes that nothing was committed before a time that is not handed on.
func (b *Beside) quiet(before checkpoint.ClusterTime) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.come(before)
}

// keep begins to keep the changes that are handed on, and returns a time behind all
// that were before.
func (b *Beside) keep() checkpoint.ClusterTime {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.keeping, b.overrun, b.kept, b.keptBytes, b.needed = true, false, nil, 0, checkpoint.ClusterTime{}
	at := timeOf(b.latest.Position)
	if at.IsZero() {
		return at // nothing was handed on
	}
	return at.Next()
}

// keepFrom has changes be kept no more that were committed before a time: the chunk
// that is read then has them, as far as they were selected. So a stream that is behind has
// few to be kept.
func (b *Beside) keepFrom(read checkpoint.ClusterTime) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.needed = read
	b.kept = slices.DeleteFunc(b.kept, b.isRead)
	b.keptBytes = 0
	for i := range b.kept {
		b.keptBytes += len(b.kept[i].Raw)
	}
}

// isRead tells whether a change is one of those that the chunk has. mu must be held.
func (b *Beside) isRead(change relay.Change) bool { return timeOf(change.Position).Before(b.needed) }

// forget keeps nothing more: no chunk comes of it.
func (b *Beside) forget() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.keeping, b.kept = false, nil
}

// insert returns what goes to the relay of a chunk: its documents, and behind them
// what was handed on of their aggregates while they were read. False where that is
// not known: then the chunk is to be read again.
func (b *Beside) insert(c *chunk) (relay.Batch, bool) {
	b.mu.Lock()
	kept, overrun, latest := b.kept, b.overrun, b.latest
	b.keeping, b.kept = false, nil
	b.mu.Unlock()
	if overrun {
		c.refuse()
		return relay.Batch{}, false
	}
	changes := slices.Concat(c.changes, b.since(c, kept))
	c.begin(len(changes))
	for i := range changes {
		changes[i].Resent = &relay.Resent{Resend: c.of, Behind: latest, Finished: c.finished}
	}
	return relay.Batch{Changes: changes}, true
}

// since are the kept changes that are events of aggregates of which all is in a chunk
// or before, and later than what the chunk has of theirs: an earlier one is in the chunk
// as well, or was not selected.
func (b *Beside) since(c *chunk, kept []relay.Change) []relay.Change {
	if len(kept) == 0 {
		return nil
	}
	in, last := map[string]bool{}, map[string]contract.Version{}
	for i, document := range c.changes {
		if event, carries := b.event(document); carries {
			in[event.AggregateID] = i < len(c.changes)-c.open
			last[event.AggregateID] = event.Version
		}
	}
	var some []relay.Change
	for _, change := range kept {
		event, carries := b.event(change)
		if !carries || !in[event.AggregateID] {
			continue
		}
		if v := last[event.AggregateID]; !v.Known || !event.Version.Known || event.Version.Number > v.Number {
			some = append(some, change)
		}
	}
	return some
}

func (b *Beside) event(change relay.Change) (contract.Event, bool) {
	event, carries, err := b.mapper.Map(change)
	return event, carries && err == nil
}

// errOverrun is why a chunk is read again.
var errOverrun = errors.New("more changes passed while a chunk was read than are kept")

// chunk is what was read in one snapshot, on its way through the relay.
type chunk struct {
	of      contract.Resend
	changes []relay.Change
	open    int           // see Reader
	done    chan struct{} // closed when all are finished, or it is refused

	mu      sync.Mutex
	left    int  // guarded by mu
	refused bool // guarded by mu
	Part         // guarded by mu: what this chunk adds to the counts
}

func newChunk(of contract.Resend, changes []relay.Change, open int) *chunk {
	return &chunk{of: of, changes: changes, open: open, done: make(chan struct{})}
}

func (c *chunk) begin(count int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left = count
}

func (c *chunk) refuse() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refused = true
	close(c.done)
}

// finished takes in what became of one change.
func (c *chunk) finished(fate relay.Fate, aggregateID, reason string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch fate {
	case relay.Accepted:
		c.Sent++
	case relay.Passed:
		c.Passed++
	case relay.Failed:
		c.Failed++
		c.Failures = append(c.Failures, Failure{AggregateID: aggregateID, Reason: reason})
	}
	if c.left--; c.left == 0 {
		close(c.done)
	}
}

// added is the progress with what the chunk has added; errOverrun where it was
// refused. It is to be called when the chunk is done.
func (c *chunk) added(to Part) (Part, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.refused {
		return to, errOverrun
	}
	to.Sent, to.Passed, to.Failed = to.Sent+c.Sent, to.Passed+c.Passed, to.Failed+c.Failed
	if room := mostFailures - len(to.Failures); room > 0 {
		to.Failures = append(to.Failures, c.Failures[:min(room, len(c.Failures))]...)
	}
	return to, nil
}
