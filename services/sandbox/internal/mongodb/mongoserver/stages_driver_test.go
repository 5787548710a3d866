package mongoserver_test

import (
	"fmt"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"changerelay/services/sandbox/internal/mongodb/engine"
)

// aggregated gives the results of a pipeline as relaxed extended JSON.
func aggregated(t *testing.T, coll *mongo.Collection, pipeline string) string {
	t.Helper()
	var stages struct{ P bson.A }
	must(t, bson.UnmarshalExtJSON([]byte(`{"p":`+pipeline+`}`), false, &stages))
	cursor, err := coll.Aggregate(t.Context(), stages.P)
	must(t, err)
	var docs []bson.D
	must(t, cursor.All(t.Context(), &docs))
	text := ""
	for _, doc := range docs {
		json, err := bson.MarshalExtJSON(doc, false, false)
		must(t, err)
		text += string(json)
	}
	return text
}

func TestUnionWithAndGraphLookup_ReadOtherCollections(t *testing.T) {
	t.Parallel()
	h := start(t, engine.Config{})
	staff, guests := h.db.Collection("staff"), h.db.Collection("guests")
	_, err := staff.InsertMany(t.Context(), []any{
		bson.D{{Key: "_id", Value: 1}},
		bson.D{{Key: "_id", Value: 2}, {Key: "boss", Value: 1}},
		bson.D{{Key: "_id", Value: 3}, {Key: "boss", Value: 2}},
		bson.D{{Key: "_id", Value: 4}, {Key: "boss", Value: 4}},
	})
	must(t, err)
	_, err = guests.InsertOne(t.Context(), bson.D{{Key: "_id", Value: 9}, {Key: "n", Value: 1}})
	must(t, err)
	for pipeline, want := range map[string]string{
		`[{"$match":{"_id":1}},{"$unionWith":"guests"}]`:                                                    `{"_id":1}{"_id":9,"n":1}`,
		`[{"$match":{"_id":1}},{"$unionWith":{"coll":"guests","pipeline":[{"$project":{"n":1,"_id":0}}]}}]`: `{"_id":1}{"n":1}`,
		`[{"$match":{"_id":3}},{"$graphLookup":{"from":"staff","startWith":"$boss","connectFromField":"boss","connectToField":"_id","as":"up","depthField":"d"}},{"$project":{"up._id":1,"up.d":1}}]`: `{"_id":3,"up":[{"_id":2,"d":0},{"_id":1,"d":1}]}`,
		`[{"$match":{"_id":3}},{"$graphLookup":{"from":"staff","startWith":"$boss","connectFromField":"boss","connectToField":"_id","as":"up","maxDepth":0}},{"$project":{"up._id":1}}]`:              `{"_id":3,"up":[{"_id":2}]}`,
		`[{"$match":{"_id":4}},{"$graphLookup":{"from":"staff","startWith":"$boss","connectFromField":"boss","connectToField":"_id","as":"up"}},{"$project":{"up._id":1}}]`:                           `{"_id":4,"up":[{"_id":4}]}`,
	} {
		if got := aggregated(t, staff, pipeline); got != want {
			t.Errorf("%s: got %s, want %s", pipeline, got, want)
		}
	}
}

func TestForeignCollections_AreReadByTheReadConcernOfTheCommand(t *testing.T) {
	t.Parallel()
	h := startVersion(t, "4.4")
	h.engine.SetPace(engine.Pace{JournalInterval: time.Hour})
	ask(t, h.db, []answer{
		{`{"create": "other"}`, `{"ok": 1.0}`},
		{`{"insert": "c", "documents": [{"_id": 1}], "writeConcern": {"w": "majority"}}`, `{"n": 1}`},
		{`{"insert": "other", "documents": [{"_id": 1}]}`, `{"n": 1}`},
	})
	for _, stage := range []string{
		`{"$lookup": {"from": "other", "localField": "_id", "foreignField": "_id", "as": "of"}}`,
		`{"$graphLookup": {"from": "other", "startWith": "$_id", "connectFromField": "_id", "connectToField": "_id", "as": "of"}}`,
		`{"$unionWith": {"coll": "other", "pipeline": [{"$addFields": {"of": [{"_id": 1}]}}]}}, {"$match": {"of": {"$exists": true}}}`,
	} {
		const aggregate = `{"aggregate": "c", "pipeline": [%s, {"$unwind": "$of"}, {"$count": "n"}], "cursor": {}, "readConcern": {"level": %q}}`
		ask(t, h.db, []answer{
			{fmt.Sprintf(aggregate, stage, "local"), `{"cursor.firstBatch": [{"n": 1}]}`},
			{fmt.Sprintf(aggregate, stage, "majority"), `{"cursor.firstBatch": []}`},
		})
	}
}

