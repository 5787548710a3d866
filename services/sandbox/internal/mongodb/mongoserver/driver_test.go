package mongoserver_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"

	"changerelay/services/sandbox/internal/mongodb/engine"
)

func TestDriver_TheDriverFindsAPrimary(t *testing.T) {
	t.Parallel()
	h := start(t, engine.Config{})
	must(t, h.client.Ping(t.Context(), readpref.Primary()))
	var info struct{ Version string }
	must(t, h.db.RunCommand(t.Context(), bson.D{{Key: "buildInfo", Value: 1}}).Decode(&info))
	if info.Version != "8.0.13" {
		t.Errorf("got version %s, want 8.0.13", info.Version)
	}
}

func TestDriver_TheGuardedUpsertOfTheReadModel(t *testing.T) {
	t.Parallel()
	h := start(t, engine.Config{})
	coll := h.db.Collection("orders", options.Collection().SetWriteConcern(writeconcern.Majority()))
	apply := func(sequence string) error {
		_, err := coll.UpdateOne(t.Context(),
			bson.D{{Key: "_id", Value: "order-1"}, {Key: "_relay.sequence", Value: bson.D{{Key: "$lt", Value: sequence}}}},
			bson.D{{Key: "$set", Value: bson.D{{Key: "_relay.sequence", Value: sequence}}}, {Key: "$inc", Value: bson.D{{Key: "events", Value: 1}}}},
			options.UpdateOne().SetUpsert(true))
		return err
	}
	for _, c := range []struct {
		sequence string
		repeated bool
	}{{"0001", false}, {"0001", true}, {"0003", false}, {"0002", true}, {"0004", false}} {
		err := apply(c.sequence)
		if mongo.IsDuplicateKeyError(err) != c.repeated || !c.repeated && err != nil {
			t.Errorf("sequence %s: got %v, want a duplicate key %t", c.sequence, err, c.repeated)
		}
	}
	var order struct{ Events int }
	must(t, coll.FindOne(t.Context(), bson.D{{Key: "_id", Value: "order-1"}}).Decode(&order))
	if order.Events != 3 {
		t.Errorf("got %d events applied, want 3", order.Events)
	}
}

func TestDriver_ALeaseIsTakenByOneOfMany(t *testing.T) {
	t.Parallel()
	h := start(t, engine.Config{})
	coll := h.db.Collection("leases")
	free := bson.D{{Key: "$lt", Value: bson.A{bson.D{{Key: "$ifNull", Value: bson.A{"$expiresAt", time.Unix(0, 0)}}}, "$$NOW"}}}
	take := func(me string) string {
		var lease struct {
			Holder    string
			ExpiresAt time.Time `bson:"expiresAt"`
		}
		pipeline := bson.A{bson.D{{Key: "$set", Value: bson.D{
			{Key: "holder", Value: bson.D{{Key: "$cond", Value: bson.A{free, me, "$holder"}}}},
			{Key: "expiresAt", Value: bson.D{{Key: "$cond", Value: bson.A{free, bson.D{{Key: "$add", Value: bson.A{"$$NOW", 60_000}}}, "$expiresAt"}}}},
		}}}}
		err := coll.FindOneAndUpdate(t.Context(), bson.D{{Key: "_id", Value: "lease"}}, pipeline,
			options.FindOneAndUpdate().SetUpsert(true).SetReturnDocument(options.After)).Decode(&lease)
		if err != nil {
			t.Error(err)
		}
		return lease.Holder
	}
	holders := make([]string, 16)
	var all sync.WaitGroup
	for i := range holders {
		all.Go(func() { holders[i] = take(fmt.Sprint("candidate ", i)) })
	}
	all.Wait()
	if slices.ContainsFunc(holders, func(holder string) bool { return holder == "" || holder != holders[0] }) {
		t.Errorf("got holders %q, want one and the same", holders)
	}
}

