package engine

import (
	"maps"
	"slices"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/engine/oplog"
	"changerelay/services/sandbox/internal/mongodb/engine/storage"
)

// picture is all that the journal keeps, at one moment. What it shares with
// the engine does not change, but for the oplog: entries that are given up
// while the picture is written are left out of it.
type picture struct {
	collections []collectionPicture
	counters    counters
	outcomes    []outcome
	oplog       *oplog.Log
	// end is the number after the last entry that belongs to the picture.
	end uint64
}

type collectionPicture struct {
	ns      oplog.Namespace
	uuid    uuid.UUID
	options bson.Raw
	table   *storage.Table
}

type counters struct {
	clock, cut oplog.Timestamp
	lastRecord int64
	databases  []string
}

// picture needs mu.
func (e *Engine) picture() *picture {
	p := &picture{
		oplog: e.oplog, end: e.end,
		counters: counters{
			clock: e.clock, cut: e.oplog.Stats().Cut, lastRecord: e.lastRecord,
			databases: slices.Sorted(maps.Keys(e.databases)),
		},
	}
	for _, coll := range e.collectionsOf("") {
		p.collections = append(p.collections, collectionPicture{
			ns: coll.ns, uuid: coll.uuid, options: coll.options.Listed, table: coll.snapshot(),
		})
	}
	for session, k := range e.kept {
		if k.committed {
			p.outcomes = append(p.outcomes, outcome{session: bson.Raw(session), number: k.number, committed: true})
		}
		for statement, result := range k.results {
			p.outcomes = append(p.outcomes, outcome{
				session: bson.Raw(session), number: k.number, statement: statement, result: result,
			})
		}
	}
	return p
}

// pictureRecord is about how large the records of a picture are.
const pictureRecord = 256 << 10

// emit writes the picture in records that restore understands. A record names
// the collection of its documents, so that it can be read without those before it.
func (p *picture) emit(emit func([]byte) error) error {
	w := &encoder{}
	flush := func(above int) error {
		if len(w.buf) <= above {
			return nil
		}
		err := emit(w.buf)
		w.buf = w.buf[:0]
		return err
	}
	w.counters(p.counters)
	for _, c := range p.collections {
		w.collection(c)
		for records := c.table.Records.Iter(); records.Next(); {
			if len(w.buf) == 0 {
				w.uint(itemContinue)
				w.id(c.uuid)
			}
			w.uint(itemDocument)
			w.uint(uint64(records.Key()))
			w.bytes(records.Value().Doc)
			if err := flush(pictureRecord); err != nil {
				return err
			}
		}
	}
	if err := p.emitHistory(w, flush); err != nil {
		return err
	}
	for _, o := range p.outcomes {
		w.outcome(o)
		if err := flush(pictureRecord); err != nil {
			return err
		}
	}
	return flush(0)
}

func (p *picture) emitHistory(w *encoder, flush func(int) error) error {
	var entries []oplog.Entry
	for next := uint64(0); ; {
		if entries, next = p.oplog.ReadOldest(entries[:0], next, p.end, readAhead); len(entries) == 0 {
			return nil
		}
		for i := range entries {
			w.uint(itemHistory)
			w.entry(&entries[i])
			if err := flush(pictureRecord); err != nil {
				return err
			}
		}
	}
}

func (w *encoder) counters(c counters) {
	w.uint(itemCounters)
	w.uint(uint64(c.clock))
	w.uint(uint64(c.cut))
	w.uint(uint64(c.lastRecord))
	w.texts(c.databases)
}

func (r *decoder) counters() counters {
	return counters{
		clock: oplog.Timestamp(r.uint()), cut: oplog.Timestamp(r.uint()), lastRecord: int64(r.uint()), databases: r.texts(),
	}
}

func (w *encoder) collection(c collectionPicture) {
	w.uint(itemCollection)
	w.namespace(c.ns)
	w.id(c.uuid)
	w.bytes(c.options)
	var listed []bson.Raw
	for _, ix := range c.table.Indexes[1:] {
		listed = append(listed, ix.Spec.Listed)
	}
	w.documents(listed)
}
