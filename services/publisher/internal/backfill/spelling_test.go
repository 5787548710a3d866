package backfill_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/publisher/internal/backfill"
	"changerelay/services/publisher/internal/mapping"
)

// spelledAs are ids of which two each are the same aggregate, in the order of a copy.
func spelledAs() [][2]any {
	object, uuid := bson.NewObjectID(), bson.Binary{Subtype: bson.TypeBinaryUUID, Data: []byte("0123456789abcdef")}
	text := fmt.Sprintf("%x-%x-%x-%x-%x", uuid.Data[:4], uuid.Data[4:6], uuid.Data[6:8], uuid.Data[8:10], uuid.Data[10:])
	return [][2]any{{42, "42"}, {object.Hex(), object}, {text, uuid}, {"order-1", "order-1"}}
}

// TestSpelling_NoVersionIsCopiedBehindALaterOneOfItsAggregate spreads the versions of each
// aggregate over the types that its id may have.
func TestSpelling_NoVersionIsCopiedBehindALaterOneOfItsAggregate(t *testing.T) {
	t.Parallel()
	for name, fields := range map[string][]string{"no index": nil, "a whole index": byVersion, "a unique index": byVersion[:2]} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			plan := backfill.Plan{Order: byVersion, Spellings: mapping.LaterSpellings}
			refused := 0
			for range 60 {
				events := collection(t)
				if fields != nil {
					index(t, events, len(fields) == 2, fields...)
				}
				inOrder := true
				var documents []any
				for _, ids := range spelledAs() {
					turn, later := 1+rand.IntN(6), rand.IntN(12) == 0
					for version := 1; version <= 6; version++ {
						id := ids[1]
						if (version < turn) != later {
							id = ids[0]
						}
						documents = append(documents, append(document(id, version), bson.E{Key: "type", Value: "Happened"}))
					}
					inOrder = inOrder && (!later || turn == 1 || ids[0] == ids[1])
				}
				rand.Shuffle(len(documents), func(i, j int) { documents[i], documents[j] = documents[j], documents[i] })
				insertAll(t, events, documents)
				plan.Chunk = 1 + rand.IntN(9)
				err := copiesInOrder(t, backfill.New(events, plan, begin(t, events), zerolog.Nop()))
				if (err == nil) != inOrder {
					t.Fatalf("in chunks of %d: %v, and the order is right: %v, of %v", plan.Chunk, err, inOrder, documents)
				}
				if err != nil {
					refused++
				}
			}
			if refused == 0 || refused == 60 {
				t.Errorf("%d of 60 copies are refused, want some", refused)
			}
		})
	}
}

// copiesInOrder reads a copy to its end, or to where it is refused, and wants each
// aggregate's versions to rise in what was read.
func copiesInOrder(t *testing.T, source *backfill.Source) error {
	t.Helper()
	last := map[string]int64{}
	for {
		batch, err := source.Read(t.Context())
		if errors.Is(err, backfill.ErrDone) {
			return nil
		}
		if _, spelled := errors.AsType[*backfill.SpelledError](err); spelled {
			return err
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, event := range mapAll(t, newMapper(), batch.Changes) {
			if event.Version.Number < last[event.AggregateID] {
				t.Errorf("version %d of %s is copied behind %d", event.Version.Number, event.AggregateID, last[event.AggregateID])
			}
			last[event.AggregateID] = event.Version.Number
		}
	}
}

// TestSpelling_WhatIsNotSentIsNotCompared has the earlier versions be older than those that
// are copied, or other than those that are asked for.
func TestSpelling_WhatIsNotSentIsNotCompared(t *testing.T) {
	t.Parallel()
	events := collection(t)
	id := bson.NewObjectID()
	insertAll(t, events, []any{document(id, 1), document(id.Hex(), 2)})
	plan := backfill.Plan{Order: byVersion, Spellings: mapping.LaterSpellings, Filter: bson.D{{Key: "version", Value: 2}}}
	if got := copyAll(t, events, plan, begin(t, events)); len(got) != 1 {
		t.Errorf("%d events are copied, want the one that is asked for", len(got))
	}
}

// TestSpelling_IDsOfOneTypeAreNotLookedThrough has ids that strings could stand for, and
// none that do: the index tells that with one key.
func TestSpelling_IDsOfOneTypeAreNotLookedThrough(t *testing.T) {
	t.Parallel()
	events := collection(t)
	index(t, events, false, byVersion...)
	var documents []any
	for n := range 300 {
		documents = append(documents, document(n%30, n/30))
	}
	insertAll(t, events, documents)
	through, finds := asking(t, events, "find")
	plan := backfill.Plan{Order: byVersion, Chunk: 100, Spellings: mapping.LaterSpellings}
	if got := len(copyAll(t, through, plan, begin(t, events))); got != 300 {
		t.Errorf("copied %d documents, want 300", got)
	}
	asked := 0
	for _, find := range finds.commands {
		if filter := find.Lookup("filter").String(); strings.Contains(filter, `"$in"`) {
			t.Errorf("ids of another type are looked for one by one, with %s", filter)
		}
		if _, err := find.LookupErr("filter", "aggregateId", "$gte"); err != nil {
			continue
		}
		asked++
		if keys, _, stages := examined(t, events, find); keys > 1 || !strings.Contains(stages, `"IXSCAN"`) {
			t.Errorf("asking for another type examines %d keys, with %s", keys, stages)
		}
	}
	if asked != 3 {
		t.Errorf("another type is asked for %d times, want once a chunk", asked)
	}
}

// TestSpelling_WhatHasComeBehindTheCopyIsNotOvertaken changes the type of an id while its
// first one is passed.
func TestSpelling_WhatHasComeBehindTheCopyIsNotOvertaken(t *testing.T) {
	t.Parallel()
	old := func(at any, version int) bson.D {
		made := bson.NewObjectIDFromTimestamp(time.Now().Add(-time.Hour))
		return append(bson.D{{Key: "_id", Value: made}}, document(at, version)[1:]...)
	}
	for name, tt := range map[string]struct {
		behind any
		whole  bool
	}{
		"written since":       {document(42, 4), false},
		"known to be earlier": {old(42, 4), true},
		"of a later version":  {document(42, 6), true},
		"a fraction":          {document(42.0, 4), true},
	} {
		for along, fields := range map[string][]string{"no index": nil, "an index": byVersion} {
			t.Run(name+", "+along, func(t *testing.T) {
				t.Parallel()
				events := collection(t)
				if fields != nil {
					index(t, events, false, fields...)
				}
				insertAll(t, events, []any{old(42, 1), old(42, 2), old(42, 3), old(1000, 1), old(1001, 1)})
				plan := backfill.Plan{
					Order: byVersion, Chunk: 4, Listed: 4, SinceField: "_id", Margin: time.Minute,
					Spellings: mapping.LaterSpellings, Earlier: mapping.EarlierSpellings,
				}
				source := backfill.New(events, plan, begin(t, events), zerolog.Nop())
				if batch, err := source.Read(t.Context()); err != nil || len(batch.Changes) != 4 {
					t.Fatalf("the first chunk is %+v, %v", batch, err)
				}
				insertAll(t, events, []any{tt.behind, document("42", 5)})
				for {
					_, err := source.Read(t.Context())
					spelled, found := errors.AsType[*backfill.SpelledError](err)
					if !found && !errors.Is(err, backfill.ErrDone) {
						continue
					}
					if found == tt.whole || found && !spelled.Passed {
						t.Errorf("the copy ends in %v, want it whole: %t", err, tt.whole)
					}
					return
				}
			})
		}
	}
}
