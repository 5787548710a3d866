package mongostate_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/publisher/internal/lease"
	"changerelay/services/publisher/internal/mongostate"
	"changerelay/services/publisher/internal/testserver"
)

func TestTheRosterShowsWhoIsThereAndWhoHoldsWhat(t *testing.T) {
	t.Parallel()
	state := mongostate.New(testserver.Mongo(t), testserver.Name(t))
	names := mongostate.PartitionNames("orders", 3)
	roster := state.Roster("orders", names)
	for member, during := range map[string]time.Duration{"a": time.Hour, "b": time.Hour, "gone": -time.Second} {
		if err := roster.Announce(t.Context(), member, during); err != nil {
			t.Fatal(err)
		}
	}
	if err := state.Roster("customers", nil).Announce(t.Context(), "c", time.Hour); err != nil {
		t.Fatal(err)
	}
	if err := roster.Withdraw(t.Context(), "b"); err != nil {
		t.Fatal(err)
	}
	claim := lease.Claim{Holder: lease.Holder{ID: "a", Incarnation: "1", Tenure: 1}, TTL: time.Hour}
	if _, err := state.Lease(names[1]).Take(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	claim.TTL = time.Nanosecond
	if _, err := state.Lease(names[2]).Take(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	picture, err := roster.Picture(t.Context())
	if err != nil || !slices.Equal(picture.Members, []string{"a"}) || !slices.Equal(picture.Holders, []string{"", "a", ""}) {
		t.Errorf("picture is %+v, %v, want a alone, holding the second", picture, err)
	}
}

func TestOnePartitionIsNamedAsTheWhole(t *testing.T) {
	t.Parallel()
	if names := mongostate.PartitionNames("orders", 1); !slices.Equal(names, []string{"orders"}) {
		t.Errorf("names are %q", names)
	}
}

// checkpoints writes checkpoints of the given positions.
func checkpoints(t *testing.T, database string, positions map[string]string) {
	t.Helper()
	for name, position := range positions {
		_, err := testserver.Mongo(t).Database(database).Collection("resume_tokens").InsertOne(t.Context(), bson.D{
			{Key: "_id", Value: name},
			{Key: "term", Value: int64(len(name))},
			{Key: "saves", Value: int64(9)},
			{Key: "position", Value: position},
			{Key: "token", Value: bson.D{{Key: "_data", Value: position}}},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestAnotherNumberOfPartitionsIsRefusedUntilTheCheckpointsFollow(t *testing.T) {
	t.Parallel()
	database := testserver.Name(t)
	state := mongostate.New(testserver.Mongo(t), database)
	checkpoints(t, database, map[string]string{
		"orders-0of2": "6553000000000002.82", "orders-1of2": "6553000000000001.82", "orders-2of": "00.82", "others": "00.82",
	})
	if err := state.CheckPartitions(t.Context(), "orders", 2); err != nil {
		t.Errorf("CheckPartitions of the same number = %v", err)
	}
	for _, n := range []int{1, 3} {
		if err := state.CheckPartitions(t.Context(), "orders", n); !errors.Is(err, mongostate.ErrPartitioned) || !strings.Contains(err.Error(), "publisher repartition") {
			t.Errorf("CheckPartitions of %d = %v, want a refusal that says what to do", n, err)
		}
	}
	for range 2 { // the second time it finds nothing to do
		if err := state.Repartition(t.Context(), "orders", "lease", 3, "ann"); err != nil {
			t.Fatal(err)
		}
	}
	if err := state.CheckPartitions(t.Context(), "orders", 3); err != nil {
		t.Errorf("CheckPartitions after the change = %v", err)
	}
	for _, name := range mongostate.PartitionNames("orders", 3) {
		found, err := state.Checkpoints().Read(t.Context(), name)
		if err != nil || found.Position != "6553000000000001.82" || found.Term <= int64(len("orders-0of2")) || found.Token == nil {
			t.Errorf("checkpoint %q is %+v, %v, want the place of the one that was least far, and a higher term", name, found, err)
		}
	}
	var kept bson.Raw
	if err := testserver.Mongo(t).Database(database).Collection("replaced_checkpoints").FindOne(t.Context(), bson.D{}).Decode(&kept); err != nil {
		t.Fatal(err)
	}
	if old, _ := kept.Lookup("checkpoints").Array().Values(); len(old) != 2 {
		t.Errorf("kept are %v, want both of the old", kept)
	}
}

func TestCheckpointsAreNotRepartitionedUnderALeader(t *testing.T) {
	t.Parallel()
	database := testserver.Name(t)
	state := mongostate.New(testserver.Mongo(t), database)
	checkpoints(t, database, map[string]string{"orders": "6553000000000002.82"})
	claim := lease.Claim{Holder: lease.Holder{ID: "pod-1", Incarnation: "1", Tenure: 1}, TTL: time.Hour}
	for _, name := range []string{"lease", "lease-3of7"} {
		if _, err := state.Lease(name).Take(t.Context(), claim); err != nil {
			t.Fatal(err)
		}
		if err := state.Repartition(t.Context(), "orders", "lease", 4, "ann"); err == nil || !strings.Contains(err.Error(), "pod-1") {
			t.Errorf("Repartition under %q = %v, want a refusal that names the holder", name, err)
		}
		if _, err := state.Lease(name).Release(t.Context(), claim.Holder); err != nil {
			t.Fatal(err)
		}
	}
}
