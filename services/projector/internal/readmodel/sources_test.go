package readmodel_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/projector/internal/delivery"
	"changerelay/services/projector/internal/projection"
	"changerelay/services/projector/internal/readmodel"
	"changerelay/services/projector/internal/readmodel/readmodeltest"
)

const otherSource = "/shop/others"

// single is the nth event of an aggregate, in a document of its own.
func single(collection, aggregate string, n int64) projection.Write {
	return projection.Write{
		Projection: "own", Collection: collection, ID: aggregate, Event: readmodeltest.Event(aggregate, n),
		Update: bson.D{{Key: "$inc", Value: bson.D{{Key: "events", Value: 1}}}},
	}
}

// ofOther is a write as another source asks for it.
func ofOther(w projection.Write) projection.Write {
	e := *w.Event
	e.Source, e.ID = otherSource, "other-"+e.ID
	w.Event = &e
	return w
}

func removing(w projection.Write) projection.Write {
	w.Delete, w.Update = true, nil
	return w
}

// completed is a write that is made of its document.
func completed(w projection.Write) projection.Write {
	made := w
	w.Update, w.Complete = nil, func(bson.Raw) (projection.Write, error) { return made, nil }
	return w
}

// unfollowed is what a projection with a key keeps of an event that it does not follow.
func unfollowed(w projection.Write) projection.Write {
	w.Collection, w.ID, w.Update, w.Passed = "", nil, nil, true
	return w
}

// Whatever a write is, and however it is sent with others: over what another source has
// made it is refused, be its sequence lower or higher, and what stands before it is not.
func TestSources_NothingIsWrittenOverAnotherSource(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		before, writes []projection.Write
		refused        int
	}{
		"lower":            {[]projection.Write{single("own", "a", 3)}, []projection.Write{ofOther(single("own", "a", 1))}, 0},
		"the same version": {[]projection.Write{single("own", "a", 3)}, []projection.Write{ofOther(single("own", "a", 3))}, 0},
		"higher":           {[]projection.Write{single("own", "a", 3)}, []projection.Write{single("own", "b", 1), ofOther(single("own", "a", 4))}, 1},
		"in one batch":     {nil, []projection.Write{single("own", "a", 1), ofOther(single("own", "a", 2)), single("own", "a", 3)}, 1},
		"a deletion":       {[]projection.Write{single("own", "a", 3)}, []projection.Write{ofOther(removing(single("own", "a", 4)))}, 0},
		"a tombstone":      {[]projection.Write{removing(single("own", "a", 3))}, []projection.Write{ofOther(single("own", "a", 4))}, 0},
		"of its document":  {[]projection.Write{single("own", "a", 3)}, []projection.Write{completed(ofOther(single("own", "a", 4)))}, 0},
		"behind a repeat":  {[]projection.Write{single("own", "a", 2), single("own", "a", 3)}, []projection.Write{single("own", "a", 3), ofOther(single("own", "a", 2))}, 1},
		"keyed, behind a repeat": {
			[]projection.Write{counted("all", "a", 2), counted("all", "a", 3)},
			[]projection.Write{counted("all", "a", 3), ofOther(counted("all", "a", 2))},
			1,
		},
		"keyed, lower":     {[]projection.Write{counted("all", "a", 3)}, []projection.Write{ofOther(counted("all", "a", 1))}, 0},
		"keyed, higher":    {[]projection.Write{counted("all", "a", 3)}, []projection.Write{ofOther(counted("all", "a", 4))}, 0},
		"keyed, one batch": {nil, []projection.Write{counted("all", "a", 1), ofOther(counted("all", "a", 2))}, 1},
		"several collections": {
			[]projection.Write{single("own", "a", 3)},
			[]projection.Write{single("else", "b", 1), ofOther(single("else", "a", 4)), ofOther(single("own", "a", 4))},
			2,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, db := newTotals(t)
			if len(tt.before) > 0 {
				write(t, s, tt.before...)
			}
			_, err := s.Writes.Write(t.Context(), tt.writes)
			rejected, ok := errors.AsType[*delivery.RejectedError](err)
			if !ok || rejected.Index != tt.refused || !strings.HasPrefix(rejected.Reason, readmodel.OtherSource+", "+otherSource) {
				t.Fatalf("got %v, want write %d refused for its source", err, tt.refused)
			}
			for _, collection := range []string{"own", "totals", projection.Positions} {
				of := bson.D{{Key: "$or", Value: bson.A{bson.D{{Key: "_relay.source", Value: otherSource}}, bson.D{{Key: "source", Value: otherSource}}}}}
				if n, err := db.Collection(collection).CountDocuments(t.Context(), of); err != nil || n != 0 {
					t.Errorf("%d documents of %q, %v, are of the other source, want none", n, collection, err)
				}
			}
			at, err := s.Writes.Position(t.Context(), &tt.writes[tt.refused])
			if err != nil || !strings.HasPrefix(at.Other, readmodel.OtherSource) || at.Continued {
				t.Errorf("the position is %+v, %v, want it of another source", at, err)
			}
		})
	}
}