func TestDriver_ResultsLargerThanAMessageComeInBatches(t *testing.T) {
	t.Parallel()
	h := start(t, engine.Config{})
	coll := h.db.Collection("large")
	text := strings.Repeat("x", 5<<20)
	for i := range 12 {
		_, err := coll.InsertOne(t.Context(), bson.D{{Key: "_id", Value: i}, {Key: "text", Value: text}})
		must(t, err)
	}
	cursor, err := coll.Find(t.Context(), bson.D{}, options.Find().SetSort(bson.D{{Key: "_id", Value: -1}}))
	must(t, err)
	var got []int32
	for cursor.Next(t.Context()) {
		got = append(got, cursor.Current.Lookup("_id").Int32())
	}
	must(t, cursor.Err())
	if want := []int32{11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestDriver_ALargeSortedFindWithALimit(t *testing.T) {
	t.Parallel()
	h := start(t, engine.Config{})
	coll := h.db.Collection("numbers")
	var docs []any
	for i := range 5000 {
		docs = append(docs, bson.D{{Key: "_id", Value: i}, {Key: "n", Value: (i * 7919) % 5000}})
	}
	_, err := coll.InsertMany(t.Context(), docs)
	must(t, err)
	cursor, err := coll.Find(t.Context(), bson.D{},
		options.Find().SetSort(bson.D{{Key: "n", Value: 1}}).SetSkip(10).SetLimit(5))
	must(t, err)
	var found []struct{ N int }
	must(t, cursor.All(t.Context(), &found))
	for i, doc := range found {
		if doc.N != 10+i {
			t.Errorf("document %d: got n %d, want %d", i, doc.N, 10+i)
		}
	}
	if len(found) != 5 {
		t.Errorf("got %d documents, want 5", len(found))
	}
}

func TestDriver_ACursorReadsWhatWasThereWhenItWasOpened(t *testing.T) {
	t.Parallel()
	h := start(t, engine.Config{})
	coll := h.db.Collection("things")
	insertEvents(t.Context(), t, coll, 500)
	cursor, err := coll.Find(t.Context(), bson.D{}, options.Find().SetBatchSize(10))
	must(t, err)
	_, err = coll.DeleteMany(t.Context(), bson.D{})
	must(t, err)
	insertEvents(t.Context(), t, coll, 100)
	var all []bson.Raw
	must(t, cursor.All(t.Context(), &all))
	if len(all) != 500 {
		t.Errorf("got %d documents, want the 500 of the beginning", len(all))
	}
}

func TestDriver_UnacknowledgedWritesAreDone(t *testing.T) {
	t.Parallel()
	h := start(t, engine.Config{})
	stream, err := h.db.Watch(t.Context(), mongo.Pipeline{})
	must(t, err)
	defer stream.Close(context.Background())
	coll := h.db.Collection("things", options.Collection().SetWriteConcern(writeconcern.Unacknowledged()))
	_, err = coll.InsertOne(t.Context(), bson.D{{Key: "_id", Value: 1}})
	must(t, err)
	if !stream.Next(t.Context()) {
		t.Fatal(stream.Err())
	}
}

func TestDriver_AWriteConcernThatOneMemberCannotFulfil(t *testing.T) {
	t.Parallel()
	h := start(t, engine.Config{})
	coll := h.db.Collection("things", options.Collection().SetWriteConcern(&writeconcern.WriteConcern{W: 3}))
	_, err := coll.InsertOne(t.Context(), bson.D{{Key: "_id", Value: 1}})
	var failure mongo.WriteException
	if !errors.As(err, &failure) || failure.WriteConcernError == nil || failure.WriteConcernError.Code != 100 {
		t.Errorf("got %v, want write concern error 100", err)
	}
	if n, err := h.db.Collection("things").CountDocuments(t.Context(), bson.D{}); n != 1 || err != nil {
		t.Errorf("got %d documents and %v, want the write done all the same", n, err)
	}
}

func TestDriver_TheOplogCanBeRead(t *testing.T) {
	t.Parallel()
	h := start(t, engine.Config{})
	_, err := h.db.Collection("things").InsertOne(t.Context(), bson.D{{Key: "_id", Value: 1}})
	must(t, err)
	oplog := h.client.Database("local").Collection("oplog.rs", options.Collection().SetReadConcern(readconcern.Majority()))
	read := func(direction int) (entry struct {
		TS bson.Timestamp
		Op string
		NS string
	},
	) {
		t.Helper()
		must(t, oplog.FindOne(t.Context(), bson.D{},
			options.FindOne().SetSort(bson.D{{Key: "$natural", Value: direction}})).Decode(&entry))
		return entry
	}
	first, last := read(1), read(-1)
	if first.Op != "n" || last.Op != "i" || last.NS != "test.things" || !first.TS.Before(last.TS) {
		t.Errorf("got first %+v and last %+v, want a no-op and then the insert", first, last)
	}
}

func TestDriver_SecondaryIndexesSpeedNothingWrong(t *testing.T) {
	t.Parallel()
	h := start(t, engine.Config{})
	coll := h.db.Collection("things")
	_, err := coll.Indexes().CreateMany(t.Context(), []mongo.IndexModel{
		{Keys: bson.D{{Key: "session", Value: 1}, {Key: "sequence", Value: -1}}},
		{Keys: bson.D{{Key: "email", Value: 1}}, Options: options.Index().SetUnique(true).SetSparse(true)},
	})
	must(t, err)
	for i := range 50 {
		_, err := coll.InsertOne(t.Context(), bson.D{{Key: "_id", Value: i}, {Key: "session", Value: i % 5}, {Key: "sequence", Value: i}})
		must(t, err)
	}
	cursor, err := coll.Find(t.Context(), bson.D{{Key: "session", Value: 3}, {Key: "sequence", Value: bson.D{{Key: "$gte", Value: 20}}}},
		options.Find().SetSort(bson.D{{Key: "sequence", Value: 1}}))
	must(t, err)
	var found []struct{ Sequence int }
	must(t, cursor.All(t.Context(), &found))
	var got []int
	for _, doc := range found {
		got = append(got, doc.Sequence)
	}
	if want := []int{23, 28, 33, 38, 43, 48}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestDriver_AnUnknownCommandIsNamed(t *testing.T) {
	t.Parallel()
	h := start(t, engine.Config{})
	for _, name := range []string{"eval", "compact", "shutdown", "applyOps"} {
		err := h.db.RunCommand(t.Context(), bson.D{{Key: name, Value: 1}}).Err()
		var failure mongo.CommandError
		if !errors.As(err, &failure) || failure.Code != 59 || !strings.Contains(failure.Message, name) {
			t.Errorf("%s: got %v, want code 59 naming it", name, err)
		}
	}
}

func TestDriver_WhatIsNotSupportedIsRefusedByName(t *testing.T) {
	t.Parallel()
	h := start(t, engine.Config{})
	for name, command := range map[string]bson.D{
		"strength":    {{Key: "find", Value: "c"}, {Key: "collation", Value: bson.D{{Key: "locale", Value: "en"}, {Key: "strength", Value: 4}}}},
		"$max":        {{Key: "aggregate", Value: "c"}, {Key: "pipeline", Value: bson.A{bson.D{{Key: "$project", Value: bson.D{{Key: "b", Value: bson.D{{Key: "$max", Value: "$a"}}}}}}}}, {Key: "cursor", Value: bson.D{}}, {Key: "collation", Value: bson.D{{Key: "locale", Value: "en"}}}},
		"geoHaystack": {{Key: "createIndexes", Value: "c"}, {Key: "indexes", Value: bson.A{bson.D{{Key: "key", Value: bson.D{{Key: "a", Value: "geoHaystack"}}}, {Key: "name", Value: "a"}}}}},
		"showPre":     {{Key: "aggregate", Value: "c"}, {Key: "pipeline", Value: bson.A{bson.D{{Key: "$changeStream", Value: bson.D{{Key: "showPre", Value: true}}}}}}, {Key: "cursor", Value: bson.D{}}},
		"whenPresent": {{Key: "aggregate", Value: "c"}, {Key: "pipeline", Value: bson.A{bson.D{{Key: "$changeStream", Value: bson.D{{Key: "fullDocument", Value: "whenPresent"}}}}}}, {Key: "cursor", Value: bson.D{}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := h.db.RunCommand(t.Context(), command).Err()
			var failure mongo.CommandError
			if !errors.As(err, &failure) || failure.Code == 1 || !strings.Contains(failure.Message, name) {
				t.Errorf("got %v, want a refusal naming %s", err, name)
			}
		})
	}
}
