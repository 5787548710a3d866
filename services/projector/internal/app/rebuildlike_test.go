package app_test

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// A value that has gone from one document to another is in both while they are filled: a
// unique index is there once they are, and before readers are.
func TestRebuild_AUniqueIndexRefusesNothingWhileItIsFilled(t *testing.T) {
	r := newRebuilding(t, "rebuild-unique")
	if _, err := r.db.Collection("orders_v1").Indexes().CreateOne(t.Context(), mongo.IndexModel{
		Keys: bson.D{{Key: "sum", Value: 1}}, Options: options.Index().SetName("sums").SetUnique(true).SetSparse(true),
	}); err != nil {
		t.Fatal(err)
	}
	giver, taker := happens("giver", 5, 6), happens("taker", 5)
	send(t, r.topic, giver[0])
	r.awaitSees(t, "orders", "giver", "1 5 [5]")
	send(t, r.topic, giver[1])
	r.awaitSees(t, "orders", "giver", "2 11 [5 6]")
	send(t, r.topic, taker...)
	r.awaitSees(t, "orders", "taker", "1 5 [5]")

	done := r.begin(t, "--grace", "0s")
	until(t, "the publisher is asked", func() bool { return r.asked() != "" })
	send(t, r.topic, again(2, happens("taker", 5))...)
	r.awaitSees(t, "orders_v2", "taker", "1 5 [5]")
	send(t, r.topic, again(2, happens("giver", 5))...)
	r.awaitSees(t, "orders_v2", "giver", "1 5 [5]")
	send(t, r.topic, again(2, happens("giver", 6))...)
	r.awaitSees(t, "orders_v2", "giver", "2 11 [5 6]")
	sum := func(n int) {
		t.Helper()
		if _, err := r.db.Collection("orders_v2").UpdateByID(t.Context(), "taker", bson.D{{Key: "$set", Value: bson.D{{Key: "sum", Value: n}}}}); err != nil {
			t.Fatal(err)
		}
	}
	sum(11)
	r.says(t, 2, "done")
	stopsFor(t, ends(t, done), `version 2 cannot have the unique index "sums"`)
	sum(5)
	if o := ends(t, r.begin(t, "--grace", "0s")); o.err != nil {
		t.Fatalf("rebuild: got %v after %v", o.err, o.lines)
	}
	_, err := r.db.Collection("orders_v2").UpdateByID(t.Context(), "taker", bson.D{{Key: "$set", Value: bson.D{{Key: "sum", Value: 11}}}})
	if !mongo.IsDuplicateKeyError(err) {
		t.Errorf("a value that another document has: got %v, want it refused", err)
	}
	r.nothingHalted(t)
}

// A validator of the old documents is that of the new ones, once they are complete: it may
// be later than what they were. Where it refuses some of them it is none of theirs.
func TestRebuild_AValidatorRefusesNothingWhileItIsFilled(t *testing.T) {
	r := newRebuilding(t, "rebuild-validator")
	send(t, r.topic, happens("a", 5)...)
	r.awaitSees(t, "orders", "a", "1 5 [5]")
	validator := bson.D{{Key: "sum", Value: bson.D{{Key: "$gt", Value: 8}}}}
	if err := r.db.RunCommand(t.Context(), bson.D{{Key: "collMod", Value: "orders_v1"}, {Key: "validator", Value: validator}}).Err(); err != nil {
		t.Fatal(err)
	}
	send(t, r.topic, happens("a", 6)...)
	r.awaitSees(t, "orders", "a", "2 11 [5 6]")

	done := r.begin(t, "--grace", "0s")
	until(t, "the publisher is asked", func() bool { return r.asked() != "" })
	send(t, r.topic, again(2, happens("a", 5))...)
	r.awaitSees(t, "orders_v2", "a", "1 5 [5]")
	send(t, r.topic, again(2, happens("a", 6))...)
	r.awaitSees(t, "orders_v2", "a", "2 11 [5 6]")
	sum := func(n int) error {
		_, err := r.db.Collection("orders_v2").UpdateByID(t.Context(), "a", bson.D{{Key: "$set", Value: bson.D{{Key: "sum", Value: n}}}})
		return err
	}
	if err := sum(7); err != nil {
		t.Fatal(err)
	}
	r.says(t, 2, "done")
	stopsFor(t, ends(t, done), "version 2 cannot have the validator of version 1, which refuses 1 more documents of it")
	if err := sum(11); err != nil {
		t.Fatal(err)
	}
	if o := ends(t, r.begin(t, "--grace", "0s")); o.err != nil {
		t.Fatalf("rebuild: got %v after %v", o.err, o.lines)
	}
	if err := sum(7); err == nil {
		t.Error("the new documents have no validator")
	}
	r.nothingHalted(t)
}

