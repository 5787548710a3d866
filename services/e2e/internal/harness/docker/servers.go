package docker

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/ory/dockertest/v3/docker"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"changerelay/services/e2e/internal/harness/cluster"
	"changerelay/services/e2e/internal/harness/poll"
)

// Ports of the servers.
const (
	mongoPort    docker.Port = "27017/tcp"
	amqpPort     docker.Port = "5672/tcp"
	emulatorPort docker.Port = "5300/tcp"
)

// innerMongo is where the services find MongoDB. There is one member, and it may
// come back under another address.
const innerMongo = "mongodb://mongo:27017/?directConnection=true"

// password is the SQL server's, which lives as long as one run.
const password = "Change-Relay-1"

func serviceBus(host string) string {
	return "Endpoint=sb://" + host + ";SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=SAS_KEY_VALUE;UseDevelopmentEmulator=true;"
}

// NamesOf are the databases and the topic of one of the systems, counted from 0.
func NamesOf(system int) cluster.Names {
	names := cluster.DefaultNames().OfRun(fmt.Sprint(system))
	names.Topic = fmt.Sprintf("changes-%d", system)
	return names
}

// Endpoints are where this machine finds the servers.
func (h *Host) Endpoints() (cluster.Endpoints, error) {
	database, err := h.Database.Address(mongoPort)
	if err != nil {
		return cluster.Endpoints{}, err
	}
	broker, err := h.Broker.Address(amqpPort)
	if err != nil {
		return cluster.Endpoints{}, err
	}
	return cluster.Endpoints{MongoURI: "mongodb://" + database + "/?directConnection=true", ServiceBus: serviceBus(broker)}, nil
}

// serve starts the servers and waits until they serve.
func (h *Host) serve(ctx context.Context, systems int) error {
	text, err := json.MarshalIndent(entities(systems), "", "  ")
	if err != nil {
		return fmt.Errorf("write the entities: %w", err)
	}
	config, err := h.file("Config.json", text)
	if err != nil {
		return err
	}
	start := h.sandboxes
	if h.Images.Real {
		start = h.real
	}
	if err := start(ctx, config); err != nil {
		return err
	}
	return h.awaitPrimary(ctx)
}

// sandboxes starts one sandbox as the database and another one as the broker, so
// that either can be cut off alone.
func (h *Host) sandboxes(_ context.Context, config string) (err error) {
	if h.Database, err = h.run(spec{
		alias: "mongo", image: h.Images.Sandbox, ports: []docker.Port{mongoPort}, edge: h.watch, hardened: true,
	}); err != nil {
		return err
	}
	h.Broker, err = h.run(spec{
		alias: "servicebus", image: h.Images.Sandbox, ports: []docker.Port{amqpPort}, edge: h.watch, hardened: true,
		cmd: []string{"--config", "/Config.json"}, mounts: []string{config + ":/Config.json:ro"},
	})
	return err
}

func (h *Host) real(ctx context.Context, config string) (err error) {
	if h.Database, err = h.run(spec{
		alias: "mongo", image: h.Images.Mongo, ports: []docker.Port{mongoPort}, edge: h.watch,
		cmd: []string{"mongod", "--replSet", "rs0", "--bind_ip_all"},
	}); err != nil {
		return err
	}
	if _, err = h.run(spec{
		alias: "sql", image: h.Images.SQL, edge: h.watch,
		env: map[string]string{"ACCEPT_EULA": "Y", "MSSQL_SA_PASSWORD": password},
	}); err != nil {
		return err
	}
	if h.Broker, err = h.run(spec{
		alias: "servicebus", image: h.Images.ServiceBus, ports: []docker.Port{amqpPort, emulatorPort}, edge: h.watch,
		env:    map[string]string{"ACCEPT_EULA": "Y", "SQL_SERVER": "sql", "MSSQL_SA_PASSWORD": password},
		mounts: []string{config + ":/ServiceBus_Emulator/ConfigFiles/Config.json:ro"},
	}); err != nil {
		return err
	}
	return h.awaitEmulator(ctx)
}

// awaitEmulator waits for the emulator's own word, which it gives over HTTP.
func (h *Host) awaitEmulator(ctx context.Context) error {
	return poll.Until(ctx, "the emulator to be healthy", func(ctx context.Context) (bool, string) {
		address, err := h.Broker.Address(emulatorPort)
		if err != nil {
			return false, err.Error()
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/health", http.NoBody)
		if err != nil {
			return false, err.Error()
		}
		resp, err := h.client.Do(req)
		if err != nil {
			return false, err.Error()
		}
		defer resp.Body.Close()
		return resp.StatusCode == http.StatusOK, resp.Status
	})
}

// awaitPrimary makes the database a replica set where it is none, and waits
// until it takes writes.
func (h *Host) awaitPrimary(ctx context.Context) error {
	endpoints, err := h.Endpoints()
	if err != nil {
		return err
	}
	client, err := mongo.Connect(options.Client().ApplyURI(endpoints.MongoURI))
	if err != nil {
		return fmt.Errorf("connect to MongoDB: %w", err)
	}
	defer func() { _ = client.Disconnect(context.WithoutCancel(ctx)) }()
	admin := client.Database("admin")
	initiate := bson.D{{Key: "replSetInitiate", Value: bson.D{
		{Key: "_id", Value: "rs0"},
		{Key: "members", Value: bson.A{bson.D{{Key: "_id", Value: 0}, {Key: "host", Value: "mongo:27017"}}}},
	}}}
	return poll.Until(ctx, "MongoDB to have a primary", func(ctx context.Context) (bool, string) {
		var hello struct {
			Primary bool   `bson:"isWritablePrimary"`
			Set     string `bson:"setName"`
		}
		err := admin.RunCommand(ctx, bson.D{{Key: "hello", Value: 1}}).Decode(&hello)
		if err == nil && hello.Set == "" {
			err = admin.RunCommand(ctx, initiate).Err()
		}
		return hello.Primary, fmt.Sprint(err)
	})
}

// entities are, in the form of the emulator's Config.json, a topic for each
// system. The locks are short, for what is cut off leaves its own behind.
func entities(systems int) any {
	subscription := func(name string, sessions bool) map[string]any {
		return map[string]any{"Name": name, "Properties": map[string]any{
			"LockDuration": "PT10S", "MaxDeliveryCount": 10, "RequiresSession": sessions, "DefaultMessageTimeToLive": "PT1H",
		}}
	}
	var topics []any
	for i := range systems {
		topics = append(topics, map[string]any{
			"Name": NamesOf(i).Topic,
			"Properties": map[string]any{
				"DefaultMessageTimeToLive": "PT1H", "RequiresDuplicateDetection": true, "DuplicateDetectionHistoryTimeWindow": "PT5M",
			},
			"Subscriptions": []any{subscription("projector", true), subscription("observer", false)},
		})
	}
	return map[string]any{"UserConfig": map[string]any{
		"Namespaces": []any{map[string]any{"Name": "sbemulatorns", "Topics": topics}},
		"Logging":    map[string]any{"Type": "Console"},
	}}
}
