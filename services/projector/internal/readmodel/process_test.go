package readmodel_test

import (
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/projector/internal/readmodel"
)

func TestADeadProcessIsNoticedAndWhatItDiedOfCounted(t *testing.T) {
	t.Parallel()
	s := newSubject(t, nil)
	ctx := t.Context()
	beat := func(p *readmodel.Process, first, want bool) {
		t.Helper()
		if err := p.Beat(ctx, first); err != nil || p.Careful() != want {
			t.Fatalf("beat: got careful %t and %v, want %t", p.Careful(), err, want)
		}
	}
	died := func(p *readmodel.Process, aggregate, message string, want int) {
		t.Helper()
		if got, err := p.Suspects(ctx, aggregate); err != nil || got[message] != want {
			t.Errorf("suspects: got %v and %v, want %d for %s", got, err, want, message)
		}
	}
	calm := s.Process("calm-1", "calm")
	beat(calm, true, false)
	if err := calm.Stop(ctx); err != nil {
		t.Fatal(err)
	}
	first := s.Process("pod-1", "pod")
	beat(first, true, false) // the other one has stopped as asked
	for _, message := range []string{"m-1", "m-2", "m-2"} {
		if err := first.Note(ctx, "a", message); err != nil {
			t.Fatal(err)
		}
	}
	if err := first.Clear(ctx, "a", "m-1"); err != nil {
		t.Fatal(err)
	}
	var noted bson.M
	if err := s.db.Collection("apply_attempts").FindOne(ctx, bson.D{{Key: "_id", Value: "a"}}).Decode(&noted); err != nil || len(noted["inHand"].(bson.A)) != 1 {
		t.Errorf("attempts: got %v and %v, want that at m-2 alone", noted, err)
	}
	beat(first, false, false)
	died(first, "a", "m-2", 0)

	second := s.Process("pod-2", "pod") // the first one is gone without a word
	beat(second, true, true)
	died(second, "a", "m-2", 1)
	died(second, "a", "m-1", 0)
	died(second, "b", "m-2", 0)
	if err := second.Note(ctx, "a", "m-2"); err != nil {
		t.Fatal(err)
	}
	died(second, "a", "m-2", 1)

	// Another instance takes a silent process for dead, and one that speaks again for alive.
	third := s.Process("other-1", "other")
	_, err := s.db.Collection("projector_processes").UpdateByID(ctx, "pod-2", bson.D{{Key: "$set", Value: bson.D{{Key: "heartbeatAt", Value: time.Now().Add(-time.Minute)}}}})
	if err != nil {
		t.Fatal(err)
	}
	beat(third, true, true)
	died(third, "a", "m-2", 2)
	beat(second, false, true)
	died(third, "a", "m-2", 1)
}
