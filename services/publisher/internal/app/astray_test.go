package app_test

import (
	"slices"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"changerelay/services/publisher/internal/app"
	"changerelay/services/publisher/internal/config"
	"changerelay/services/publisher/internal/partition"
	"changerelay/services/publisher/internal/status"
	"changerelay/services/publisher/internal/testserver"
)

// customers has a source of documents that are ordered by another field than _id,
// in two partitions.
func customers(c *config.Config) {
	c.Mode, c.DocumentAggregateID, c.FullDocument, c.FullDocumentBeforeChange = "documents", "customer", "updateLookup", "off"
}

func do[T any](t *testing.T, what string) func(T, error) {
	t.Helper()
	return func(_ T, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
}

// customerOf is an aggregate that a partition of two carries.
func customerOf(index int) string {
	for _, id := range []string{"a", "b", "c", "d", "e", "f"} {
		if partition.Of(id, 2) == index {
			return id
		}
	}
	return ""
}

// TestDocuments_AChangeThatOnePartitionLeftToAnotherIsNotLost has one partition see
// whose an update is, and pass it over; and the other, whose it is, read it when the
// document is gone.
func TestDocuments_AChangeThatOnePartitionLeftToAnotherIsNotLost(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	c := configured(servers, split(2), patient, customers)
	begun(t, c)
	early := partition.Of("", 2)
	late := 1 - early
	names := []string{"-0of2", "-1of2"}
	holdLease(t, servers, names[late])
	p := run(t, c)
	p.awaitOverview(t, "one partition to be led", func(o app.Overview) bool {
		return slices.Equal(o.Led, []int{early}) && o.Streams[early].State == "publishing"
	})
	source := events(t, servers)
	do[*mongo.InsertOneResult](t, "insert")(source.InsertOne(t.Context(), bson.D{{Key: "_id", Value: 1}, {Key: "customer", Value: customerOf(late)}}))
	do[*mongo.UpdateResult](t, "update")(source.UpdateByID(t.Context(), 1, bson.D{{Key: "$set", Value: bson.D{{Key: "n", Value: 1}}}}))
	p.awaitOverview(t, "it to leave both changes to the other", func(o app.Overview) bool { return o.Streams[early].Read >= 2 && o.Streams[early].InFlight == 0 })
	do[*mongo.DeleteResult](t, "delete")(source.DeleteOne(t.Context(), bson.D{{Key: "_id", Value: 1}}))
	do[*mongo.DeleteResult](t, "free the lease")(state(t, servers, "leader_leases").DeleteOne(t.Context(), bson.D{{Key: "_id", Value: "publisher" + names[late]}}))
	p.awaitOverview(t, "the other to have read all of them", func(o app.Overview) bool { return o.Streams[late].Read >= 3 && o.Streams[late].InFlight == 0 })
	listed, err := lines(t, c, "parked", "list")
	if err != nil || len(listed) != 2 {
		t.Errorf("parked are %+v, %v, want the update that nobody sent, and the deletion", listed, err)
	}
}

// TestDocuments_AChangeThatAllPartitionsParkIsOneThatIsCountedOnce has none of them see
// whose a change is.
func TestDocuments_AChangeThatAllPartitionsParkIsOneThatIsCountedOnce(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	c := configured(servers, split(2), patient, customers)
	p := run(t, c)
	p.awaitOverview(t, "both partitions to be led", leads(2))
	source := events(t, servers)
	const count = 20
	for n := range count {
		do[*mongo.InsertOneResult](t, "insert")(source.InsertOne(t.Context(), bson.D{{Key: "_id", Value: n}, {Key: "customer", Value: "a"}}))
		do[*mongo.DeleteResult](t, "delete")(source.DeleteOne(t.Context(), bson.D{{Key: "_id", Value: n}}))
	}
	p.awaitOverview(t, "both to have read all of them", func(o app.Overview) bool {
		return !slices.ContainsFunc(o.Streams, func(s status.Status) bool { return s.Read < 2*count || s.InFlight > 0 })
	})
	if listed, err := lines(t, c, "parked", "list"); err != nil || len(listed) != count {
		t.Errorf("%d changes are parked, %v, want each once", len(listed), err)
	}
	if err := p.quit(); err != nil {
		t.Fatal(err)
	}
	begun(t, c)
	if got := lostEntries(t, servers); len(got) != 0 {
		t.Errorf("the ledger says %+v, want no loss", got)
	}
}

// TestDocuments_AChangeThatTwoPartitionsHaveNamedIsCountedByOne has one partition name a
// change, and park it only when the other has parked it.
func TestDocuments_AChangeThatTwoPartitionsHaveNamedIsCountedByOne(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	c := configured(servers, split(2), patient, customers)
	begun(t, c)
	free := func(name string) {
		do[*mongo.DeleteResult](t, "free the lease")(state(t, servers, "leader_leases").DeleteOne(t.Context(), bson.D{{Key: "_id", Value: "publisher" + name}}))
	}
	only := func(led int) func(app.Overview) bool {
		return func(o app.Overview) bool {
			return slices.Equal(o.Led, []int{led}) && o.Streams[led].State == "publishing"
		}
	}
	noted := func() (kept struct{ Parked aside }) {
		if err := state(t, servers, "resume_tokens").FindOne(t.Context(), bson.D{{Key: "_id", Value: "shop.events-0of2"}}).Decode(&kept); err != nil {
			t.Fatal(err)
		}
		return kept
	}
	changes := state(t, servers, "parked_changes")
	if err := changes.Drop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := changes.Database().CreateView(t.Context(), changes.Name(), "nothing", bson.A{}); err != nil {
		t.Fatal(err)
	}
	holdLease(t, servers, "-1of2")
	p := run(t, c)
	p.awaitOverview(t, "the first to be led", only(0))
	source := events(t, servers)
	do[*mongo.InsertOneResult](t, "insert")(source.InsertOne(t.Context(), bson.D{{Key: "_id", Value: 1}, {Key: "customer", Value: customerOf(1)}}))
	do[*mongo.DeleteResult](t, "delete")(source.DeleteOne(t.Context(), bson.D{{Key: "_id", Value: 1}}))
	testserver.Eventually(t, "the change to be named", func() bool { return len(noted().Parked.Coming) == 1 })
	if err := p.quit(); err != nil {
		t.Fatal(err)
	}
	if err := changes.Drop(t.Context()); err != nil {
		t.Fatal(err)
	}
	free("-1of2")
	holdLease(t, servers, "-0of2")
	p = run(t, c)
	p.awaitOverview(t, "the second to have parked it", func(o app.Overview) bool { return only(1)(o) && o.Streams[1].Read >= 2 && o.Streams[1].InFlight == 0 })
	free("-0of2")
	p.awaitOverview(t, "the first to have read it", func(o app.Overview) bool { return o.Streams[0].Read >= 1 && o.Streams[0].InFlight == 0 })
	if got := noted().Parked; got.Count != 0 || len(got.Coming) != 0 {
		t.Errorf("the first has noted %+v, want nothing: the second has it", got)
	}
	if err := p.quit(); err != nil {
		t.Fatal(err)
	}
	begun(t, c)
	if got := lostEntries(t, servers); len(got) != 0 {
		t.Errorf("the ledger says %+v, want no loss", got)
	}
}
