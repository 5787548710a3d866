package stage

import (
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"changerelay/services/e2e/internal/harness/cluster"
	"changerelay/services/e2e/internal/harness/cluster/clustertest"
)

func TestMain(m *testing.M) { clustertest.Main(m) }

// On servers that were given, a stage has entities of its own, and leaves none.
func TestStage_AStageOnGivenServersLeavesNothing(t *testing.T) {
	t.Parallel()
	servers := clustertest.Sandbox(t)
	s, err := Open(t.Context(), Config{Place: cluster.Place{Dir: t.TempDir()}, Given: &servers}, "run_1",
		Topic{Name: "changes", Deduplicates: true, Partitioned: true, Subscriptions: []string{"projector"}})
	if err != nil {
		t.Fatal(err)
	}
	client, err := mongo.Connect(options.Client().ApplyURI(servers.MongoURI))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Disconnect(t.Context()) }()
	n := s.Names("changes")
	if _, err := client.Database(n.SourceDatabase).Collection(n.SourceCollection).InsertOne(t.Context(), bson.D{}); err != nil {
		t.Fatal(err)
	}
	if err := send(t, servers.ServiceBus, n.Topic); err != nil {
		t.Errorf("send to the topic: %v", err)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := send(t, servers.ServiceBus, n.Topic); err == nil {
		t.Error("the topic is there after the stage was closed")
	}
	databases, err := client.ListDatabaseNames(t.Context(), bson.D{{Key: "name", Value: n.SourceDatabase}})
	if err != nil || len(databases) > 0 {
		t.Errorf("databases left: got %v, %v, want none", databases, err)
	}
}

func send(t *testing.T, connection, topic string) error {
	t.Helper()
	client, err := azservicebus.NewClientFromConnectionString(connection, nil)
	if err != nil {
		return err
	}
	defer func() { _ = client.Close(t.Context()) }()
	sender, err := client.NewSender(topic, nil)
	if err != nil {
		return err
	}
	return sender.SendMessage(t.Context(), &azservicebus.Message{Body: []byte("x"), SessionID: new("s")}, nil)
}
