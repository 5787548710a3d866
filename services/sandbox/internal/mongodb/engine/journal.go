package engine

import (
	"context"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Journal keeps the engine's records in order. Append is called with the
// engine's lock held and must not wait for storage; Commit waits until every
// record up to position is durable. Cut, called with the lock held too, divides
// the records so far from later ones, and Compact replaces the earlier ones by
// what snapshot emits. Logged is the bytes that a Compact would do away with.
type Journal interface {
	Append(record []byte) (position int64)
	Commit(position int64) error
	Logged() int64
	Cut() (segment uint64, err error)
	Compact(segment uint64, snapshot func(emit func(record []byte) error) error) error
}

// Recover returns an engine with what a journal has kept. open replays the
// journal's records in order and returns it; from then on every change goes to
// the journal before it is acknowledged.
func Recover(config Config, open func(replay func(record []byte) error) (Journal, error)) (*Engine, error) {
	e := newEngine(config)
	j, err := open(e.restore)
	if err != nil {
		return nil, fmt.Errorf("recover MongoDB's databases: %w", err)
	}
	e.begin(j)
	return e, nil
}

// begin writes the entries that the oplog of a replica set begins with, and
// those with which a member becomes the primary, which drops what a statement has
// left that did not come to its end.
func (e *Engine) begin(j Journal) {
	e.journal = j
	if _, last := e.oplog.End(); last < e.clock {
		e.oplog.Forgot(e.clock) // a salvage has lost the end of a picture's history
	}
	if e.end == 0 {
		e.note("initiating set")
	}
	e.note("new primary")
	e.dropTemporaries()
}

// outcome is what a session has on record: one statement of a retryable write,
// or that a transaction was committed.
type outcome struct {
	session   bson.Raw
	number    int64
	committed bool
	statement int32
	result    Result
}

// keptSession is the record of one session.
type keptSession struct {
	number    int64
	committed bool
	results   map[int32]Result
}

// keep adds an outcome to the record of its session. It needs mu.
func (e *Engine) keep(o outcome) {
	k := e.kept[string(o.session)]
	if k == nil || k.number != o.number {
		k = &keptSession{number: o.number, results: map[int32]Result{}}
		e.kept[string(o.session)] = k
	}
	if o.committed {
		k.committed = true
		return
	}
	k.results[o.statement] = o.result
}

// forget drops the record of a session.
func (e *Engine) forget(session string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.kept, session)
}

// compactAbove is the size of a log that is not worth compacting.
const compactAbove = 256 << 20

// record appends what the statement has done to the journal. It needs mu.
func (e *Engine) record() {
	w := &encoder{}
	for i := range e.batch {
		w.change(&e.batch[i])
	}
	for _, o := range e.outcomes {
		w.outcome(o)
		e.keep(o)
	}
	e.position = e.journal.Append(w.buf)
	if e.journal.Logged() > e.compactAt {
		select {
		case e.grown <- struct{}{}:
		default:
		}
	}
}

// settle returns when everything up to a position of the journal is durable,
// and lets readers of the oplog see the entries below end.
func (e *Engine) settle(end uint64, position int64) error {
	if e.journal != nil {
		if err := e.journal.Commit(position); err != nil {
			err = fmt.Errorf("keep MongoDB's journal: %w", err)
			select {
			case e.broken <- err:
			default: // Run knows already
			}
			return err
		}
	}
	e.show(end)
	return nil
}

// Durable returns when everything that the caller may have read is durable.
func (e *Engine) Durable() error {
	return e.locked(func() error { return nil })
}

func (e *Engine) compactWhenGrown(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-e.grown:
		}
		if err := e.compact(); err != nil {
			return fmt.Errorf("compact MongoDB's journal: %w", err)
		}
	}
}

// compact replaces the journal by a picture of the present state.
func (e *Engine) compact() error {
	e.mu.Lock()
	segment, err := e.journal.Cut()
	if err != nil {
		e.mu.Unlock()
		return err
	}
	p := e.picture()
	e.mu.Unlock()
	written := int64(0)
	err = e.journal.Compact(segment, func(emit func([]byte) error) error {
		return p.emit(func(record []byte) error {
			written += int64(len(record))
			return emit(record)
		})
	})
	e.mu.Lock()
	e.compactAt = max(compactAbove, 2*written)
	e.mu.Unlock()
	return err
}