// What changes no document loses nothing, and does not move how far another source is.
func TestSources_WhatIsPassedByMovesNothingOfAnotherSource(t *testing.T) {
	t.Parallel()
	s, db := newTotals(t)
	write(t, s, counted("all", "a", 2))
	outcomes, err := s.Writes.Write(t.Context(), []projection.Write{
		unfollowed(ofOther(counted("all", "a", 7))), unfollowed(ofOther(counted("all", "a", 8))), counted("all", "a", 3),
	})
	if err != nil || !slices.Equal(outcomes, []delivery.Outcome{delivery.Repeated, delivery.Repeated, delivery.Applied}) {
		t.Fatalf("got %v and %v, want what is passed by taken for dealt with", outcomes, err)
	}
	if n := events(t, db, "all"); n != 2 {
		t.Errorf("%d events are counted, want both of the first source", n)
	}
}

// Where it is the first of its aggregate that a projection with a key sees, it begins the
// position there, and with it the source that the aggregate is of.
func TestSources_WhatIsPassedByFirstIsOfTheAggregatesSource(t *testing.T) {
	t.Parallel()
	s, db := newTotals(t)
	write(t, s, unfollowed(ofOther(counted("all", "a", 1))))
	if _, err := s.Writes.Write(t.Context(), []projection.Write{counted("all", "a", 2)}); err == nil || !strings.HasPrefix(err.Error(), readmodel.OtherSource+", /shop/events") {
		t.Errorf("an event of the other source: got %v, want it refused", err)
	}
	if _, err := db.Collection(projection.Positions).DeleteOne(t.Context(), bson.D{{Key: "_id.aggregateId", Value: "a"}}); err != nil {
		t.Fatal(err)
	}
	write(t, s, counted("all", "a", 2)) // an operator has made room for it
}

// Once it is said that a source goes on from others, near and far, its events are
// compared with theirs: what is above is applied, what is not is a repeat, whatever its
// id. What comes late of an earlier source is a repeat, and is refused above.
func TestSources_WhatContinuesIsComparedBySequence(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]func(string, int64) projection.Write{
		"own":   func(aggregate string, n int64) projection.Write { return single("own", aggregate, n) },
		"keyed": func(aggregate string, n int64) projection.Write { return counted("all", aggregate, n) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, _ := newTotals(t)
			write(t, s, of("a", 1), of("a", 2), of("b", 1), of("b", 2), of("b", 3))
			for _, c := range []readmodel.Continuation{{From: "/shop/events", To: "/shop/between"}, {From: "/shop/between", To: otherSource}} {
				if fresh, err := s.Continue(t.Context(), c); err != nil || !fresh {
					t.Fatalf("continue: got %v and %v", fresh, err)
				}
			}
			if fresh, err := s.Continue(t.Context(), readmodel.Continuation{From: "/shop/events", To: "/shop/between"}); err != nil || fresh {
				t.Errorf("said again: got %v and %v", fresh, err)
			}
			all := []projection.Write{ofOther(of("a", 2)), ofOther(of("a", 3)), of("a", 1), ofOther(of("b", 3)), ofOther(of("b", 4))}
			outcomes, err := s.Writes.Write(t.Context(), all)
			if err != nil || !slices.Equal(outcomes, []delivery.Outcome{delivery.Repeated, delivery.Applied, delivery.Repeated, delivery.Repeated, delivery.Applied}) {
				t.Fatalf("got %v and %v, want what is above applied", outcomes, err)
			}
			late := of("b", 5)
			if _, err := s.Writes.Write(t.Context(), []projection.Write{late}); err == nil || !strings.HasPrefix(err.Error(), readmodel.OtherSource+", /shop/events") {
				t.Errorf("a late event of the earlier source: got %v, want it refused", err)
			}
			repeat := of("b", 4)
			if at, err := s.Writes.Position(t.Context(), &repeat); err != nil || !at.Continued || at.Other != "" {
				t.Errorf("the position is %+v, %v, want it continued", at, err)
			}
		})
	}
}

