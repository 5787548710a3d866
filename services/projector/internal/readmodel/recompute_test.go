package readmodel_test

import (
	"fmt"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/projector/internal/delivery"
	"changerelay/services/projector/internal/projection"
	"changerelay/services/projector/internal/readmodel/readmodeltest"
	"changerelay/services/projector/internal/verify"
)

// recomputed makes a document beside the read documents, of events up to a version.
func recomputed(t *testing.T, s *subject, upTo int64) verify.Document {
	t.Helper()
	var writes []projection.Write
	for n := int64(1); n <= upTo; n++ {
		w := projection.Write{Projection: "p", Collection: "c", ID: "a", Update: bson.D{{Key: "$inc", Value: bson.D{{Key: "n", Value: 1}}}}, Event: readmodeltest.Event("a", n)}
		s.Comparison.Recomputing(&w, "run/0/a")
		writes = append(writes, w)
	}
	if _, err := s.Comparison.Write(t.Context(), writes); err != nil {
		t.Fatal(err)
	}
	made, err := s.Comparison.Recomputed(t.Context(), []string{"run/0/a"})
	if err != nil {
		t.Fatal(err)
	}
	return made["run/0/a"]
}

// live applies an event to the read document.
func (s *subject) live(t *testing.T, n int64) {
	t.Helper()
	w := projection.Write{Projection: "p", Collection: "c", ID: "a", Update: bson.D{{Key: "$inc", Value: bson.D{{Key: "n", Value: 10}}}}, Event: readmodeltest.Event("a", n)}
	if _, err := s.Comparison.Write(t.Context(), []projection.Write{w}); err != nil {
		t.Fatal(err)
	}
}

// A recomputed document takes the place of the one that was read, and of no later one:
// that shows an event which is not in it.
func TestReplace_ChangesNothingThatHasMovedOn(t *testing.T) {
	t.Parallel()
	s := newSubject(t, nil)
	read := func() verify.Document {
		t.Helper()
		all, err := s.Comparison.Read(t.Context(), "c", []string{"a"})
		if err != nil {
			t.Fatal(err)
		}
		return all["a"]
	}
	replace := func(of, made verify.Document, want bool, shows string) {
		t.Helper()
		replaced, err := s.Comparison.Replace(t.Context(), "c", "a", &of, &made)
		if err != nil || replaced != want {
			t.Errorf("replace: got %t and %v, want %t", replaced, err, want)
		}
		now := read()
		if got := fmt.Sprint(now.Raw.Lookup("n"), now.Raw != nil); got != shows {
			t.Errorf("the document: got %s, want %s", got, shows)
		}
	}
	none, made := read(), recomputed(t, s, 2)
	s.live(t, 1)
	replace(none, made, false, `{"$numberInt":"10"} true`)
	first := read()
	s.live(t, 2)
	replace(first, recomputed(t, s, 1), false, `{"$numberInt":"20"} true`)
	replace(read(), made, true, `{"$numberInt":"2"} true`)
	if at := read(); at.Sequence != made.Sequence || at.First != made.First {
		t.Errorf("its position: got %+v, want %+v", at, made)
	}
	if _, err := s.Halt(t.Context(), delivery.Halt{Event: *readmodeltest.Event("a", 3), Reason: "a test"}); err != nil {
		t.Fatal(err)
	}
	replace(read(), recomputed(t, s, 1), true, `{"$numberInt":"1"} true`)
	if reason, is := read().Raw.Lookup("_relay", "halted", "reason").StringValueOK(); !is || reason != "a test" {
		t.Errorf("it does not say any more that its aggregate is halted: %s", read().Raw)
	}
	replace(read(), verify.Document{}, true, ` false`)
	replace(read(), recomputed(t, s, 2), true, `{"$numberInt":"2"} true`)
	if reason, is := read().Raw.Lookup("_relay", "halted", "reason").StringValueOK(); !is || reason != "a test" {
		t.Errorf("made anew, it does not say that its aggregate is halted: %s", read().Raw)
	}
	if n, err := s.db.Collection(projection.Recomputed).CountDocuments(t.Context(), bson.D{}); err != nil || n != 0 {
		t.Errorf("%d recomputed documents are left, %v", n, err)
	}
}
