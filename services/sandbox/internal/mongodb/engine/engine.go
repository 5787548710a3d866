package engine

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"changerelay/services/sandbox/internal/mongodb/engine/oplog"
)

// Config says how large and how fast an engine is. Zero fields have defaults.
type Config struct {
	// OplogEntries and OplogBytes bound the oplog; the oldest entries go when
	// either is passed. Defaults: 4,000,000 entries and 2 GiB.
	OplogEntries int
	OplogBytes   int
	// NoopInterval is how often an idle oplog gets an entry, so that cluster
	// time, and with it the tokens of idle streams, move on. Default 10 s.
	NoopInterval time.Duration
	// TTLInterval is the pause between two passes over TTL indexes. Default 60 s.
	TTLInterval time.Duration
	// TransactionLifetime is the age at which an open transaction is aborted.
	// Default 60 s.
	TransactionLifetime time.Duration
	// SessionTimeout is the idle time after which a session is forgotten.
	// Default 30 min.
	SessionTimeout time.Duration
	// Now is the server's clock. Default time.Now.
	Now func() time.Time
	Log zerolog.Logger
}

func (c Config) withDefaults() Config {
	set := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	if c.OplogEntries == 0 {
		c.OplogEntries = 4_000_000
	}
	if c.OplogBytes == 0 {
		c.OplogBytes = 2 << 30
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	set(&c.NoopInterval, 10*time.Second)
	set(&c.TTLInterval, 60*time.Second)
	set(&c.TransactionLifetime, 60*time.Second)
	set(&c.SessionTimeout, 30*time.Minute)
	return c
}

// Engine holds all databases. Its methods may be called from any goroutine.
type Engine struct {
	config   Config
	oplog    *oplog.Log
	sessions *sessions
	ttl      *ttlMonitor
	pacer    pacer
	// term is that of the election; following tells that nobody is primary.
	term      atomic.Int64
	following atomic.Bool

	mu          sync.Mutex // guards what follows, and every table but snapshots
	collections map[oplog.Namespace]*collection
	writeLock   writeLock
	// halfDone tells that a statement panicked.
	halfDone bool
	// databases are those that have had a collection and were not dropped.
	databases map[string]bool
	// creating holds namespaces that an open transaction is making.
	creating map[oplog.Namespace]*Txn
	open     map[*Txn]struct{}
	// clock and wall are the cluster time of the last change, and the server's clock then.
	clock     oplog.Timestamp
	wall      int64
	unsettled unsettled
	// writes numbers every write to a record and change of indexes, lastRecord every
	// record.
	writes     uint64
	lastRecord int64
	// batch and outcomes are what the statement has done that has the lock, bytes
	// the size of the batch.
	batch []oplog.Change
	bytes int
	// deferred is how many bytes statements with Write.Deferred have written since one of
	// them waited for the journal last.
	deferred int
	outcomes []outcome
	entries  []oplog.Entry // scratch for flush
	// end is the number after the last oplog entry.
	end uint64
	// journal is nil for an engine in memory; position is that of the last
	// record, kept is what sessions have on record.
	journal  Journal
	position int64
	kept     map[string]*keptSession
	// compactAt is the size of the log at which it is compacted.
	compactAt int64

	// filling is the collection that restored documents belong to; gap tells that
	// entries may be lost before the next that is restored.
	filling *collection
	gap     bool

	// grown asks for a compaction, broken ends Run: the journal has failed.
	grown  chan struct{}
	broken chan error
}

// New returns an empty engine that keeps everything in memory.
func New(config Config) *Engine {
	e := newEngine(config)
	e.begin(nil)
	return e
}

// newEngine makes an engine that is to begin.
func newEngine(config Config) *Engine {
	e := &Engine{
		config:      config.withDefaults(),
		collections: map[oplog.Namespace]*collection{},
		databases:   map[string]bool{},
		creating:    map[oplog.Namespace]*Txn{},
		open:        map[*Txn]struct{}{},
		kept:        map[string]*keptSession{},
		compactAt:   compactAbove,
		grown:       make(chan struct{}, 1),
		broken:      make(chan error, 1),
	}
	e.oplog = oplog.New(e.config.OplogEntries, e.config.OplogBytes)
	e.sessions = newSessions()
	e.ttl = newTTLMonitor(e.config.TTLInterval)
	return e
}

// Run does what happens by itself: deletion of expired documents, the end of
// old transactions and sessions, the oplog's idle entries, and the compaction
// of the journal. It returns nil when ctx ends, or why the journal cannot be
// written any more.
func (e *Engine) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return e.keepHouse(ctx) })
	group.Go(func() error { return e.compactWhenGrown(ctx) })
	group.Go(func() error {
		select {
		case err := <-e.broken:
			return err
		case <-ctx.Done():
			return nil
		}
	})
	return group.Wait()
}

func (e *Engine) keepHouse(ctx context.Context) error {
	housekeeping := time.NewTicker(time.Second)
	defer housekeeping.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-housekeeping.C:
			e.housekeep()
		case <-e.ttl.due():
			if !e.following.Load() {
				e.expireDocuments(ctx)
			}
		}
	}
}

// housekeep runs once a second.
func (e *Engine) housekeep() {
	now := e.config.Now()
	e.abortOldTransactions(now)
	e.forgetSessions(now)
	e.giveUpOld()
	if e.following.Load() {
		return
	}
	_, last := e.oplog.Applied()
	if now.Sub(time.Unix(int64(last.Seconds()), 0)) >= e.config.NoopInterval {
		e.note("periodic noop")
	}
}

// Lead begins a term as primary, and notes so in the oplog.
func (e *Engine) Lead(term int64) {
	e.term.Store(term)
	if e.following.Swap(false) {
		e.note("new primary")
	}
}