func TestIndexStatsAndValidate_CountWhatIsThere(t *testing.T) {
	t.Parallel()
	h := start(t, engine.Config{})
	coll := h.db.Collection("c")
	_, err := coll.Indexes().CreateOne(t.Context(), mongo.IndexModel{Keys: bson.D{{Key: "a", Value: 1}}})
	must(t, err)
	_, err = coll.InsertOne(t.Context(), bson.D{{Key: "_id", Value: 1}, {Key: "a", Value: bson.A{1, 2}}})
	must(t, err)
	for range 3 {
		must(t, coll.FindOne(t.Context(), bson.D{{Key: "a", Value: 2}}).Err())
	}
	if got := aggregated(t, coll, `[{"$indexStats":{}},{"$match":{"name":"a_1"}},{"$project":{"_id":0,"n":"$accesses.ops"}}]`); got != `{"n":3}` {
		t.Errorf("got %s, want 3 uses", got)
	}
	var checked struct {
		Valid        bool
		Nrecords     int
		KeysPerIndex map[string]int `bson:"keysPerIndex"`
	}
	must(t, h.db.RunCommand(t.Context(), bson.D{{Key: "validate", Value: "c"}}).Decode(&checked))
	if got := fmt.Sprint(checked); got != "{true 1 map[_id_:1 a_1:2]}" {
		t.Errorf("got %s", got)
	}
}

func TestServerStatus_CountsOperations(t *testing.T) {
	t.Parallel()
	h := start(t, engine.Config{})
	coll := h.db.Collection("c")
	_, err := coll.InsertMany(t.Context(), []any{bson.D{}, bson.D{}, bson.D{}})
	must(t, err)
	_, err = coll.DeleteMany(t.Context(), bson.D{})
	must(t, err)
	var status struct {
		Opcounters struct{ Insert, Delete int64 }
		Uptime     float64
	}
	must(t, h.db.RunCommand(t.Context(), bson.D{{Key: "serverStatus", Value: 1}}).Decode(&status))
	if status.Opcounters.Insert != 3 || status.Opcounters.Delete != 1 || status.Uptime != float64(int(status.Uptime)) {
		t.Errorf("got %+v, want 3 inserts, 1 delete, whole seconds", status)
	}
}

func TestTailableFinds_SkipAndLimit(t *testing.T) {
	t.Parallel()
	h := start(t, engine.Config{})
	must(t, h.db.CreateCollection(t.Context(), "c", options.CreateCollection().SetCapped(true).SetSizeInBytes(4096)))
	coll := h.db.Collection("c")
	_, err := coll.InsertMany(t.Context(), []any{bson.D{{Key: "_id", Value: 1}}, bson.D{{Key: "_id", Value: 2}}, bson.D{{Key: "_id", Value: 3}}})
	must(t, err)
	cursor, err := coll.Find(t.Context(), bson.D{}, options.Find().SetCursorType(options.TailableAwait).SetSkip(1).SetLimit(1))
	must(t, err)
	var docs []struct {
		ID int `bson:"_id"`
	}
	must(t, cursor.All(t.Context(), &docs))
	if fmt.Sprint(docs) != "[{2}]" {
		t.Errorf("got %v, want the second alone", docs)
	}
}
