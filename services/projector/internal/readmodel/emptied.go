package readmodel

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"changerelay/services/projector/internal/projection"
)

// A document that an event deletes leaves a tombstone, for as long as those are kept.
// So one that was there, and has vanished within that time without a tombstone, was
// removed by hand. Some documents of each read collection are noted as having been
// there, witnesses, and looked for again. Some may be removed on purpose; where more
// than half have vanished a collection was emptied or dropped. Positions may be ahead
// of it then: what comes again is a repeat.

// renewEvery is how long the same documents of a collection are witnesses.
const renewEvery = time.Minute

// Emptied is a read collection whose documents have vanished.
type Emptied struct {
	Collection string
	// SeenAt is when documents were there that have vanished, FoundAt when that was
	// found.
	SeenAt, FoundAt time.Time
}

func (e Emptied) String() string {
	return fmt.Sprintf("documents of %q that were there at %s have vanished, and no event has deleted them: the collection was emptied or dropped. "+
		`Restore it, or build another version of the projection: docs/operations.md, "An emptied read collection"`,
		e.Collection, e.SeenAt.UTC().Format(time.RFC3339))
}

// witnesses are documents of a collection that were there at a time.
type witnesses struct {
	IDs []bson.RawValue `bson:"documents"`
	At  time.Time       `bson:"at"`
	// FoundAt is when they were found to have vanished.
	FoundAt *time.Time `bson:"vanishedAt"`
	// Now is the server's time.
	Now time.Time `bson:"now"`
}

// witnessed are the witnesses that this process has looked for, and what it had to insert
// of them.
type witnessed struct {
	mu sync.Mutex
	of map[string]knownWitnesses // by collection; guarded by mu
}

type knownWitnesses struct {
	witnesses
	// since is when the process knew them, by its own clock.
	since time.Time
	// again tells of each, by its idKey, whether the process had to insert it.
	again map[string]bool
}

// idKey is a document's _id as a map's key.
func idKey(id bson.RawValue) string { return string(id.Type) + string(id.Value) }

func (s *witnessed) look(collection string) (witnesses, map[string]bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.of[collection]
	return known.witnesses, maps.Clone(known.again)
}

// forget forgets those of a collection.
func (s *witnessed) forget(collection string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.of, collection)
}

func (s *witnessed) keep(collection string, w witnesses) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known, ok := s.of[collection]; ok && known.At.Equal(w.At) {
		return
	}
	again := map[string]bool{}
	for _, id := range w.IDs {
		again[idKey(id)] = false
	}
	s.of[collection] = knownWitnesses{w, time.Now(), again}
}

// inserted is told of a write. A witness that it had to insert was not there, unless the
// write is older than what is known: then it may be the one that made the document.
func (s *witnessed) inserted(collection string, began time.Time, result *mongo.BulkWriteResult) {
	if result == nil || len(result.UpsertedIDs) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.of[collection]
	if len(known.IDs) == 0 || began.Before(known.since) {
		return
	}
	for _, id := range result.UpsertedIDs {
		kind, value, err := bson.MarshalValue(id)
		if err != nil {
			continue
		}
		key := idKey(bson.RawValue{Type: kind, Value: value})
		if _, witness := known.again[key]; witness {
			known.again[key] = true
		}
	}
}

// emptiedKey is the key of a collection's witnesses in collection_owners.
func emptiedKey(collection string) string { return "$seen:" + collection }

// Emptied are those read collections of the store's projections that are known, or
// found, to have been emptied. It writes nothing.
func (s *Store) Emptied(ctx context.Context) ([]Emptied, error) {
	return s.eachCollection(ctx, func(ctx context.Context, part *projection.Part, collection string) (*Emptied, error) {
		noted, err := s.witnesses(ctx, collection)
		if err != nil {
			return nil, err
		}
		found, _, err := s.vanished(ctx, part, collection, noted, nil)
		return found, err
	})
}

// NoteEmptied is Emptied, and notes what it finds, until the note is removed, and what
// a later look is to find again.
func (s *Store) NoteEmptied(ctx context.Context) ([]Emptied, error) {
	return s.eachCollection(ctx, s.noteEmptied)
}

func (s *Store) eachCollection(ctx context.Context, look func(context.Context, *projection.Part, string) (*Emptied, error)) (all []Emptied, err error) {
	var done []string
	for i := range s.parts {
		for _, collection := range s.parts[i].Collections {
			if slices.Contains(done, collection) {
				continue
			}
			done = append(done, collection)
			found, err := look(ctx, &s.parts[i], collection)
			if err != nil {
				return nil, fmt.Errorf("look whether %q was emptied: %w", collection, err)
			}
			if found != nil {
				all = append(all, *found)
			}
		}
	}
	return all, nil
}

func (s *Store) noteEmptied(ctx context.Context, part *projection.Part, collection string) (*Emptied, error) {
	noted, err := s.witnesses(ctx, collection)
	if err != nil {
		return nil, err
	}
	// Taken before the others are looked for: those that are there then had not
	// vanished when these were taken.
	taken := witnesses{}
	if noted.Now.Sub(noted.At) >= renewEvery {
		if taken, err = s.takeWitnesses(ctx, collection); err != nil {
			return nil, err
		}
	}
	// This process's own tell more: it knows which of them it had to insert.
	known, again := s.Writes.witnessed.look(collection)
	if len(known.IDs) == 0 {
		known, again = noted, nil
	}
	known.FoundAt, known.Now = noted.FoundAt, noted.Now
	found, fresh, err := s.vanished(ctx, part, collection, known, again)
	if err != nil {
		return nil, err
	}
	if found != nil {
		s.Writes.witnessed.forget(collection)
		if noted.FoundAt == nil {
			err = s.noteVanished(ctx, found)
		}
		return found, err
	}
	if fresh && taken.At.IsZero() {
		if taken, err = s.takeWitnesses(ctx, collection); err != nil {
			return nil, err
		}
	}
	if len(taken.IDs) > 0 || fresh && len(noted.IDs) > 0 {
		if err := s.noteWitnesses(ctx, collection, noted, taken); err != nil {
			return nil, err
		}
		noted = taken
	}
	s.Writes.witnessed.keep(collection, noted)
	return nil, nil
}

