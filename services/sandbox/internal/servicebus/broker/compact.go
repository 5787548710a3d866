package broker

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"
)

// Journal keeps the broker's records in order. Append is called with the
// broker's lock held and must not wait for storage; Commit waits until every
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

// Keep makes every later change go to the journal before it is acknowledged.
// Call it after Restore and before anything else. Entities that were restored
// count as used now, so that none is deleted for the time nobody could use it.
func (b *Broker) Keep(j Journal) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.log.journal = j
	b.restored = nil
	now := time.Now()
	for _, s := range b.stores {
		s.accessed = now
		s.inlet.dates.accessed = now
	}
}

// compactAbove is the size of a log that is not worth compacting.
const compactAbove = 64 << 20

// compactWhenGrown compacts the journal whenever it has outgrown the state.
func (b *Broker) compactWhenGrown(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-b.grown:
		}
		if err := b.compact(); err != nil {
			return fmt.Errorf("compact the journal: %w", err)
		}
	}
}

func (b *Broker) compact() error {
	b.mu.Lock()
	b.log.flush()
	journal := b.log.journal
	segment, err := journal.Cut()
	if err != nil {
		b.mu.Unlock()
		return err
	}
	p := b.picture()
	b.mu.Unlock()

	written := int64(0)
	err = journal.Compact(segment, func(emit func([]byte) error) error {
		return p.emit(func(record []byte) error {
			written += int64(len(record))
			return emit(record)
		})
	})
	b.mu.Lock()
	b.log.limit = max(b.log.floor, 2*written)
	b.mu.Unlock()
	return err
}

// picture is the durable state at one moment. What it shares with the broker
// does not change.
type picture struct {
	entities  [][]byte // records that make them, with the states of sessions
	stores    []storePicture
	histories []historyPicture
}

type storePicture struct {
	id      uint64
	last    [partitions]int64
	entries []entry
}

type historyPicture struct {
	inlet uint64
	ids   []remembered
}

// picture is taken with the lock held, so it copies and encodes little.
func (b *Broker) picture() *picture {
	p := &picture{}
	w := &encoder{}
	for _, in := range append(b.sorted(false), b.sorted(true)...) {
		if in.topic {
			w.topic(in)
			p.add(in.waiting, w)
		} else {
			w.queue(in)
		}
		for _, out := range in.inOrder {
			if in.topic {
				w.subscription(in, out)
			}
			p.add(out.store, w)
			p.add(out.store.dead, w)
		}
		if in.history != nil {
			p.histories = append(p.histories, historyPicture{in.id, slices.Clone(in.history.queue[in.history.first:])})
		}
	}
	p.divide(w, 1)
	return p
}

// divide begins another record of entities where this one has reached a size.
func (p *picture) divide(w *encoder, size int) {
	if len(w.Buf) >= size {
		p.entities = append(p.entities, w.Buf)
		w.Buf = nil
	}
}

func (p *picture) add(s *store, w *encoder) {
	shot := storePicture{id: s.id, last: s.numbers.last, entries: make([]entry, 0, s.bySeq.Len())}
	s.bySeq.Scan(func(e *entry) bool {
		shot.entries = append(shot.entries, *e)
		return true
	})
	p.stores = append(p.stores, shot)
	for id, x := range s.sessions {
		if x.state != nil {
			w.state(s.id, id, x.state, x.updatedAt)
			p.divide(w, recordSize)
		}
	}
	p.divide(w, recordSize)
}

// emit writes the picture in operations that Restore understands. It is called
// without the lock.
func (p *picture) emit(emit func(record []byte) error) error {
	for _, r := range p.entities {
		if err := emit(r); err != nil {
			return err
		}
	}
	w := &encoder{}
	flush := func(above int) error {
		if len(w.Buf) <= above {
			return nil
		}
		err := emit(w.Buf)
		w.Buf = w.Buf[:0]
		return err
	}
	written := map[uint64]bool{}
	for _, s := range p.stores {
		w.begin(opNumbers)
		w.Uint(s.id)
		for _, n := range s.last {
			w.Int(n)
		}
		slices.SortFunc(s.entries, func(x, y entry) int { return cmp.Compare(x.order, y.order) })
		for i := range s.entries {
			e := &s.entries[i]
			if !written[e.number] {
				written[e.number] = true
				w.content(e.number, e.msg)
			}
			w.put(e)
			if err := flush(recordSize); err != nil {
				return err
			}
		}
	}
	for _, h := range p.histories {
		for _, r := range h.ids {
			w.remember(h.inlet, r.id, r.at)
			if err := flush(recordSize); err != nil {
				return err
			}
		}
	}
	return flush(0)
}
