package witness

import (
	"context"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"golang.org/x/sync/errgroup"

	"changerelay/services/e2e/internal/harness/orders"
)

// atStop counts what is left after a stop.
func (s *stage) atStop(t *testing.T, since time.Time) map[string]int {
	t.Helper()
	counts := map[string]int{}
	violations, err := s.AtStop(t.Context(), since)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range violations {
		counts[f.Name] = f.Count
	}
	return counts
}

// holdOf takes a session of a subscription, and keeps it.
func (s *stage) holdOf(t *testing.T, subscription string) {
	t.Helper()
	client, err := azservicebus.NewClientFromConnectionString(s.endpoints.ServiceBus, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close(context.Background()) })
	if _, err := client.AcceptSessionForSubscription(t.Context(), s.names.Topic, subscription, "held", nil); err != nil {
		t.Fatal(err)
	}
}

// elsewhere is a client of another program.
func (s *stage) elsewhere(t *testing.T) *mongo.Client {
	t.Helper()
	client, err := mongo.Connect(options.Client().ApplyURI(s.endpoints.MongoURI).SetAppName("a relay"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Disconnect(context.Background()) })
	return client
}

// A lock that nobody renews ends by itself, so that whoever looks for long enough finds none.
func TestAtStop_FindsLockedSessionsBeforeTheirLocksEnd(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	if got := s.atStop(t, time.Time{}); got[SessionsLocked] != 0 || len(got) != 3 {
		t.Errorf("with nothing left: found %v", got)
	}
	s.holdOf(t, s.names.Subscription)
	if got := s.atStop(t, time.Time{}); got[SessionsLocked] != 1 {
		t.Errorf("with a session held: found %v, want it", got)
	}
	of := s.names.Subscription
	s.Witness.names.Subscription, s.subscriptions = s.names.Observer, nil
	s.AwaitBeside(of)
	if got, err := s.locked(t.Context()); err != nil || got != 1 {
		t.Errorf("with a session of another subscription held: found %d, %v", got, err)
	}
}

// A stream on several collections is one on their database, and a publisher's resends and
// copies read the source with cursors that are no streams.
func TestAtStop_FindsCursorsThatOthersLeaveOpen(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	insert(t, s.Client.Database(s.names.SourceDatabase).Collection(s.names.SourceCollection), bson.D{{Key: "_id", Value: 1}}, bson.D{{Key: "_id", Value: 2}}, bson.D{{Key: "_id", Value: 3}})
	own, err := s.Client.Database(s.names.SourceDatabase).Watch(t.Context(), bson.A{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = own.Close(context.Background()) })
	if got := s.atStop(t, time.Time{}); got[CursorsOpen] != 0 {
		t.Errorf("with a stream of the witness: found %v, want none", got)
	}
	count := func(since time.Time) int {
		t.Helper()
		found, err := s.openCursors(t.Context(), since)
		if err != nil {
			t.Fatal(err)
		}
		return found.Count
	}
	client := s.elsewhere(t)
	events := client.Database(s.names.SourceDatabase).Collection(s.names.SourceCollection)
	open := func(what string, cursor interface{ Close(context.Context) error }, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		if got := count(time.Time{}); got != 1 {
			t.Errorf("%s: found %d, want it", what, got)
		}
		if got := count(time.Now()); got != 0 {
			t.Errorf("%s, from before a kill: found %d, want none", what, got)
		}
		if err := cursor.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	stream, err := events.Watch(t.Context(), bson.A{})
	open("a stream on the collection", stream, err)
	stream, err = events.Database().Watch(t.Context(), bson.A{})
	open("a stream on its database", stream, err)
	cursor, err := events.Find(t.Context(), bson.D{}, options.Find().SetBatchSize(1))
	open("a cursor", cursor, err)
	stream, err = client.Database(s.names.StateDatabase).Collection(leases).Watch(t.Context(), bson.A{})
	open("a stream on leases", stream, err)
	_, err = events.Find(t.Context(), bson.D{}, options.Find().SetBatchSize(1))
	if got := s.atStop(t, time.Time{}); err != nil || got[CursorsOpen] != 1 {
		t.Errorf("after a stop: found %v, %v, want the cursor that is left", got, err)
	}
}

func TestAtStop_FindsLeasesThatAreStillHeld(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	killed := time.Now()
	lease := func(id, leader string, renewed time.Time) bson.D {
		return bson.D{{Key: "_id", Value: id}, {Key: "leaderId", Value: leader}, {Key: "heartbeatAt", Value: renewed}}
	}
	insert(t, s.State().Collection(leases), lease("given back", "", killed.Add(time.Minute)), lease("held", "publisher-1", killed.Add(time.Minute)), lease("of the dead", "publisher-2", killed.Add(-time.Minute)))
	if got, err := s.held(t.Context(), killed); err != nil || got.Count != 1 {
		t.Errorf("after a kill: got %v, %v, want the one that was renewed since", got, err)
	}
	if got := s.atStop(t, time.Time{}); got[LeasesHeld] != 2 {
		t.Errorf("got %v, want both that have a holder", got)
	}
}

// sending is a source whose events are sent as soon as they are written.
type sending struct{ *azservicebus.Sender }

func (s sending) Insert(ctx context.Context, events []orders.Event) error {
	for _, e := range events {
		if err := s.SendMessage(ctx, &azservicebus.Message{SessionID: &e.Aggregate, PartitionKey: &e.Aggregate}, nil); err != nil {
			return err
		}
	}
	return nil
}

// At rest nobody holds anything that could be left behind.
func TestStopAtWork_StopsOnceASessionIsHeld(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	client, err := azservicebus.NewClientFromConnectionString(s.endpoints.ServiceBus, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close(context.Background()) })
	var g errgroup.Group
	g.Go(func() error {
		_, err := client.AcceptNextSessionForSubscription(t.Context(), s.names.Topic, s.names.Subscription, nil)
		return err
	})
	for _, err := range s.StopAtWork(t.Context(), sending{s.sender}) {
		t.Error(err)
	}
	if locked, err := s.locked(t.Context()); err != nil || locked != 1 {
		t.Errorf("after the stop: got %d sessions locked, %v, want the one that there is work for", locked, err)
	}
	if err := g.Wait(); err != nil {
		t.Error(err)
	}
}

func TestAtRest_ASubscriptionThatIsNotThereIsNotEmpty(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.AwaitBeside("nowhere")
	if n, err := s.queued(t.Context()); err == nil {
		t.Errorf("queued: got %d, want an error", n)
	}
	if locked, err := s.locked(t.Context()); err == nil {
		t.Errorf("locked: got %d, want an error", locked)
	}
}
