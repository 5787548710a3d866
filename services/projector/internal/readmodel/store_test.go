package readmodel_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.uber.org/goleak"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/delivery"
	"changerelay/services/projector/internal/projection"
	"changerelay/services/projector/internal/readmodel"
	"changerelay/services/projector/internal/readmodel/readmodeltest"
	"changerelay/services/projector/internal/sandboxtest"
)

var servers *sandboxtest.Endpoints

func TestMain(m *testing.M) {
	var err error
	if servers, err = sandboxtest.Start(""); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	if err := errors.Join(servers.Stop(), goleak.Find()); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// subject is the store with what the suite needs besides.
type subject struct {
	*readmodel.Store
	ports
	db *mongo.Database
}

// ports are the types of a store in one.
type ports struct {
	*readmodel.Writes
	*readmodel.Halts
	*readmodel.Parking
	*readmodel.Parked
	*readmodel.AggregateVersions
}

func (p ports) Position(ctx context.Context, w *projection.Write) (delivery.Position, error) {
	return p.Parked.Position(ctx, w)
}

func (p ports) Mark(ctx context.Context, aggregate string) (*projection.Halted, error) {
	return p.Parked.Mark(ctx, aggregate)
}

func newSubject(t *testing.T, monitor *event.CommandMonitor) *subject {
	t.Helper()
	client, database := servers.Mongo(t, monitor)
	s := readmodel.New(client, readmodel.Config{Database: database, Feed: readmodel.Feed{Topic: "topic", Subscription: "projector"}, Marked: []string{"c", "other"}})
	return &subject{s, ports{s.Writes, s.Halts, s.Parking, s.Parked, s.AggregateVersions}, client.Database(database)}
}

// The body of a message that could not be kept is in the dead letters, and nobody
// has seen it: its discard ends the place alone.
func TestDiscard_OfAPlaceIsNoDecisionAboutTheMessage(t *testing.T) {
	t.Parallel()
	s := newSubject(t, nil)
	e := readmodeltest.Event("a", 1)
	if _, err := s.Halt(t.Context(), delivery.Halt{Event: *e}); err != nil {
		t.Fatal(err)
	}
	if err := s.Park(t.Context(), []delivery.Parked{{Event: *e}}); err != nil {
		t.Fatal(err)
	}
	err := s.Store.Parked.Each(t.Context(), "a", func(p readmodel.ParkedMessage) error { return s.Store.Parked.Discard(t.Context(), &p) })
	if err != nil {
		t.Fatal(err)
	}
	if there, err := s.IsParked(t.Context(), e); err != nil || there {
		t.Errorf("parked: got %t and %v, want it gone", there, err)
	}
	if discarded, err := s.Discarded(t.Context(), e); err != nil || discarded {
		t.Errorf("discarded: got %t and %v, want not", discarded, err)
	}
}

func TestStore_StoreConforms(t *testing.T) {
	t.Parallel()
	readmodeltest.Conformance(t, func(t *testing.T) readmodeltest.ReadModel { return newSubject(t, nil) })
}

func (s *subject) Fields(ctx context.Context, collection string, id any) (string, error) {
	var fields map[string]any
	err := s.db.Collection(collection).FindOne(ctx, bson.D{{Key: "_id", Value: id}}).Decode(&fields)
	if errors.Is(err, mongo.ErrNoDocuments) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	relay, _ := fields["_relay"].(bson.D)
	delete(fields, "_id")
	delete(fields, "_relay")
	for _, e := range relay {
		if e.Key == "deletedAt" && len(fields) == 0 {
			return "deleted", nil
		}
	}
	return readmodeltest.Canonical(fields)
}

func (s *subject) Marked(ctx context.Context, collection string, id any) (string, error) {
	var document struct {
		Relay struct {
			Halted struct {
				Reason string `bson:"reason"`
			} `bson:"halted"`
		} `bson:"_relay"`
	}
	err := s.db.Collection(collection).FindOne(ctx, bson.D{{Key: "_id", Value: id}}).Decode(&document)
	if errors.Is(err, mongo.ErrNoDocuments) {
		err = nil
	}
	return document.Relay.Halted.Reason, err
}

func (s *subject) Parked(ctx context.Context, aggregate string) ([]contract.Sequence, error) {
	var sequences []contract.Sequence
	err := s.Store.Parked.Each(ctx, aggregate, func(p readmodel.ParkedMessage) error {
		sequences = append(sequences, p.Sequence)
		return nil
	})
	return sequences, err
}

func (s *subject) Discard(ctx context.Context, e *contract.Event) error {
	return s.Store.Parked.Discard(ctx, &readmodel.ParkedMessage{AggregateID: e.AggregateID, Sequence: e.Sequence, EventID: e.ID, Message: contract.Message{Body: []byte("x")}})
}

func (s *subject) PutForeign(ctx context.Context, collection string, id any) error {
	_, err := s.db.Collection(collection).InsertOne(ctx, bson.D{{Key: "_id", Value: id}, {Key: "mine", Value: 1}})
	return err
}

// recorder notes the commands of a client.
type recorder struct {
	mu       sync.Mutex
	commands []bson.Raw
}

func (r *recorder) monitor() *event.CommandMonitor {
	return &event.CommandMonitor{Started: func(_ context.Context, e *event.CommandStartedEvent) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.commands = append(r.commands, append(bson.Raw(nil), e.Command...))
	}}
}

