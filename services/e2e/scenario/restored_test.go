package scenario

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus/admin"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"changerelay/services/e2e/internal/harness/cluster"
)

// stepsAndTotal also counts the events of all aggregates in one document.
const stepsAndTotal = steps + `  - name: total
    collection: total
    key: '"all"'
    on: {Step: {inc: {events: 1}}}
`

// backUp returns what puts a database back as it is now.
func backUp(t *testing.T, db *mongo.Database) (restore func()) {
	t.Helper()
	collections := func() []string {
		names, err := db.ListCollectionNames(within(t), bson.D{{Key: "type", Value: "collection"}})
		if err != nil {
			t.Fatal(err)
		}
		return slices.DeleteFunc(names, func(name string) bool { return strings.HasPrefix(name, "system.") })
	}
	kept := map[string][]bson.Raw{}
	for _, name := range collections() {
		cursor, err := db.Collection(name).Find(within(t), bson.D{})
		var all []bson.Raw
		if err == nil {
			err = cursor.All(within(t), &all)
		}
		if err != nil {
			t.Fatal(err)
		}
		kept[name] = all
	}
	return func() {
		t.Helper()
		for _, name := range collections() {
			_, err := db.Collection(name).DeleteMany(within(t), bson.D{})
			if err == nil && len(kept[name]) > 0 {
				_, err = db.Collection(name).InsertMany(within(t), kept[name])
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
}

// stopNode stops a program in its own good order.
func stopNode(t *testing.T, n *cluster.Node) {
	t.Helper()
	if err := n.Terminate(); err != nil {
		t.Fatal(err)
	}
	if _, err := n.Wait(within(t)); err != nil {
		t.Fatal(err)
	}
}

// anotherSubscription puts an empty one in the place of the projectors' subscription.
func anotherSubscription(t *testing.T, r *relay) {
	t.Helper()
	client, names, sessions := managing(t, r.Endpoints()), r.Names(), true
	if _, err := client.DeleteSubscription(within(t), names.Topic, names.Subscription, nil); err != nil {
		t.Fatal(err)
	}
	_, err := client.CreateSubscription(within(t), names.Topic, names.Subscription, &admin.CreateSubscriptionOptions{
		Properties: &admin.SubscriptionProperties{RequiresSession: &sessions},
	})
	if err != nil {
		t.Fatal(err)
	}
}

// The read database alone goes back, with the positions in it, and the messages of
// meanwhile are gone. A projector that waits for missing versions notices; and what
// the publisher sends again from before the backup, by the documented steps, is
// applied where it is missing: also of an aggregate that is younger than the backup,
// and of which a message waits.
func TestRestore_OfTheReadDatabaseAloneIsNoticedAndMadeGood(t *testing.T) {
	t.Parallel()
	for _, gap := range []string{"wait", "report"} {
		t.Run(gap, func(t *testing.T) {
			t.Parallel()
			projections := filepath.Join(t.TempDir(), "steps.yaml")
			if err := os.WriteFile(projections, []byte(stepsAndTotal), 0o600); err != nil {
				t.Fatal(err)
			}
			undetected := entitiesOf(t, false, "PT30S")
			r := start(t, func(c *cluster.Config) {
				undetected(c)
				c.Publishers, c.Projectors, c.Projections = 1, 1, projections
				c.ProjectorEnv = map[string]string{"ON_GAP": gap, "GAP_WAIT": "1s"}
			})
			names, db, projector, publisher := r.Names(), r.witness.ReadModel(), r.Projectors[0], r.Publishers[0]
			inserted := int64(0)
			insert := func(aggregate string, n int) {
				inserted++
				_, err := r.witness.Client.Database(names.SourceDatabase).Collection(names.SourceCollection).InsertOne(within(t), bson.D{
					{Key: "_id", Value: fmt.Sprintf("%s/%d", aggregate, n)},
					{Key: "aggregateId", Value: aggregate},
					{Key: "version", Value: n},
					{Key: "type", Value: "Step"},
					{Key: "data", Value: bson.D{{Key: "n", Value: n}}},
				})
				if err != nil {
					t.Fatal(err)
				}
			}
			applied := func(want string) {
				t.Helper()
				await(t, "the events to be applied", func(ctx context.Context) (bool, string) {
					var a, b, all struct {
						Events int
						Seen   []int
					}
					// Without a document there are no events.
					_ = db.Collection("steps").FindOne(ctx, bson.D{{Key: "_id", Value: "a"}}).Decode(&a)
					_ = db.Collection("steps").FindOne(ctx, bson.D{{Key: "_id", Value: "b"}}).Decode(&b)
					_ = db.Collection("total").FindOne(ctx, bson.D{{Key: "_id", Value: "all"}}).Decode(&all)
					got := fmt.Sprint(all.Events, a.Seen, b.Seen)
					return got == want, got
				})
			}
			for n := range 3 {
				insert("a", n+1)
			}
			applied("3 [1 2 3] []")
			restore, before := backUp(t, db), time.Now().Add(-time.Second)
			insert("a", 4)
			insert("a", 5)
			insert("b", 1)
			insert("b", 2)
			applied("7 [1 2 3 4 5] [1 2]")
			await(t, "the messages to be settled", func(ctx context.Context) (bool, string) {
				s, err := projector.ProjectorStatus(ctx)
				return err == nil && s.Completed == 7, fmt.Sprint(s.Completed)
			})
			last := "8 [1 2 3 4 5] [1 2 3]"
			if gap == "wait" {
				stopNode(t, projector)
				restore()
				if err := projector.Start(); err != nil {
					t.Fatal(err)
				}
				insert("a", 6)
				await(t, "the aggregate to be halted for what is missing", func(ctx context.Context) (bool, string) {
					var halt struct{ Reason string }
					err := db.Collection("halted_aggregates").FindOne(ctx, bson.D{{Key: "_id", Value: "a"}}).Decode(&halt)
					return err == nil && halt.Reason == "version gap: version 6 follows 3", halt.Reason
				})
				last = "9 [1 2 3 4 5 6] [1 2 3]"
			}
			stopNode(t, projector)
			insert("b", 3)
			await(t, "the message of the younger one to wait", func(ctx context.Context) (bool, string) {
				s, err := publisher.PublisherStatus(ctx)
				return err == nil && s.Sent == inserted, fmt.Sprint(s.Sent)
			})

			stopNode(t, publisher)
			restore()
			anotherSubscription(t, r)
			if output, err := publisher.Command(within(t), "checkpoint", "set", before.UTC().Format(time.RFC3339), "--why", "restored"); err != nil {
				t.Fatalf("checkpoint set: %v: %s", err, output)
			}
			if err := errors.Join(publisher.Start(), projector.Start()); err != nil {
				t.Fatal(err)
			}
			applied(last)
			await(t, "none to be halted", func(ctx context.Context) (bool, string) {
				n, err := db.Collection("halted_aggregates").CountDocuments(ctx, bson.D{})
				return err == nil && n == 0, fmt.Sprint(n)
			})
		})
	}
}