// witnesses are those that are noted of a collection. Now is set in any case.
func (s *Store) witnesses(ctx context.Context, collection string) (w witnesses, err error) {
	cursor, err := s.db.Collection(projection.Owners).Aggregate(ctx, mongo.Pipeline{
		{{Key: "$match", Value: bson.D{{Key: "_id", Value: emptiedKey(collection)}}}},
		{{Key: "$set", Value: bson.D{{Key: "now", Value: "$$NOW"}}}},
	})
	var found []witnesses
	if err == nil {
		err = cursor.All(ctx, &found)
	}
	if err != nil {
		return w, err
	}
	if len(found) == 0 {
		return witnesses{Now: time.Now()}, nil
	}
	return found[0], nil
}

// takeWitnesses takes some documents at random. None of them is a tombstone.
func (s *Store) takeWitnesses(ctx context.Context, collection string) (w witnesses, err error) {
	cursor, err := s.db.Collection(collection).Aggregate(ctx, mongo.Pipeline{
		{{Key: "$sample", Value: bson.D{{Key: "size", Value: sampled}}}},
		{{Key: "$match", Value: bson.D{{Key: bookkeeping + ".sequence", Value: bson.D{{Key: "$type", Value: "string"}}}, {Key: bookkeeping + ".deletedAt", Value: nil}}}},
		{{Key: "$project", Value: bson.D{{Key: "now", Value: "$$NOW"}}}},
	})
	var found []struct {
		ID  bson.RawValue `bson:"_id"`
		Now time.Time     `bson:"now"`
	}
	if err == nil {
		err = cursor.All(ctx, &found)
	}
	w.At = time.Now()
	for _, d := range found {
		w.IDs, w.At = append(w.IDs, d.ID), d.Now
	}
	return w, err
}

// vanished tells whether witnesses have, of which the process had to insert some again.
// fresh tells that they are no witnesses any more: tombstones of what events have
// deleted may be gone, too, or the positions of the projection are, and it begins anew.
func (s *Store) vanished(ctx context.Context, part *projection.Part, collection string, w witnesses, again map[string]bool) (found *Emptied, fresh bool, err error) {
	if w.FoundAt != nil {
		return &Emptied{collection, w.At, *w.FoundAt}, false, nil
	}
	if len(w.IDs) == 0 || s.config.Keep > 0 && w.Now.Sub(w.At) > s.config.Keep-clocksApart {
		return nil, true, nil
	}
	cursor, err := s.db.Collection(collection).Find(ctx, bson.D{{Key: "_id", Value: bson.D{{Key: "$in", Value: w.IDs}}}},
		options.Find().SetProjection(bson.D{{Key: "_id", Value: 1}}))
	var there []struct {
		ID bson.RawValue `bson:"_id"`
	}
	if err == nil {
		err = cursor.All(ctx, &there)
	}
	if err != nil {
		return nil, false, err
	}
	still := map[string]bool{}
	for _, d := range there {
		still[idKey(d.ID)] = true
	}
	gone := 0
	for _, id := range w.IDs {
		if key := idKey(id); !still[key] || again[key] {
			gone++
		}
	}
	if 2*gone <= len(w.IDs) {
		return nil, false, nil
	}
	if part.Keyed {
		if some, err := s.there(ctx, projection.Positions, positionsOf(part.Name)); err != nil || !some {
			return nil, true, err
		}
	}
	return &Emptied{collection, w.At, w.Now}, false, nil
}

// noteVanished notes that the witnesses of a collection have vanished.
func (s *Store) noteVanished(ctx context.Context, e *Emptied) error {
	_, err := s.db.Collection(projection.Owners).UpdateOne(ctx, bson.D{{Key: "_id", Value: emptiedKey(e.Collection)}},
		bson.D{{Key: "$set", Value: bson.D{{Key: "vanishedAt", Value: e.FoundAt}, {Key: "at", Value: e.SeenAt}}}}, options.UpdateOne().SetUpsert(true))
	return err
}

// noteWitnesses notes witnesses of a collection over those that were read, unless
// somebody else has noted something since.
func (s *Store) noteWitnesses(ctx context.Context, collection string, over, w witnesses) error {
	filter := bson.D{{Key: "_id", Value: emptiedKey(collection)}, {Key: "vanishedAt", Value: nil}, {Key: "at", Value: nil}}
	if !over.At.IsZero() {
		filter[2].Value = over.At
	}
	ids := w.IDs
	if ids == nil {
		ids = []bson.RawValue{}
	}
	_, err := s.db.Collection(projection.Owners).UpdateOne(ctx, filter,
		bson.D{{Key: "$set", Value: bson.D{{Key: "documents", Value: ids}, {Key: "at", Value: w.At}}}}, options.UpdateOne().SetUpsert(true))
	if mongo.IsDuplicateKeyError(err) {
		return nil
	}
	return err
}