// take returns the commands since the last take, by name.
func (r *recorder) take() (names []string, commands []bson.Raw) {
	r.mu.Lock()
	defer r.mu.Unlock()
	commands, r.commands = r.commands, nil
	for _, command := range commands {
		elements, _ := command.Elements()
		names = append(names, elements[0].Key())
	}
	return names, commands
}

func set(aggregate string, n int64) projection.Write {
	return projection.Write{
		Projection: "p", Collection: "c", ID: aggregate, Event: readmodeltest.Event(aggregate, n),
		Update: bson.D{{Key: "$set", Value: bson.D{{Key: "n", Value: n}}}},
	}
}

func TestStore_ABatchIsOneRoundTripAndARepeatedOneThree(t *testing.T) {
	t.Parallel()
	var r recorder
	s := newSubject(t, r.monitor())
	writes := make([]projection.Write, 50)
	for i := range writes {
		writes[i] = set("a", int64(i+1))
	}
	r.take()
	if _, err := s.Write(t.Context(), writes); err != nil {
		t.Fatalf("write: %v", err)
	}
	if names, _ := r.take(); strings.Join(names, " ") != "update" {
		t.Errorf("commands of a batch: got %v, want one update", names)
	}
	if _, err := s.Write(t.Context(), writes); err != nil {
		t.Fatalf("write again: %v", err)
	}
	if names, _ := r.take(); strings.Join(names, " ") != "update find" {
		t.Errorf("commands of a repeated batch: got %v, want an update and a find", names)
	}
	if _, err := s.Write(t.Context(), append(writes[40:], set("a", 51))); err != nil {
		t.Fatalf("write again and more: %v", err)
	}
	if names, _ := r.take(); strings.Join(names, " ") != "update find update" {
		t.Errorf("commands of a batch repeated in part: got %v, want an update, a find and an update", names)
	}
}

