package readmodel_test

import (
	"context"
	"errors"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"changerelay/services/projector/internal/delivery"
	"changerelay/services/projector/internal/projection"
	"changerelay/services/projector/internal/readmodel"
	"changerelay/services/projector/internal/readmodel/readmodeltest"
)

// A halt that is stored while its note is looked for was not deleted.
func TestUnhalted_TakesNoHaltForDeletedThatIsStoredMeanwhile(t *testing.T) {
	t.Parallel()
	var halt func()
	s := newSubject(t, &event.CommandMonitor{Started: func(_ context.Context, e *event.CommandStartedEvent) {
		if name, _ := e.Command.Lookup("find").StringValueOK(); name == projection.Positions && halt != nil {
			halt()
		}
	}})
	client, _ := servers.Mongo(t, nil)
	other := readmodel.New(client, readmodel.Config{Database: s.db.Name()})
	halt = func() {
		halt = nil
		if _, err := other.Parking.Halt(t.Context(), delivery.Halt{Event: *readmodeltest.Event("a", 1)}); err != nil {
			t.Error(err)
		}
	}
	if lost, err := s.Unhalted(t.Context()); err != nil || len(lost) > 0 || halt != nil {
		t.Errorf("got %v and %v, want none, and a halt stored meanwhile", lost, err)
	}
}

// A halt that is lifted while it is noted leaves no note behind.
func TestNoteHalts_OfOneThatIsLiftedMeanwhileNothingIsLeft(t *testing.T) {
	t.Parallel()
	noting := make(chan struct{}, 1)
	told := func(e *event.CommandFinishedEvent) {
		if e.CommandName == "findAndModify" && len(noting) == 0 {
			noting <- struct{}{}
		}
	}
	s := newSubject(t, &event.CommandMonitor{
		Succeeded: func(_ context.Context, e *event.CommandSucceededEvent) { told(&e.CommandFinishedEvent) },
		Failed:    func(_ context.Context, e *event.CommandFailedEvent) { told(&e.CommandFinishedEvent) },
	})
	if _, err := s.Halt(t.Context(), delivery.Halt{Event: *readmodeltest.Event("a", 1)}); err != nil {
		t.Fatal(err)
	}
	<-noting // that it was halted
	if _, err := s.db.Collection(projection.Positions).DeleteMany(t.Context(), bson.D{}); err != nil {
		t.Fatal(err)
	}
	other, _ := servers.Mongo(t, nil)
	lift, err := other.StartSession()
	if err == nil {
		err = lift.StartTransaction()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer lift.EndSession(context.WithoutCancel(t.Context()))
	halts := other.Database(s.db.Name()).Collection(projection.HaltedAggregates)
	if _, err := halts.DeleteOne(mongo.NewSessionContext(t.Context(), lift), bson.D{{Key: "_id", Value: "a"}}); err != nil {
		t.Fatal(err)
	}
	noted := make(chan error, 1)
	go func() { noted <- s.NoteHalts(t.Context()) }()
	<-noting
	if err := errors.Join(lift.CommitTransaction(t.Context()), <-noted); err != nil {
		t.Fatal(err)
	}
	if lost, err := s.Unhalted(t.Context()); err != nil || len(lost) > 0 {
		t.Errorf("got %v and %v, want none", lost, err)
	}
}
