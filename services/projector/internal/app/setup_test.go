package app_test

import (
	"bytes"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/command"
	"changerelay/services/projector/internal/projection"
	"changerelay/services/projector/internal/sandboxtest"
	"changerelay/services/projector/internal/settings"
)

// accounts are a role to deploy with, one to run with that may not even create
// an index, one to switch versions with, and one that may do next to nothing.
const accounts = `{
  "roles": [
    {"role": "deploying", "privileges": [{"resource": {"db": "shop_read", "collection": ""}, "actions": ["createCollection", "createIndex", "listIndexes", "find"]}]},
    {"role": "running", "privileges": [{"resource": {"db": "shop_read", "collection": ""}, "actions": ["find", "insert", "update"]}]},
    {"role": "switching", "privileges": [{"resource": {"db": "shop_read", "collection": ""}, "actions": ["find", "listCollections", "createCollection", "collMod"]}, {"resource": {"db": "shop_read", "collection": "collection_owners"}, "actions": ["insert", "update"]}]},
    {"role": "looking", "privileges": [{"resource": {"db": "shop_read", "collection": ""}, "actions": ["listIndexes"]}]}
  ],
  "users": [
    {"user": "deployer", "pwd": "deploysecret", "roles": [{"role": "deploying"}]},
    {"user": "projector", "pwd": "runsecret", "roles": [{"role": "running"}]},
    {"user": "operator", "pwd": "switchsecret", "roles": [{"role": "switching"}]},
    {"user": "onlooker", "pwd": "looksecret", "roles": [{"role": "looking"}]}
  ]
}`

// guarded are servers with these accounts, and the way in for a user.
func guarded(t *testing.T, topic string, more ...string) (*sandboxtest.Endpoints, func(user, password string) string) {
	t.Helper()
	servers := sandboxtest.StartGuarded(t, sandboxtest.Topics(topic), accounts, more...)
	return servers, func(user, password string) string {
		return strings.Replace(servers.MongoURI, "://", "://"+user+":"+password+"@", 1)
	}
}

// environ sets the environment of a command.
func environ(t *testing.T, servers *sandboxtest.Endpoints, topic, uri, database string) {
	t.Helper()
	for name, value := range map[string]string{
		"SERVICEBUS_CONNECTION_STRING": servers.ServiceBus, "SERVICEBUS_TOPIC": topic, "SERVICEBUS_SUBSCRIPTION": "projector",
		"READMODEL_MONGODB_URI": uri, "READMODEL_DATABASE": database, "PROJECTIONS": "",
	} {
		t.Setenv(name, value)
	}
}

// Setup is run by one role, again by the same, and in vain by the role that the
// projector runs with; then the projector works with that.
func TestSetup_AProjectorThatMayNotCreateIndexesWorksAfterSetup(t *testing.T) {
	cfg := configured(t, "guarded", "shop_read")
	servers, as := guarded(t, "guarded")
	environ(t, servers, "guarded", as("deployer", "deploysecret"), "shop_read")
	for range 2 {
		if lines, err := runCommand(t, "setup"); err != nil || len(lines) != 1 || lines[0]["ready"] != true {
			t.Fatalf("setup: got %v and %v", lines, err)
		}
	}
	deployer, err := mongo.Connect(options.Client().ApplyURI(as("deployer", "deploysecret")))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = deployer.Disconnect(t.Context()) }()
	indexes, err := deployer.Database("shop_read").Collection("latest").Indexes().ListSpecifications(t.Context())
	if err != nil || len(indexes) != 2 || indexes[1].Name != "tombstones" {
		t.Errorf("indexes: got %+v and %v, want those of _id and tombstones", indexes, err)
	}

	environ(t, servers, "guarded", as("projector", "runsecret"), "shop_read")
	var said bytes.Buffer
	if _, err := command.Program("test").Do(t.Context(), []string{"setup"}, &said, &said); err == nil || strings.Contains(err.Error()+said.String(), "runsecret") {
		t.Errorf("setup without the right: got %v and %q, want an error without the password", err, &said)
	}

	cfg.MongoURI, cfg.ServiceBusConnectionString = settings.Secret(as("projector", "runsecret")), settings.Secret(servers.ServiceBus)
	p := start(t, cfg, projection.Projections{projection.Latest{Collection: "latest"}})
	message, err := contract.Encode(event("a", 1, "Happened", `{}`), contract.EncodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	sandboxtest.Send(t, servers, "guarded", message)
	until(t, "the projector has applied the event", func() bool { return p.Status().Applied == 1 })
}

// A TOMBSTONE_TTL that the index does not have is told, and keeps nobody from
// working.
func TestSetup_AnotherTombstoneTTLDoesNotStopTheProjector(t *testing.T) {
	t.Parallel()
	client, database := servers.Mongo(t, nil)
	_, err := client.Database(database).Collection("latest").Indexes().CreateOne(t.Context(), mongo.IndexModel{
		Keys:    bson.D{{Key: "_relay.deletedAt", Value: 1}},
		Options: options.Index().SetName("tombstones").SetSparse(true).SetExpireAfterSeconds(60),
	})
	if err != nil {
		t.Fatal(err)
	}
	send(t, "ttl", event("a", 1, "Happened", `{}`))
	p := start(t, configured(t, "ttl", database), projection.Projections{projection.Latest{Collection: "latest"}})
	until(t, "the projector has applied the event", func() bool { return p.Status().Applied == 1 })
	if !strings.Contains(p.logs.String(), "TOMBSTONE_TTL is not in effect") {
		t.Errorf("the log says nothing of the index: %s", p.logs)
	}
}