// What a collection has from its creation the one of another version would not have.
func TestRebuild_OfACollectionThatTheNextOneWouldNotBeLikeIsRefused(t *testing.T) {
	r := newRebuilding(t, "rebuild-unlike")
	send(t, r.topic, happens("a", 1)...)
	r.awaitSees(t, "orders", "a", "1 1 [1]")
	if err := r.db.Collection("orders_v1").Drop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := r.db.CreateCollection(t.Context(), "orders_v1", options.CreateCollection().SetCollation(&options.Collation{Locale: "en"})); err != nil {
		t.Fatal(err)
	}
	stopsFor(t, ends(t, r.begin(t)), `"orders_v1" was created with collation`)
}

// The new version has the index of tombstones from its projectors, which keep them for
// TOMBSTONE_TTL as it is now. The old one may have it from before that was changed.
func TestRebuild_TombstonesAreKeptForAnotherTime(t *testing.T) {
	r := newRebuilding(t, "rebuild-tombstones")
	send(t, r.topic, happens("a", 1)...)
	r.awaitSees(t, "orders", "a", "1 1 [1]")
	indexes := r.db.Collection("orders_v1").Indexes()
	if err := indexes.DropOne(t.Context(), "tombstones"); err != nil {
		t.Fatal(err)
	}
	if _, err := indexes.CreateMany(t.Context(), []mongo.IndexModel{
		{Keys: bson.D{{Key: "_relay.deletedAt", Value: 1}}, Options: options.Index().SetName("tombstones").SetSparse(true).SetExpireAfterSeconds(60)},
		{Keys: bson.D{{Key: "sum", Value: 1}}, Options: options.Index().SetName("sums")},
	}); err != nil {
		t.Fatal(err)
	}
	done := r.begin(t, "--grace", "0s")
	until(t, "the publisher is asked, or the command ends", func() bool { return r.asked() != "" || len(done) > 0 })
	send(t, r.topic, again(2, happens("a", 1))...)
	r.says(t, 2, "done")
	if o := ends(t, done); o.err != nil {
		t.Fatalf("rebuild: got %v after %v", o.err, o.lines)
	}
	specifications, err := r.db.Collection("orders_v2").Indexes().ListSpecifications(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	expires := map[string]bool{}
	for _, s := range specifications {
		expires[s.Name] = s.ExpireAfterSeconds != nil && *s.ExpireAfterSeconds != 60
	}
	if !expires["tombstones"] || len(expires) != 3 {
		t.Errorf("the new documents have %v, want the projectors' index and the one that readers had", expires)
	}
}

// Nobody would shard the new documents as the old ones are.
func TestRebuild_OfAShardedCollectionIsRefused(t *testing.T) {
	r := newRebuilding(t, "rebuild-sharded")
	send(t, r.topic, happens("a", 1)...)
	r.awaitSees(t, "orders", "a", "1 1 [1]")
	record := r.db.Client().Database("config").Collection("collections")
	for _, key := range []bson.D{{{Key: "_id", Value: 1}}, {{Key: "_id", Value: "hashed"}}} {
		id := bson.D{{Key: "_id", Value: r.db.Name() + ".orders_v1"}}
		if _, err := record.ReplaceOne(t.Context(), id, bson.D{{Key: "key", Value: key}, {Key: "dropped", Value: false}}, options.Replace().SetUpsert(true)); err != nil {
			t.Fatal(err)
		}
		stopsFor(t, ends(t, r.begin(t)), `"orders_v1" is sharded by {"_id": `)
	}
	if got := r.collections(t); got != "orders_v1" {
		t.Errorf("collections after a rebuild that was refused: got %s", got)
	}
}

// Servers from 8.0 on note collections that are not sharded beside those that are.
func TestRebuild_OfATrackedCollectionThatIsNotShardedBegins(t *testing.T) {
	r := newRebuilding(t, "rebuild-tracked")
	send(t, r.topic, happens("a", 1)...)
	r.awaitSees(t, "orders", "a", "1 1 [1]")
	if _, err := r.db.Client().Database("config").Collection("collections").InsertOne(t.Context(), bson.D{
		{Key: "_id", Value: r.db.Name() + ".orders_v1"}, {Key: "key", Value: bson.D{{Key: "_id", Value: 1}}}, {Key: "unsplittable", Value: true},
	}); err != nil {
		t.Fatal(err)
	}
	lines, err := runCommand(t, "rebuild", "--projection", "orders", "--why", "a test", "--publisher", r.publisher, "--dry-run")
	if err != nil || lines[len(lines)-1]["to"] != 2.0 || lines[len(lines)-1]["refused"] != nil {
		t.Errorf("a rebuild of a collection that is not sharded: got %v and %v, want it to begin", lines, err)
	}
}
