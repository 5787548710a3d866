package clustertest

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"changerelay/services/e2e/internal/harness/cluster"
	"changerelay/services/e2e/internal/harness/poll"
)

// standIn makes the test binary be a service that shows what the variable names.
const standIn = "CLUSTERTEST_STAND_IN"

func TestMain(m *testing.M) {
	if shows := os.Getenv(standIn); shows != "" {
		os.Exit(show(os.Getenv(shows)))
	}
	Main(m)
}

// show says a secret on the standard output and on a page.
func show(secret string) int {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 1
	}
	fmt.Fprintf(os.Stdout, "{\"secret\":%q}\n", secret)
	fmt.Fprintf(os.Stderr, "{\"message\":\"admin listening\",\"addr\":%q}\n", listener.Addr())
	http.HandleFunc("/status", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "so: ", secret) })
	_ = http.Serve(listener, nil) //nolint:gosec // until it is killed
	return 0
}

func TestLeaks_ASecretIsFoundWhereverItIsShown(t *testing.T) {
	t.Parallel()
	servers := Sandbox(t)
	c := cluster.New(cluster.Config{
		Binaries: cluster.Binaries{Publisher: os.Args[0], Projector: os.Args[0]}, Dir: t.TempDir(), Publishers: 1, Projectors: 1,
		Names: cluster.DefaultNames(), Backend: &servers, Canaries: true,
		PublisherEnv: map[string]string{standIn: "AZURE_CLIENT_SECRET"},
		ProjectorEnv: map[string]string{standIn: "SERVICEBUS_SUBSCRIPTION"},
	})
	t.Cleanup(c.Close)
	if err := c.LayOut(); err != nil {
		t.Fatal(err)
	}
	if err := c.StartServices(); err != nil {
		t.Fatal(err)
	}
	for _, n := range c.Nodes() {
		err := poll.Until(t.Context(), "the page of "+n.Name, func(ctx context.Context) (bool, string) {
			_, _, err := n.Get(ctx, "/status")
			return err == nil, fmt.Sprint(err)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	twin, err := c.Twin(c.Publishers[0], "twin")
	if err == nil {
		err = twin.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(twin.Kill)
	err = poll.Until(t.Context(), "the page of the twin", func(ctx context.Context) (bool, string) {
		_, _, err := twin.Get(ctx, "/status")
		return err == nil, fmt.Sprint(err)
	})
	if err != nil {
		t.Fatal(err)
	}
	client, err := mongo.Connect(options.Client().ApplyURI(servers.MongoURI))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Disconnect(context.Background()) })
	errors := bson.D{{Key: "last", Value: bson.D{{Key: "error", Value: "key SAS_KEY_VALUE is not good"}}}}
	if _, err := client.Database(c.Names().StateDatabase).Collection("runs").InsertOne(t.Context(), errors); err != nil {
		t.Fatal(err)
	}
	if err := client.Database(c.Names().StateDatabase).CreateView(t.Context(), "shown", "runs", bson.A{}); err != nil {
		t.Fatal(err)
	}
	want := []string{"output of publisher-1", "/status of publisher-1", "output of twin", "/status of twin", "a document of change_relay.runs"}
	if got, err := c.Leaks(t.Context()); err != nil || !slices.Equal(got, want) {
		t.Errorf("places: got %q, %v, want %q", got, err, want)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if got, err := c.Leaks(gone); err == nil {
		t.Errorf("places, with no database to be looked at: got %q, want an error", got)
	}
}
