package readmodel_test

import (
	"context"
	"errors"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/delivery"
	"changerelay/services/projector/internal/projection"
	"changerelay/services/projector/internal/readmodel"
	"changerelay/services/projector/internal/readmodel/readmodeltest"
	"changerelay/services/projector/internal/session"
)

// A message that a redrive takes away while its halt is put back is not missed.
func TestHalt_PutBackCountsWhatARedriveHasLeft(t *testing.T) {
	t.Parallel()
	counting := make(chan struct{}, 1)
	s := newSubject(t, &event.CommandMonitor{Started: func(_ context.Context, e *event.CommandStartedEvent) {
		if name, _ := e.Command.Lookup("update").StringValueOK(); name == projection.ParkedMessages && len(counting) == 0 {
			counting <- struct{}{}
		}
	}})
	if _, err := s.Halt(t.Context(), delivery.Halt{Event: *readmodeltest.Event("a", 1)}); err != nil {
		t.Fatal(err)
	}
	for n := range int64(3) {
		e := readmodeltest.Event("a", n+1)
		m := session.Message{Message: contract.Message{ID: e.ID, Body: []byte("{}")}}
		if err := s.Park(t.Context(), []delivery.Parked{{Message: m, Event: *e}}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.db.Collection(projection.HaltedAggregates).DeleteOne(t.Context(), bson.D{{Key: "_id", Value: "a"}}); err != nil {
		t.Fatal(err)
	}
	other, _ := servers.Mongo(t, nil)
	redrive, err := other.StartSession()
	if err == nil {
		err = redrive.StartTransaction()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer redrive.EndSession(context.WithoutCancel(t.Context()))
	parked := other.Database(s.db.Name()).Collection(projection.ParkedMessages)
	if _, err := parked.DeleteOne(mongo.NewSessionContext(t.Context(), redrive), bson.D{{Key: "_id.eventId", Value: "a-1"}}); err != nil {
		t.Fatal(err)
	}
	<-counting // of what was parked
	halted := make(chan error, 1)
	go func() {
		_, err := s.Halt(t.Context(), delivery.Halt{Event: *readmodeltest.Event("a", 1), Uncounted: true})
		halted <- err
	}()
	<-counting
	if err := errors.Join(redrive.CommitTransaction(t.Context()), <-halted); err != nil {
		t.Fatal(err)
	}
	if n, err := s.Missing(t.Context(), "a"); err != nil || n != 0 {
		t.Errorf("%d and %v are missed, want none", n, err)
	}
}

// A halt that is lifted while its messages are looked for is not a lost one.
func TestUnhalted_PassesOverAHaltThatIsLiftedMeanwhile(t *testing.T) {
	t.Parallel()
	var lift func()
	s := newSubject(t, &event.CommandMonitor{Started: func(_ context.Context, e *event.CommandStartedEvent) {
		if name, _ := e.Command.Lookup("find").StringValueOK(); name == projection.HaltedAggregates && lift != nil {
			lift()
		}
	}})
	e := readmodeltest.Event("a", 1)
	_, err := s.Halt(t.Context(), delivery.Halt{Event: *e})
	err = errors.Join(err, s.Park(t.Context(), []delivery.Parked{{Message: session.Message{Message: contract.Message{ID: e.ID, Body: []byte("{}")}}, Event: *e}}))
	if err != nil {
		t.Fatal(err)
	}
	client, _ := servers.Mongo(t, nil)
	other := readmodel.New(client, readmodel.Config{Database: s.db.Name()})
	lift = func() {
		lift = nil
		_, err := other.Parked.Unpark(t.Context(), e)
		lifted, liftErr := other.Parked.Lift(t.Context(), "a")
		if err := errors.Join(err, liftErr); err != nil || !lifted {
			t.Errorf("lift: got %t and %v", lifted, err)
		}
	}
	if lost, err := s.Unhalted(t.Context(), "a"); err != nil || len(lost) > 0 || lift != nil {
		t.Errorf("got %v and %v, want none, and the halt lifted", lost, err)
	}
}
