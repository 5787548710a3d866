package mongostate_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/publisher/internal/checkpoint"
	"changerelay/services/publisher/internal/mongostate"
	"changerelay/services/publisher/internal/resend"
)

// begunResend is a resend of a stream of two partitions, of which the second is in term 5.
func begunResend(t *testing.T) (*mongostate.Resends, resend.Record) {
	t.Helper()
	db := fresh(t)
	_, err := checkpoint.Claim(t.Context(), db.Checkpoints(), mongostate.PartitionNames("orders", 2)[1], checkpoint.Claimant{Owner: "a", Above: 4, Create: true})
	if err != nil {
		t.Fatal(err)
	}
	resends := db.Resends("orders", 2)
	record, err := resends.Begin(t.Context(), resend.Record{ID: "r1", Who: "me", Why: "a test", BeganAt: time.Now(), Total: 7})
	if err != nil || record.Number != 1 || record.State != resend.Running {
		t.Fatalf("begun is %+v, %v", record, err)
	}
	return resends, record
}

func TestResends_NoEarlierTermTakesOrSavesOne(t *testing.T) {
	t.Parallel()
	resends, record := begunResend(t)
	if _, err := resends.Take(t.Context(), 1, 4); !errors.Is(err, resend.ErrNone) {
		t.Errorf("taken by a term that was over when it began: %v", err)
	}
	if _, err := resends.Take(t.Context(), 0, 1); err != nil {
		t.Errorf("taken of the other partition: %v", err)
	}
	if _, err := resends.Take(t.Context(), 1, 5); err != nil {
		t.Fatal(err)
	}
	place, err := bson.Marshal(bson.D{{Key: "after", Value: 1}})
	if err != nil {
		t.Fatal(err)
	}
	if err := resends.Save(t.Context(), record.ID, 1, resend.Part{Term: 5, Place: place, Read: 3, Overrun: 2, Stuck: "so"}); err != nil {
		t.Fatal(err)
	}
	if err := resends.Fence(t.Context(), 1, 6); err != nil {
		t.Fatal(err)
	}
	if err := resends.Save(t.Context(), record.ID, 1, resend.Part{Term: 5, Read: 1}); !errors.Is(err, resend.ErrSuperseded) {
		t.Errorf("saved by an earlier term: %v", err)
	}
	if _, err := resends.Take(t.Context(), 1, 5); !errors.Is(err, resend.ErrNone) {
		t.Errorf("taken by an earlier term: %v", err)
	}
	if taken, err := resends.Take(t.Context(), 1, 6); err != nil || taken.Parts[1].Read != 3 || taken.Parts[1].Overrun != 2 || taken.Parts[1].Stuck != "so" || string(taken.Parts[1].Place) != string(place) {
		t.Errorf("taken by the later term is %+v, %v, want what was saved", taken, err)
	}
}

func TestResends_OfTwoThatBeginAtOnceOneIsRefused(t *testing.T) {
	t.Parallel()
	resends := fresh(t).Resends("orders", 1)
	errs := make([]error, 4)
	var group sync.WaitGroup
	for i := range errs {
		group.Go(func() {
			_, errs[i] = resends.Begin(t.Context(), resend.Record{ID: string(rune('a' + i)), BeganAt: time.Now()})
		})
	}
	group.Wait()
	refused := 0
	for _, err := range errs {
		if errors.Is(err, mongostate.ErrResending) {
			refused++
		} else if err != nil {
			t.Error(err)
		}
	}
	if all, err := resends.List(t.Context(), 0); err != nil || len(all) != 1 || refused != 3 {
		t.Errorf("of four %d were refused, and %d are there, %v", refused, len(all), err)
	}
}

func TestResends_IsDoneWhenAllPartitionsAre(t *testing.T) {
	t.Parallel()
	resends, record := begunResend(t)
	for part, want := range []resend.State{resend.Running, resend.Done} {
		if _, err := resends.Take(t.Context(), part, 7); err != nil {
			t.Fatal(err)
		}
		if err := resends.Save(t.Context(), record.ID, part, resend.Part{Term: 7, Done: true, UpdatedAt: time.Now()}); err != nil {
			t.Fatal(err)
		}
		last, err := resends.Latest(t.Context())
		if err != nil || last.State != want || last.EndedAt.IsZero() != (want == resend.Running) {
			t.Errorf("behind partition %d it is %+v, %v, want it %s", part, last, err, want)
		}
		if _, err := resends.Take(t.Context(), part, 7); !errors.Is(err, resend.ErrNone) {
			t.Errorf("partition %d is taken again: %v", part, err)
		}
	}
	if second, err := resends.Begin(t.Context(), resend.Record{ID: "r2", BeganAt: time.Now()}); err != nil || second.Number != 2 {
		t.Errorf("the next one is %+v, %v", second, err)
	}
}

// What is paused is not taken, and keeps what was under way; of another number of
// partitions nothing is.
func TestResends_OnlyOneThatRunsIsTaken(t *testing.T) {
	t.Parallel()
	resends, record := begunResend(t)
	if _, err := resends.Take(t.Context(), 0, 1); err != nil {
		t.Fatal(err)
	}
	if changed, err := resends.Decide(t.Context(), record.ID, []resend.State{resend.Running}, resend.Paused, "me", "too fast"); err != nil || !changed {
		t.Fatalf("not paused: %v", err)
	}
	if _, err := resends.Take(t.Context(), 0, 1); !errors.Is(err, resend.ErrNone) {
		t.Errorf("taken while it is paused: %v", err)
	}
	if _, err := resends.Begin(t.Context(), resend.Record{ID: "r2", BeganAt: time.Now()}); !errors.Is(err, mongostate.ErrResending) {
		t.Errorf("another one is begun: %v", err)
	}
	if err := resends.Save(t.Context(), record.ID, 0, resend.Part{Term: 1, Read: 2}); err != nil {
		t.Errorf("what was under way is not kept: %v", err)
	}
	if changed, err := resends.Decide(t.Context(), record.ID, []resend.State{resend.Running}, resend.Paused, "me", ""); err != nil || changed {
		t.Errorf("paused twice: %t, %v", changed, err)
	}
}

// One part that is short makes the whole incomplete, whichever ends last.
func TestResends_IsIncompleteWhereAPartIsShort(t *testing.T) {
	t.Parallel()
	for short := range 2 {
		resends, record := begunResend(t)
		for part := range 2 {
			if _, err := resends.Take(t.Context(), part, 7); err != nil {
				t.Fatal(err)
			}
			p := resend.Part{Term: 7, Done: true, UpdatedAt: time.Now()}
			if part == short {
				p.Short = "its collection is gone"
			}
			if err := resends.Save(t.Context(), record.ID, part, p); err != nil {
				t.Fatal(err)
			}
		}
		last, err := resends.Latest(t.Context())
		if err != nil || last.State != resend.Incomplete || last.EndedAt.IsZero() || last.Parts[short].Short == "" {
			t.Errorf("with partition %d short it is %+v, %v, want it incomplete", short, last, err)
		}
		if second, err := resends.Begin(t.Context(), resend.Record{ID: "r2", BeganAt: time.Now()}); err != nil || second.Number != 2 {
			t.Errorf("the next one is %+v, %v", second, err)
		}
	}
}