func TestStore_EveryCommandAsksForAMajority(t *testing.T) {
	t.Parallel()
	var r recorder
	s := newSubject(t, r.monitor())
	ctx := t.Context()
	steps := []error{
		second(s.Write(ctx, []projection.Write{set("a", 1), set("a", 2)})),
		second(s.Write(ctx, []projection.Write{set("a", 1)})),
		second(s.Halt(ctx, delivery.Halt{Event: *readmodeltest.Event("a", 1)})),
		s.Park(ctx, []delivery.Parked{{Event: *readmodeltest.Event("a", 1)}}),
		second(s.Halted(ctx, "a")),
		second(s.List(ctx, 5)),
		second(s.Unpark(ctx, readmodeltest.Event("a", 1))),
		second(s.Lift(ctx, "a")),
	}
	if err := errors.Join(steps...); err != nil {
		t.Fatal(err)
	}
	names, commands := r.take()
	for i, command := range commands {
		if command.Lookup("autocommit").Type != 0 && names[i] != "commitTransaction" {
			continue // a transaction asks for it as a whole, when it commits
		}
		concern := command.Lookup("writeConcern", "w")
		if names[i] == "find" {
			concern = command.Lookup("readConcern", "level")
		}
		if text, ok := concern.StringValueOK(); !ok || text != "majority" {
			t.Errorf("%s asks for %s, want majority: %s", names[i], concern, command)
		}
	}
}

func second[T any](_ T, err error) error { return err }

func TestStore_ADocumentCarriesItsPosition(t *testing.T) {
	t.Parallel()
	s := newSubject(t, nil)
	before := time.Now().Truncate(time.Millisecond)
	w := set("a", 7)
	w.By = "p/1"
	if _, err := s.Write(t.Context(), []projection.Write{w}); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Relay struct {
			Sequence, Position, EventID, EventType string
			EventTime, UpdatedAt                   time.Time
			AggregateVersion, Term                 int64
		} `bson:"_relay"`
	}
	raw := sandboxtest.Documents(t, s.db, "c")["a"].Lookup("_relay").Document()
	got.Relay.Sequence = raw.Lookup("sequence").StringValue()
	got.Relay.Position = raw.Lookup("position").StringValue()
	got.Relay.EventID = raw.Lookup("eventId").StringValue()
	got.Relay.EventType = raw.Lookup("eventType").StringValue()
	got.Relay.EventTime = raw.Lookup("eventTime").Time().UTC()
	got.Relay.UpdatedAt = raw.Lookup("updatedAt").Time()
	got.Relay.AggregateVersion = raw.Lookup("aggregateVersion").Int64()
	got.Relay.Term = raw.Lookup("term").Int64()
	e := readmodeltest.Event("a", 7)
	if got.Relay.Sequence != string(e.Sequence) || got.Relay.Position != string(e.Position) || got.Relay.EventID != e.ID ||
		got.Relay.EventType != e.Type || !got.Relay.EventTime.Equal(e.Time) || got.Relay.AggregateVersion != 7 || got.Relay.Term != 3 ||
		got.Relay.UpdatedAt.Before(before) || raw.Lookup("deletedAt").Type != 0 || raw.Lookup("by").StringValue() != "p/1" {
		t.Errorf("bookkeeping: got %s, want that of %+v", raw, e)
	}
}

func TestStore_AnotherUniqueIndexIsNotTakenForARepeat(t *testing.T) {
	t.Parallel()
	s := newSubject(t, nil)
	_, err := s.db.Collection("c").Indexes().CreateOne(t.Context(), mongo.IndexModel{
		Keys: bson.D{{Key: "n", Value: 1}}, Options: options.Index().SetUnique(true),
	})
	if err != nil {
		t.Fatalf("create index: %v", err)
	}
	if _, err := s.Write(t.Context(), []projection.Write{set("a", 1)}); err != nil {
		t.Fatal(err)
	}
	w := set("b", 2)
	w.Update = bson.D{{Key: "$set", Value: bson.D{{Key: "n", Value: int64(1)}}}}
	_, err = s.Write(t.Context(), []projection.Write{w})
	if rejected, ok := errors.AsType[*delivery.RejectedError](err); !ok || !strings.Contains(rejected.Reason, "unique index on n ") {
		t.Errorf("got %v, want the write rejected, naming the index's field", err)
	}
}

