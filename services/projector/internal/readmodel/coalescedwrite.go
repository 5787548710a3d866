package readmodel

import (
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"changerelay/services/projector/internal/projection"
)

// coalescedWrite is one guarded write of a document: one of the writes asked for, or
// several of the same document coalesced into one.
type coalescedWrite struct {
	// writes are places in the writes asked for, with rising sequences.
	writes []int
	update updateMerger
	// closed: the coalesced write holds one write that nothing can be coalesced with.
	closed bool
	// again: an earlier one has written the document for the first event of this one.
	again bool
}

// first and last are the writes at the ends of the coalesced write.
func (u *coalescedWrite) first(writes []projection.Write) *projection.Write {
	return &writes[u.writes[0]]
}

func (u *coalescedWrite) last(writes []projection.Write) *projection.Write {
	return &writes[u.writes[len(u.writes)-1]]
}

// join adds a write of the coalesced write's document; false leaves the coalesced write as it was. A
// sequence that does not rise is a repeat or a conflict, which the guard must see.
func (u *coalescedWrite) join(writes []projection.Write, place int) bool {
	w := &writes[place]
	// What moves a position alone makes no document, and what comes behind it may.
	if u.closed || w.Delete || u.first(writes).Kept && !w.Kept || !after(w, u.last(writes)) || !u.update.add(w.Update) {
		return false
	}
	u.writes = append(u.writes, place)
	return true
}

// after tells whether a write is due when another one was made: of a later event of
// the same source, or of the same one where it may change a document more than once.
func after(w, last *projection.Write) bool {
	return w.Event.Sequence > last.Event.Sequence && w.Event.Source == last.Event.Source || w.Keyed && w.Event == last.Event
}

// model is the guarded upsert for the coalesced write. It asks for a position below the
// first write's, so that it applies all of the writes or none. Writes that only move the
// position ask for one below the last's: the first of them may be a repeat.
func (u *coalescedWrite) model(writes []projection.Write, now time.Time, of *sources) mongo.WriteModel {
	if len(u.writes) == 1 {
		return model(u.first(writes), now, of)
	}
	last := u.last(writes)
	if u.first(writes).Kept {
		return moving(last, last.Event.Sequence, now, of)
	}
	return mongo.NewUpdateOneModel().SetFilter(guard(last, u.first(writes).Event.Sequence, of)).SetUpsert(true).
		SetUpdate(withPosition(u.update.update(), position(last, now), u.first(writes).Event))
}

// scope is how far apart writes of one document may be to be coalesced.
type scope byte

const (
	// alone coalesces nothing.
	alone scope = iota
	// adjacent coalesces neighbours, so that no write goes before another that it
	// came after: what follows a refused one is not stored.
	adjacent
	// anywhere coalesces over the writes of other documents. It is for writes that
	// are stored all together or not at all.
	anywhere
)

// coalesce makes coalesced writes of the pending ones, each at the place of its first
// write. Writes of one document keep their order.
func coalesce(writes []projection.Write, pending []int, r scope) []*coalescedWrite {
	all := make([]*coalescedWrite, 0, len(pending))
	// open are the coalesced writes that may still take writes in, by document.
	open := map[any]*coalescedWrite{}
	if !comparableKeys(writes, pending) {
		r = alone
	}
	for _, place := range pending {
		w := &writes[place]
		key := documentKey(w.ID)
		if u := open[key]; r != alone && u != nil && u.join(writes, place) {
			continue
		}
		before := open[key]
		u := &coalescedWrite{writes: []int{place}}
		u.again = w.Keyed && before != nil && before.last(writes).Event == w.Event
		u.closed = w.Delete || r == alone || !u.update.add(w.Update)
		if r == adjacent {
			clear(open)
		}
		open[key] = u
		all = append(all, u)
	}
	return all
}

// comparableKeys tells whether documents can be told apart by documentKey. The
// server takes numbers of different kinds for one key, and documents are keys too.
func comparableKeys(writes []projection.Write, pending []int) bool {
	for _, place := range pending {
		if documentKey(writes[place].ID) == nil {
			return false
		}
	}
	return true
}

// documentKey is a document's _id as a map's key; nil where it cannot be one.
func documentKey(id any) any {
	switch id := id.(type) {
	case string, bson.ObjectID:
		return id
	}
	if n, _, ok := whole(id); ok {
		return n
	}
	return nil
}
