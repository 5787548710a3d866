package readmodel_test

import (
	"context"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"

	"changerelay/services/projector/internal/delivery"
	"changerelay/services/projector/internal/projection"
	"changerelay/services/projector/internal/readmodel/readmodeltest"
)

// interruption ends a context as soon as the server has answered an update of a
// collection: after it, and before the transaction that it may be in commits.
type interruption struct {
	collection string
	request    int64
	end        context.CancelFunc // nil where nothing is to be interrupted
}

func (i *interruption) monitor() *event.CommandMonitor {
	return &event.CommandMonitor{
		Started: func(_ context.Context, e *event.CommandStartedEvent) {
			if name, _ := e.Command.Lookup("update").StringValueOK(); name == i.collection {
				i.request = e.RequestID
			}
		},
		Succeeded: func(_ context.Context, e *event.CommandSucceededEvent) {
			if e.RequestID == i.request && i.end != nil {
				i.end()
			}
		},
	}
}

// Halt and mark are one transaction, and so are lifting it and taking the mark
// away: where the one is not stored, the other is not.
func TestStore_AHaltAndItsMarkAreStoredTogetherOrNotAtAll(t *testing.T) {
	t.Parallel()
	during := interruption{collection: "c"}
	s := newSubject(t, during.monitor())
	if _, err := s.Write(t.Context(), []projection.Write{set("a", 1)}); err != nil {
		t.Fatal(err)
	}
	interrupted := func(name string, f func(context.Context) error) {
		t.Helper()
		ctx, end := context.WithCancel(t.Context())
		during.request, during.end = 0, end
		if err := f(ctx); err == nil || during.request == 0 {
			t.Errorf("%s: got %v after request %d, want it interrupted after it has marked", name, err, during.request)
		}
		during.end = nil
	}
	want := func(when string, halted, marked bool) {
		t.Helper()
		halt, err := s.Halted(t.Context(), "a")
		if err != nil || (halt != "") != halted {
			t.Errorf("%s: halted as %q (%v), want halted: %t", when, halt, err, halted)
		}
		mark, err := s.db.Collection("c").CountDocuments(t.Context(), bson.D{{Key: "_id", Value: "a"}, {Key: "_relay.halted", Value: bson.D{{Key: "$ne", Value: nil}}}})
		if err != nil || (mark == 1) != marked {
			t.Errorf("%s: %d documents are marked (%v), want it marked: %t", when, mark, err, marked)
		}
	}
	halt := func(ctx context.Context) error {
		_, err := s.Halt(ctx, delivery.Halt{Event: *readmodeltest.Event("a", 2), Reason: "because"})
		return err
	}
	interrupted("halt", halt)
	want("after an interrupted halt", false, false)
	if err := halt(t.Context()); err != nil {
		t.Fatal(err)
	}
	want("halted", true, true)
	interrupted("lift", func(ctx context.Context) error { return second(s.Lift(ctx, "a")) })
	want("after an interrupted lift", true, true)
	if lifted, err := s.Lift(t.Context(), "a"); err != nil || !lifted {
		t.Fatalf("lift: got %t and %v", lifted, err)
	}
	want("lifted", false, false)
}