func TestStore_ADocumentThatGrowsTooLargeIsRejected(t *testing.T) {
	t.Parallel()
	s := newSubject(t, nil)
	big := func(n int64, size int) projection.Write {
		w := set("a", n)
		w.Update = bson.D{{Key: "$set", Value: bson.D{{Key: fmt.Sprintf("f%d", n), Value: strings.Repeat("x", size)}}}}
		return w
	}
	tests := []struct {
		name   string
		writes []projection.Write
		index  int
	}{
		{"by what is there already", []projection.Write{big(1, 9<<20), big(2, 9<<20)}, 1},
		{"by itself, behind one that fits", []projection.Write{big(3, 10), big(4, 17<<20)}, 1},
	}
	for _, tt := range tests {
		_, err := s.Write(t.Context(), tt.writes)
		if rejected, ok := errors.AsType[*delivery.RejectedError](err); !ok || rejected.Index != tt.index {
			t.Errorf("%s: got %v, want write %d rejected", tt.name, err, tt.index)
		}
	}
}

func TestStore_SetupMakesCollectionsAndIndexesOnceAndAgain(t *testing.T) {
	t.Parallel()
	s := newSubject(t, nil)
	for range 2 {
		if err := s.Setup(t.Context(), []string{"c", "d"}, time.Hour); err != nil {
			t.Fatalf("setup: %v", err)
		}
	}
	if allowed, err := s.EnsureIndexes(t.Context(), []string{"c", "d"}, time.Hour); err != nil || !allowed {
		t.Errorf("the indexes that are there: got %t and %v, want true", allowed, err)
	}
	names, err := s.db.ListCollectionNames(t.Context(), bson.D{{Key: "name", Value: bson.D{{Key: "$in", Value: bson.A{"c", "d", "parked_messages", "halted_aggregates", "applied_positions"}}}}})
	if err != nil || len(names) != 5 {
		t.Errorf("collections: got %q and %v, want five", names, err)
	}
	specs, err := s.db.Collection("d").Indexes().ListSpecifications(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, spec := range specs {
		if spec.Name == "tombstones" && spec.ExpireAfterSeconds != nil && *spec.ExpireAfterSeconds == 3600 {
			return
		}
	}
	t.Errorf("indexes: got %+v, want tombstones with an hour", specs)
}

func TestStore_AnIndexWithAnotherTimeIsToldAndTheOthersAreMade(t *testing.T) {
	t.Parallel()
	s := newSubject(t, nil)
	if err := s.Setup(t.Context(), []string{"c"}, time.Hour); err != nil {
		t.Fatal(err)
	}
	_, err := s.EnsureIndexes(t.Context(), []string{"c", "d"}, 2*time.Hour)
	if !errors.Is(err, readmodel.ErrOtherExpiry) || !strings.Contains(err.Error(), `of "c"`) || strings.Contains(err.Error(), `of "d"`) {
		t.Errorf("got %v, want the index of c alone told", err)
	}
	specs, err := s.db.Collection("d").Indexes().ListSpecifications(t.Context())
	if err != nil || len(specs) != 2 {
		t.Errorf("indexes of d: got %d and %v, want that of tombstones beside _id", len(specs), err)
	}
}

func TestStore_AnUnreachableServerPasses(t *testing.T) {
	t.Parallel()
	client, err := mongo.Connect(options.Client().ApplyURI("mongodb://127.0.0.1:1/?directConnection=true").
		SetServerSelectionTimeout(200 * time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Disconnect(context.WithoutCancel(t.Context())) })
	outcomes, err := readmodel.New(client, readmodel.Config{Database: "x"}).Writes.Write(t.Context(), []projection.Write{set("a", 1)})
	if _, rejected := errors.AsType[*delivery.RejectedError](err); err == nil || rejected || outcomes[0] != delivery.Unknown {
		t.Errorf("got %v and %v, want an error that passes and an unknown outcome", outcomes, err)
	}
	if !errors.Is(err, delivery.ErrUnreachable) {
		t.Errorf("got %v, want ErrUnreachable", err)
	}
}
