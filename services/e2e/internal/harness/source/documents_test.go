package source_test

import (
	"context"
	"reflect"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"changerelay/services/e2e/internal/harness/cluster/clustertest"
	"changerelay/services/e2e/internal/harness/orders"
	"changerelay/services/e2e/internal/harness/source"
)

// Each event is one change, also where a command is tried again of which the answer was lost.
func TestDocumentWriter_MakesEachChangeOnce(t *testing.T) {
	t.Parallel()
	uri := clustertest.Sandbox(t).MongoURI
	if err := source.KeepImages(t.Context(), uri, "db", "documents"); err != nil {
		t.Fatal(err)
	}
	client, err := mongo.Connect(options.Client().ApplyURI(uri))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Disconnect(context.WithoutCancel(t.Context())) }()
	stream, err := client.Database("db").Collection("documents").Watch(t.Context(), mongo.Pipeline{})
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close(context.WithoutCancel(t.Context()))
	var events []orders.Event
	for version := range int64(7) {
		kind := orders.Added
		if version == 4 || version == 6 {
			kind = orders.Erased
		}
		events = append(events, orders.Event{Aggregate: "o", Version: version + 1, Type: kind, Data: orders.Data{"n": version}})
	}
	writer := source.NewDocumentWriter(client, "db", "documents")
	// The server does what it is asked, and then says that it is uncertain.
	unsure := bson.D{{Key: "configureFailPoint", Value: "failCommand"}, {Key: "mode", Value: bson.D{{Key: "times", Value: 1}}}, {Key: "data", Value: bson.D{
		{Key: "failCommands", Value: bson.A{"delete"}},
		{Key: "writeConcernError", Value: bson.D{{Key: "code", Value: 64}, {Key: "errmsg", Value: "waiting for replication timed out"}}},
	}}}
	if err := client.Database("admin").RunCommand(t.Context(), unsure).Err(); err != nil {
		t.Fatal(err)
	}
	if err := writer.Insert(t.Context(), events); err != nil {
		t.Fatal(err)
	}
	if err := writer.Insert(t.Context(), []orders.Event{{Aggregate: "last", Version: 1}}); err != nil {
		t.Fatal(err)
	}
	var got []string
	for stream.Next(t.Context()) {
		if id, _ := stream.Current.Lookup("documentKey", "_id").StringValueOK(); id == "last" {
			break
		}
		kind, _ := stream.Current.Lookup("operationType").StringValueOK()
		got = append(got, kind)
	}
	if want := []string{"insert", "update", "update", "replace", "delete", "insert", "delete"}; !reflect.DeepEqual(got, want) {
		t.Errorf("got the changes %v, want %v", got, want)
	}
}
