package readmodel

import (
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"changerelay/services/projector/internal/projection"
)

// unit is one guarded write of a document: one of the writes asked for, or
// several of the same document folded into one.
type unit struct {
	// writes are places in the writes asked for, with rising sequences.
	writes []int
	fold   fold
	// closed: the unit holds one write that nothing can be folded with.
	closed bool
	// again: an earlier unit has written the document for the first event of this one.
	again bool
}

// first and last are the writes at the ends of the unit.
func (u *unit) first(writes []projection.Write) *projection.Write { return &writes[u.writes[0]] }

func (u *unit) last(writes []projection.Write) *projection.Write {
	return &writes[u.writes[len(u.writes)-1]]
}

// join adds a write of the unit's document; false leaves the unit as it was. A
// sequence that does not rise is a repeat or a twin, which the guard must see.
func (u *unit) join(writes []projection.Write, place int) bool {
	w := &writes[place]
	// What moves a position alone makes no document, and what comes behind it may.
	if u.closed || w.Delete || u.first(writes).Kept && !w.Kept || !after(w, u.last(writes)) || !u.fold.add(w.Update) {
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

// model is the guarded upsert for the unit. It asks for a position below the
// first write's, so that it applies all of the writes or none.
func (u *unit) model(writes []projection.Write, now time.Time, of *sources) mongo.WriteModel {
	if len(u.writes) == 1 {
		return model(u.first(writes), now, of)
	}
	last := u.last(writes)
	if u.first(writes).Kept {
		return moving(last, u.first(writes).Event.Sequence, now, of)
	}
	return mongo.NewUpdateOneModel().SetFilter(guard(last, u.first(writes).Event.Sequence, of)).SetUpsert(true).
		SetUpdate(withPosition(u.fold.update(), position(last, now), u.first(writes).Event))
}

// reach is how far apart writes of one document may be to be folded.
type reach byte

const (
	// alone folds nothing.
	alone reach = iota
	// adjacent folds neighbours, so that no write goes before another that it
	// came after: what follows a refused one is not stored.
	adjacent
	// anywhere folds over the writes of other documents. It is for writes that
	// are stored all together or not at all.
	anywhere
)

// units makes units of the pending writes, each at the place of its first
// write. Writes of one document keep their order.
func units(writes []projection.Write, pending []int, r reach) []*unit {
	all := make([]*unit, 0, len(pending))
	// open are the units that may still take writes in, by document.
	open := map[any]*unit{}
	if !foldableKeys(writes, pending) {
		r = alone
	}
	for _, place := range pending {
		w := &writes[place]
		key := documentKey(w.ID)
		if u := open[key]; r != alone && u != nil && u.join(writes, place) {
			continue
		}
		before := open[key]
		u := &unit{writes: []int{place}}
		u.again = w.Keyed && before != nil && before.last(writes).Event == w.Event
		u.closed = w.Delete || r == alone || !u.fold.add(w.Update)
		if r == adjacent {
			clear(open)
		}
		open[key] = u
		all = append(all, u)
	}
	return all
}

// foldableKeys tells whether documents can be told apart by documentKey. The
// server takes numbers of different kinds for one key, and documents are keys too.
func foldableKeys(writes []projection.Write, pending []int) bool {
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
