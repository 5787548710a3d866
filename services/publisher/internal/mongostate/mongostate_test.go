package mongostate_test

import (
	"bytes"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"changerelay/pkg/contract"
	"changerelay/services/publisher/internal/checkpoint"
	"changerelay/services/publisher/internal/checkpoint/checkpointtest"
	"changerelay/services/publisher/internal/lease"
	"changerelay/services/publisher/internal/lease/leasetest"
	"changerelay/services/publisher/internal/mongostate"
	"changerelay/services/publisher/internal/relay"
	"changerelay/services/publisher/internal/testserver"
)

func TestMain(m *testing.M) { testserver.Main(m) }

func TestMongoState_TheLeaseConforms(t *testing.T) {
	t.Parallel()
	client := testserver.Mongo(t)
	open := func(t *testing.T) *mongostate.Lease {
		t.Helper()
		return mongostate.New(client, testserver.Name(t)).Lease("orders")
	}
	t.Run("store", func(t *testing.T) {
		t.Parallel()
		leasetest.Conform(t, func(t *testing.T) lease.Store { return open(t) })
	})
	t.Run("watch", func(t *testing.T) {
		t.Parallel()
		leasetest.ConformWatcher(t, open(t))
	})
}

func TestMongoState_TheCheckpointsConform(t *testing.T) {
	t.Parallel()
	client := testserver.Mongo(t)
	checkpointtest.Conform(t, func(t *testing.T) checkpoint.Store {
		t.Helper()
		return mongostate.New(client, testserver.Name(t)).Checkpoints()
	})
}

func TestMongoState_LeasesOfOneDatabaseDoNotTouchEachOther(t *testing.T) {
	t.Parallel()
	state := mongostate.New(testserver.Mongo(t), testserver.Name(t))
	holder := lease.Holder{ID: "a", Incarnation: "1", Tenure: 1}
	if _, err := state.Lease("orders").Take(t.Context(), lease.Claim{Holder: holder, TTL: time.Hour}); err != nil {
		t.Fatal(err)
	}
	if record, err := state.Lease("customers").Read(t.Context()); err != nil || record.Live() {
		t.Errorf("the other lease reads as %+v, %v, want free", record, err)
	}
}

func TestMongoState_TheLeaseIsWrittenByTheServersClock(t *testing.T) {
	t.Parallel()
	client, name := testserver.Mongo(t), testserver.Name(t)
	holder := lease.Holder{ID: "$leaderId", Incarnation: "$$NOW", Tenure: 1} // values, not expressions
	record, err := mongostate.New(client, name).Lease("orders").Take(t.Context(), lease.Claim{Holder: holder, TTL: time.Minute})
	if err != nil || record.Holder != holder {
		t.Fatalf("Take = %+v, %v, want it held by %v", record, err, holder)
	}
	var stored bson.M
	err = client.Database(name).Collection("leader_leases").FindOne(t.Context(), bson.D{{Key: "_id", Value: "orders"}}).Decode(&stored)
	if err != nil {
		t.Fatal(err)
	}
	for _, field := range []string{"heartbeatAt", "expiresAt"} {
		if _, ok := stored[field].(bson.DateTime); !ok {
			t.Errorf("%s is stored as %T, want a date", field, stored[field])
		}
	}
}

func TestMongoState_AParkedChangeIsKeptOnceWithItsReason(t *testing.T) {
	t.Parallel()
	client, name := testserver.Mongo(t), testserver.Name(t)
	state := mongostate.New(client, name)
	if err := state.EnsureIndexes(t.Context()); err != nil {
		t.Fatal(err)
	}
	parked := state.Parked("shop.events")
	raw := marshal(t, bson.D{
		{Key: "operationType", Value: "insert"},
		{Key: "documentKey", Value: bson.D{{Key: "_id", Value: 7}}},
		{Key: "fullDocument", Value: bson.D{{Key: "$odd", Value: 1}, {Key: "a.b", Value: 2}}},
	})
	change := relay.Change{
		Raw:      raw,
		Token:    marshal(t, bson.D{{Key: "_data", Value: "8201"}}),
		Position: contract.StreamPosition(1, 1, "8201"),
	}
	for range 2 {
		_, err := parked.Park(t.Context(), mongostate.Reader{Partition: "shop.events"}, relay.Parked{Change: change, Reason: "no aggregate id", Term: 4})
		if err != nil {
			t.Fatal(err)
		}
	}
	if n, err := parked.Count(t.Context()); err != nil || n != 1 {
		t.Errorf("Count = %d, %v, want 1 after parking the same change twice", n, err)
	}
	var listed []mongostate.ParkedChange
	err := parked.Each(t.Context(), false, func(c mongostate.ParkedChange) error {
		listed = append(listed, c)
		return nil
	})
	if err != nil || len(listed) != 1 || listed[0].Reason != "no aggregate id" || listed[0].Term != 4 || listed[0].Position != string(change.Position) {
		t.Errorf("Each gave %+v, %v, want the parked change", listed, err)
	}
	if got := wholeChange(t, client, name); !bytes.Equal(got, raw) {
		t.Errorf("the change is kept as %v, want it whole: %v", got, bson.Raw(raw))
	}
}

func TestMongoState_AChangeTooLargeToBeKeptIsParkedWithoutIt(t *testing.T) {
	t.Parallel()
	client, name := testserver.Mongo(t), testserver.Name(t)
	parked := mongostate.New(client, name).Parked("shop.events")
	raw := marshal(t, bson.D{
		{Key: "documentKey", Value: bson.D{{Key: "_id", Value: "large"}}},
		{Key: "fullDocument", Value: bson.D{{Key: "body", Value: bson.Binary{Data: make([]byte, 16<<20-32<<10)}}}},
	})
	change := relay.Change{Raw: raw, Token: marshal(t, bson.D{}), Position: contract.StreamPosition(1, 1, "8201")}
	if _, err := parked.Park(t.Context(), mongostate.Reader{Partition: "shop.events"}, relay.Parked{Change: change, Reason: "too large", AggregateID: "a", EventID: "e"}); err != nil {
		t.Fatal(err)
	}
	err := parked.Each(t.Context(), false, func(c mongostate.ParkedChange) error {
		if key, _ := c.DocumentKey.Lookup("_id").StringValueOK(); key != "large" || c.AggregateID != "a" || c.EventID != "e" {
			t.Errorf("parked %+v, want the document's key and the event", c)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func marshal(t *testing.T, document bson.D) []byte {
	t.Helper()
	raw, err := bson.Marshal(document)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// wholeChange is the one parked change, as a document or as bytes.
func wholeChange(t *testing.T, client *mongo.Client, database string) []byte {
	t.Helper()
	stored, err := client.Database(database).Collection("parked_changes").FindOne(t.Context(), bson.D{}).Raw()
	if err != nil {
		t.Fatal(err)
	}
	if change, ok := stored.Lookup("change").DocumentOK(); ok {
		return change
	}
	_, data, _ := stored.Lookup("changeBson").BinaryOK()
	return data
}
