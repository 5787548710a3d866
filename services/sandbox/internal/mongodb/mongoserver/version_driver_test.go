package mongoserver_test

import (
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"

	"changerelay/services/sandbox/internal/journal"
	"changerelay/services/sandbox/internal/mongodb/command"
	"changerelay/services/sandbox/internal/mongodb/engine"
	"changerelay/services/sandbox/internal/mongodb/serverversion"
)

// startVersion runs a server that stands in for a version.
func startVersion(t *testing.T, name string) *harness {
	t.Helper()
	version, err := serverversion.Parse(name)
	must(t, err)
	h := serve(t, command.Config{Engine: engine.New(engine.Config{}), Version: version})
	h.client = h.connect(t)
	h.db = h.client.Database("test")
	return h
}

func TestVersion_DecidesWhatClientsAreToldAndWhatThereIs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, full    string
		wire          int32
		hello, images bool
	}{
		{"", "8.0.", 25, true, true},
		{"4.4", "4.4.1", 9, false, false},
		{"5.0", "5.0.", 13, true, false},
		{"6.0", "6.0.", 17, true, true},
		{"7.0", "7.0.", 21, true, true},
		{"8.0", "8.0.", 25, true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := startVersion(t, c.name)
			var build struct{ Version string }
			must(t, h.db.RunCommand(t.Context(), bson.D{{Key: "buildInfo", Value: 1}}).Decode(&build))
			var greeting struct{ MaxWireVersion int32 }
			must(t, h.db.RunCommand(t.Context(), bson.D{{Key: "isMaster", Value: 1}}).Decode(&greeting))
			if !strings.HasPrefix(build.Version, c.full) || greeting.MaxWireVersion != c.wire {
				t.Errorf("got %s and wire version %d, want %s and %d", build.Version, greeting.MaxWireVersion, c.full, c.wire)
			}
			if err := h.db.RunCommand(t.Context(), bson.D{{Key: "hello", Value: 1}}).Err(); (err == nil) != c.hello {
				t.Errorf("hello: got %v, want it there: %v", err, c.hello)
			}
			images := bson.D{{Key: "create", Value: "c"}, {Key: "changeStreamPreAndPostImages", Value: bson.D{{Key: "enabled", Value: true}}}}
			if err := h.db.RunCommand(t.Context(), images).Err(); (err == nil) != c.images {
				t.Errorf("images: got %v, want them there: %v", err, c.images)
			}
		})
	}
	if _, err := serverversion.Parse("3.6"); err == nil || !strings.Contains(err.Error(), "3.6") {
		t.Errorf("got %v, want 3.6 refused", err)
	}
}

func TestVersion_DecidesTheFieldsOfEvents(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"4.4": "_id operationType clusterTime ns documentKey updateDescription | updatedFields removedFields",
		"5.0": "_id operationType clusterTime ns documentKey updateDescription | updatedFields removedFields truncatedArrays",
		"7.0": "_id operationType clusterTime wallTime ns documentKey updateDescription | updatedFields removedFields truncatedArrays",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := startVersion(t, name)
			coll := h.db.Collection("c")
			_, err := coll.InsertOne(t.Context(), bson.D{{Key: "_id", Value: 1}})
			must(t, err)
			stream, err := coll.Watch(t.Context(), mongo.Pipeline{})
			must(t, err)
			defer stream.Close(t.Context())
			_, err = h.db.Collection("c").UpdateByID(t.Context(), 1, bson.D{{Key: "$set", Value: bson.D{{Key: "a", Value: 1}}}})
			must(t, err)
			if !stream.Next(t.Context()) {
				t.Fatal(stream.Err())
			}
			description := stream.Current.Lookup("updateDescription").Document()
			if got := names(t, without(stream.Current, "txnNumber", "lsid")) + " | " + names(t, description); got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	}
}