// Follow ends what a primary does by itself, until Lead: nothing expires, and
// the oplog of an idle engine does not grow.
func (e *Engine) Follow() { e.following.Store(true) }

// note writes a no-op. Nobody waits for it: a journal that fails says so to
// the next write too.
func (e *Engine) note(text string) {
	_ = e.locked(func() error {
		e.log(oplog.Entry{Operation: oplog.OpNoop, Note: text})
		return nil
	})
}

// log adds an entry to what the statement does. It needs mu.
func (e *Engine) log(entry oplog.Entry) { e.logChange(oplog.Change{Entry: entry}) }

func (e *Engine) logChange(c oplog.Change) {
	c.Time = e.tick()
	e.add(c)
}

// add puts a change of the last tick into the batch. It needs mu.
func (e *Engine) add(c oplog.Change) {
	c.Wall = e.wall
	e.batch = append(e.batch, c)
	e.bytes += c.Size()
}

// batchBytes is the size from which on a statement for many documents lets others
// in before it goes on: its batch is one record of the journal.
const batchBytes = 16 << 20

// errDivided is what a statement ends a batch with that it goes on after.
var errDivided = errors.New("goes on in another batch")

// tick gives the next cluster time. It needs mu.
func (e *Engine) tick() oplog.Timestamp {
	now := e.config.Now()
	e.clock, e.wall = e.clock.Next(now), now.UnixMilli()
	return e.clock
}

// flush moves what the statement has done to the journal and to the oplog,
// where readers see it when settle is called. It needs mu.
func (e *Engine) flush() {
	if len(e.batch) == 0 && len(e.outcomes) == 0 {
		return
	}
	if e.journal != nil {
		e.record()
	}
	for _, c := range e.batch {
		e.entries = append(e.entries, c.Entry)
	}
	e.end = e.oplog.Append(e.entries...)
	clear(e.entries)
	clear(e.batch)
	clear(e.outcomes)
	e.entries, e.batch, e.outcomes, e.bytes = e.entries[:0], e.batch[:0], e.outcomes[:0], 0
}

// Now is the server's clock.
func (e *Engine) Now() time.Time { return e.config.Now() }

// OperationTime is the cluster time of the last write that is durable.
func (e *Engine) OperationTime() oplog.Timestamp {
	_, t := e.oplog.Applied()
	return t
}

// CommittedTime is the cluster time of the last write that a majority has.
func (e *Engine) CommittedTime() oplog.Timestamp {
	_, t := e.oplog.End()
	return t
}

// Oplog describes the history that is kept.
func (e *Engine) Oplog() oplog.Stats { return e.oplog.Stats() }

// blocked says that a statement has met what an open transaction has written.
type blocked struct{ by *Txn }

func (b *blocked) Error() string { return "waits for a transaction" }

// write runs a statement under the lock, as often as it takes for the
// transactions in its way to end, for all writes to be let in, and for a large
// one to be done. The statement must be able to go on from where it was blocked
// or has ended a batch. It returns when what the statement did is durable.
func (e *Engine) write(ctx context.Context, statement func() error) error {
	return admitted(ctx, func() error {
		return e.locked(func() error { return e.letIn(statement) })
	})
}

// writeAs is write, but where w leaves durability to the caller it waits for it only once
// the journal would have to keep much of what was written, and before it waits for
// something else, so that what was written is shown meanwhile.
func (e *Engine) writeAs(ctx context.Context, w Write, statement func() error) error {
	if !w.Deferred {
		return e.write(ctx, statement)
	}
	return admitted(ctx, func() error {
		much := false
		end, position, err := e.underLock(func() error {
			err := e.letIn(statement)
			if e.deferred += e.bytes; e.deferred >= batchBytes {
				much, e.deferred = true, 0
			}
			return err
		})
		if much || waitsFor(err) != nil {
			if failure := e.settle(end, position); failure != nil {
				return failure
			}
		}
		return err
	})
}

// letIn runs a statement, unless all writes are kept out. It needs mu.
func (e *Engine) letIn(statement func() error) error {
	if e.writeLock.times > 0 {
		return &locked{e.writeLock.free}
	}
	return statement()
}

// admitted tries again once what was in the way is not any more, and goes on with
// another batch.
func admitted(ctx context.Context, try func() error) error {
	for {
		err := try()
		free := waitsFor(err)
		switch {
		case errors.Is(err, errDivided):
			continue
		case free == nil:
			return err
		}
		select {
		case <-free:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// waitsFor is closed when what was in a statement's way is not any more; nil where nothing
// was.
func waitsFor(err error) <-chan struct{} {
	var wait *blocked
	var kept *locked
	switch {
	case errors.As(err, &wait):
		return wait.by.ended
	case errors.As(err, &kept):
		return kept.free
	}
	return nil
}

// locked runs a statement under the lock and returns when what it did, and what
// it may have seen, is durable.
func (e *Engine) locked(statement func() error) error {
	end, position, err := e.underLock(statement)
	if failure := e.settle(end, position); failure != nil {
		return failure
	}
	return err
}

func (e *Engine) underLock(statement func() error) (end uint64, position int64, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	whole := false
	defer func() { e.halfDone = e.halfDone || !whole }()
	err = statement()
	e.flush()
	whole = true
	return e.end, e.position, err
}

// Broken reports that a statement panicked, so that it may be half done.
func (e *Engine) Broken() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.halfDone
}

// OplogEntries opens a cursor on the oplog.
func (e *Engine) OplogEntries(reverse bool) *oplog.Cursor {
	return e.oplog.Cursor(reverse, e.term.Load())
}