// What an older release has written has no source, and is taken over by the next event.
func TestSources_AnUnknownOneIsTakenOver(t *testing.T) {
	t.Parallel()
	s, db := newTotals(t)
	write(t, s, single("own", "a", 1), counted("all", "a", 1))
	for collection, field := range map[string]string{"own": "_relay.source", projection.Positions: "source"} {
		if _, err := db.Collection(collection).UpdateMany(t.Context(), bson.D{}, bson.D{{Key: "$unset", Value: bson.D{{Key: field, Value: ""}}}}); err != nil {
			t.Fatal(err)
		}
	}
	write(t, s, ofOther(single("own", "a", 2)), ofOther(counted("all", "a", 2)))
	for _, w := range []projection.Write{single("own", "a", 3), counted("all", "a", 3)} {
		if _, err := s.Writes.Write(t.Context(), []projection.Write{w}); err == nil || !strings.HasPrefix(err.Error(), readmodel.OtherSource+", /shop/events") {
			t.Errorf("of the source before: got %v, want it refused", err)
		}
	}
}

// What an operator takes back, a replica that had read it believes no longer than it may.
func TestSources_WhatIsTakenBackIsNotBelievedForEver(t *testing.T) {
	t.Parallel()
	s, db := newTotals(t)
	elsewhere := readmodel.New(db.Client(), readmodel.Config{Database: db.Name()})
	c := readmodel.Continuation{From: "/shop/events", To: otherSource}
	if _, err := elsewhere.Continue(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	write(t, s, single("own", "a", 1), single("own", "b", 1), ofOther(single("own", "a", 2)))
	if was, err := elsewhere.Separate(t.Context(), c.From, c.To); err != nil || !was {
		t.Fatalf("separate: got %v and %v", was, err)
	}
	s.Aged()
	if _, err := s.Writes.Write(t.Context(), []projection.Write{ofOther(single("own", "b", 2))}); err == nil || !strings.HasPrefix(err.Error(), readmodel.OtherSource+", "+otherSource) {
		t.Errorf("after that: got %v, want it refused for its source", err)
	}
}

// A version's documents are of a source where one of them is, or is of one that the source
// continues, near or far: documents of streams that are apart may stand beside each other.
func TestSources_AVersionIsOfAnotherOneWhereNoneOfItsDocumentsIsOfThis(t *testing.T) {
	t.Parallel()
	s, _ := newTotals(t)
	v := projection.Version{Projection: "own", View: "own", Number: 1}
	is := func(source, want string) {
		t.Helper()
		if other, err := s.OtherSource(t.Context(), &v, source); err != nil || other != want {
			t.Errorf("documents of another source than %s: got %q and %v, want %q", source, other, err, want)
		}
	}
	is("/shop/events", "")
	write(t, s, ofOther(single(v.Collection(), "a", 1)))
	is(otherSource, "")
	is("/shop/events", otherSource)
	write(t, s, single(v.Collection(), "b", 1))
	is(otherSource, "")
	is("/shop/events", "")
	is("/shop/later", otherSource)
	for _, c := range []readmodel.Continuation{{From: "/shop/events", To: "/shop/between"}, {From: "/shop/between", To: "/shop/later"}} {
		if _, err := s.Continue(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	is("/shop/later", "")
	is("/shop/between", "")
	is("/shop/elsewhere", otherSource)
}