func TestVersion_TheWallTimeOfAnEventHasMilliseconds(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 27, 20, 15, 1, 234_567_000, time.UTC)
	dir := t.TempDir()
	for life := range 2 { // the first event is from memory, then from the journal
		var j *journal.Journal
		e, err := engine.Recover(engine.Config{Now: func() time.Time { return at }}, func(replay func([]byte) error) (engine.Journal, error) {
			var err error
			j, _, err = journal.Open(dir, replay)
			return j, err
		})
		must(t, err)
		h := startStoppable(t, e)
		h.db = h.connect(t).Database("test")
		_, err = h.db.Collection("c").InsertOne(t.Context(), bson.D{})
		must(t, err)
		stream, err := h.db.Collection("c").Watch(t.Context(), mongo.Pipeline{},
			options.ChangeStream().SetStartAtOperationTime(&bson.Timestamp{T: uint32(at.Unix()), I: 1}))
		must(t, err)
		if !stream.Next(t.Context()) {
			t.Fatal(stream.Err())
		}
		if got, want := stream.Current.Lookup("wallTime").Time().UTC(), at.Truncate(time.Millisecond); !got.Equal(want) {
			t.Errorf("in life %d: got %s, want %s", life+1, got, want)
		}
		h.stop()
		must(t, j.Close())
	}
}

// without leaves out fields that retryable writes add.
func without(doc bson.Raw, fields ...string) bson.D {
	var d bson.D
	_ = bson.Unmarshal(doc, &d)
	for _, field := range fields {
		for i := range d {
			if d[i].Key == field {
				d = append(d[:i:i], d[i+1:]...)
				break
			}
		}
	}
	return d
}

func names(t *testing.T, doc any) string {
	t.Helper()
	raw, err := bson.Marshal(doc)
	must(t, err)
	elements, err := bson.Raw(raw).Elements()
	must(t, err)
	var keys []string
	for _, e := range elements {
		keys = append(keys, e.Key())
	}
	return strings.Join(keys, " ")
}

func TestVersion_WaitsForAMajorityByDefaultSinceFive(t *testing.T) {
	t.Parallel()
	h := startVersion(t, "5.0")
	majority := h.db.Collection("c", options.Collection().SetReadConcern(readconcern.Majority()))
	for i := range 20 {
		_, err := h.db.Collection("c").InsertOne(t.Context(), bson.D{{Key: "_id", Value: i}})
		must(t, err)
		if n, err := majority.CountDocuments(t.Context(), bson.D{}); err != nil || n != int64(i+1) {
			t.Fatalf("got %d documents and %v, want %d", n, err, i+1)
		}
	}
}

func TestVersion_ForFourAMajorityHasAWriteLater(t *testing.T) {
	t.Parallel()
	h := startVersion(t, "4.4")
	h.engine.SetPace(engine.Pace{JournalInterval: time.Hour})
	majority := h.db.Collection("c", options.Collection().SetReadConcern(readconcern.Majority()))
	must(t, h.db.CreateCollection(t.Context(), "c"))
	_, err := h.db.Collection("c").InsertOne(t.Context(), bson.D{{Key: "_id", Value: 1}})
	must(t, err)
	if n, err := majority.CountDocuments(t.Context(), bson.D{}); err != nil || n != 0 {
		t.Errorf("got %d documents and %v before the journal is written, want none", n, err)
	}
}

func TestVersion_OperatorsWithoutFieldsChangeNothingSinceFive(t *testing.T) {
	t.Parallel()
	empty := bson.D{{Key: "$set", Value: bson.D{}}, {Key: "$push", Value: bson.D{}}}
	for name, want := range map[string]int{"4.4": 9, "5.0": 0} {
		h := startVersion(t, name)
		coll := h.db.Collection("c")
		_, err := coll.InsertOne(t.Context(), bson.D{{Key: "_id", Value: 1}})
		must(t, err)
		changed, err := coll.UpdateByID(t.Context(), 1, empty)
		if code(err) != want || err == nil && (changed.MatchedCount != 1 || changed.ModifiedCount != 0) {
			t.Errorf("%s: got %+v and error %v, want code %d and nothing modified", name, changed, err, want)
		}
		changed, err = coll.UpdateByID(t.Context(), 2, empty, options.UpdateOne().SetUpsert(true))
		if code(err) != want || err == nil && changed.UpsertedID != int32(2) {
			t.Errorf("%s: got %+v and error %v of an upsert, want code %d or an insert", name, changed, err, want)
		}
		if err := coll.FindOneAndUpdate(t.Context(), bson.D{{Key: "_id", Value: 1}}, empty).Err(); code(err) != want {
			t.Errorf("%s: got error %v of findAndModify, want code %d", name, err, want)
		}
	}
}
