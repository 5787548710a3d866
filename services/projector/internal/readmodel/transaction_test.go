package readmodel_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"changerelay/services/projector/internal/projection"
	"changerelay/services/projector/internal/readmodel"
	"changerelay/services/projector/internal/readmodel/readmodeltest"
	"changerelay/services/projector/internal/sandboxtest"
)

// died leaves a transaction open that has changed a document, as one does that is
// killed.
func died(t *testing.T, uri, application, database, collection string, id any) *mongo.Session {
	t.Helper()
	client, err := mongo.Connect(options.Client().ApplyURI(uri).SetAppName(application))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Disconnect(context.WithoutCancel(t.Context())) })
	session, err := client.StartSession()
	if err == nil {
		err = session.StartTransaction()
	}
	if err != nil {
		t.Fatal(err)
	}
	result, err := client.Database(database).Collection(collection).UpdateOne(mongo.NewSessionContext(t.Context(), session),
		bson.D{{Key: "_id", Value: id}}, bson.D{{Key: "$set", Value: bson.D{{Key: "dead", Value: true}}}})
	if err != nil || result.MatchedCount != 1 {
		t.Fatalf("change a document: got %+v and %v", result, err)
	}
	return session
}

// impatient is a store, on a server of its own, whose operations end soon, and what it
// sends.
func impatient(t *testing.T) (s *readmodel.Store, uri string, sent *recorder) {
	t.Helper()
	uri, sent = sandboxtest.StartWith(t, "").MongoURI, &recorder{}
	return storeAt(t, options.Client().ApplyURI(uri).SetMonitor(sent.monitor()).SetTimeout(2500*time.Millisecond)), uri, sent
}

// patient is another store of the same documents, whose operations have all the time
// that they need.
func patient(t *testing.T, uri string) *readmodel.Store {
	t.Helper()
	return storeAt(t, options.Client().ApplyURI(uri))
}

func storeAt(t *testing.T, server *options.ClientOptions) *readmodel.Store {
	t.Helper()
	client, err := mongo.Connect(server)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Disconnect(context.WithoutCancel(t.Context())) })
	return readmodel.New(client, readmodel.Config{Database: "shop", Feed: readmodel.Feed{Topic: "topic", Subscription: "projector"}})
}

// tried tries to write as a handler does, again and again, until it is done or enough.
func tried(ctx context.Context, s *readmodel.Store, w projection.Write, enough func() bool) error {
	for {
		_, err := s.Writes.Write(ctx, []projection.Write{w})
		if err == nil || ctx.Err() != nil || enough() {
			return err
		}
	}
}

// A process that is killed within a transaction keeps its documents from others only
// until one of them has waited for a moment.
func TestIdle_ATransactionOfADeadProjectorIsEnded(t *testing.T) {
	t.Parallel()
	own := counted("a", "a", 1)
	own.Projection, own.Collection, own.Keyed = "own", "own", false
	ownNext := own
	ownNext.Event = readmodeltest.Event("a", 2)
	for name, tt := range map[string]struct {
		first, next projection.Write
	}{
		"that another transaction meets": {counted("all", "a", 1), counted("all", "a", 2)},
		"that a single write waits for":  {own, ownNext},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, uri, sent := impatient(t)
			write(t, patient(t, uri), tt.first)
			died(t, uri, readmodel.Application, "shop", tt.first.Collection, tt.first.ID)
			sent.take()
			if err := tried(t.Context(), s, tt.next, func() bool { return false }); err != nil {
				t.Fatal(err)
			}
			names, commands := sent.take()
			if !slices.Contains(names, "killSessions") {
				t.Errorf("got %v, want the dead one's session killed", names)
			}
			// What a server says of sessions that are at work is none of idle ones.
			if !slices.ContainsFunc(commands, func(c bson.Raw) bool { return bytes.Contains(c, []byte("idleSession\x00")) }) {
				t.Error("it has looked at sessions that are not idle")
			}
		})
	}
}

// What others do in a transaction is theirs, however long it takes, and so is what a
// projector does that works.
func TestIdle_ATransactionOfTheLivingIsLeftAlone(t *testing.T) {
	t.Parallel()
	for application, every := range map[string]time.Duration{"shop": time.Hour, readmodel.Application: 50 * time.Millisecond} {
		t.Run(application, func(t *testing.T) {
			t.Parallel()
			s, uri, sent := impatient(t)
			write(t, patient(t, uri), counted("all", "a", 1))
			session := died(t, uri, application, "shop", "totals", "all")
			looked, done := 0, make(chan error)
			ctx, end := context.WithCancel(t.Context())
			go func() { done <- work(ctx, session, every) }()
			sent.take()
			err := tried(t.Context(), s, counted("all", "a", 2), func() bool {
				names, commands := sent.take()
				if slices.Contains(names, "killSessions") {
					t.Errorf("got %v, want nothing killed", names)
				}
				for _, command := range commands {
					if bytes.Contains(command, []byte("$currentOp")) {
						looked++
					}
				}
				return looked > 3
			})
			if err == nil {
				t.Error("it was written, want the other's transaction in its way")
			}
			end()
			if err := errors.Join(<-done, session.AbortTransaction(t.Context())); err != nil {
				t.Errorf("the other's transaction: got %v, want it open", err)
			}
			write(t, patient(t, uri), counted("all", "a", 2))
		})
	}
}

// work reads in a session's transaction again and again.
func work(ctx context.Context, session *mongo.Session, every time.Duration) error {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	within := mongo.NewSessionContext(context.WithoutCancel(ctx), session)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		if err := session.Client().Database("shop").Collection("totals").FindOne(within, bson.D{}).Err(); err != nil {
			return err
		}
	}
}
