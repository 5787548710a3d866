package scenario

import (
	"context"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"changerelay/services/e2e/internal/harness/poll"
	"changerelay/services/e2e/internal/harness/up"
)

// output is what a command prints.
type output struct {
	mu   sync.Mutex
	text strings.Builder // guarded by mu
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

func upConfig(t *testing.T, args ...string) up.Config {
	t.Helper()
	cfg, err := up.Parse(append([]string{"--bin", filepath.Dir(binaries.Sandbox), "--dir", t.TempDir()}, args...), t.Output())
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// clientOf waits for the addresses that are printed, and connects to MongoDB.
func clientOf(ctx context.Context, t *testing.T, out *output) *mongo.Client {
	t.Helper()
	var uri string
	if err := poll.Until(ctx, "the addresses", func(context.Context) (bool, string) {
		uri = regexp.MustCompile(`mongodb://\S+`).FindString(out.String())
		return uri != "" && strings.Contains(out.String(), "Ctrl-C"), out.String()
	}); err != nil {
		t.Fatal(err)
	}
	client, err := mongo.Connect(options.Client().ApplyURI(uri))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Disconnect(context.WithoutCancel(ctx)) })
	return client
}

func TestUp_CarriesWhatIsWrittenUntilItIsToldToStop(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(within(t))
	defer stop()
	var out output
	ended := make(chan error, 1)
	go func() {
		ended <- up.Run(ctx, upConfig(t, "--database", "mine", "--collection", "log", "--publisher", "FIELD_AGGREGATE_ID=case"), &out)
	}()
	client := clientOf(ctx, t, &out)
	event := bson.D{{Key: "case", Value: "a"}, {Key: "type", Value: "Opened"}, {Key: "version", Value: 1}, {Key: "data", Value: bson.D{{Key: "by", Value: "me"}}}}
	if _, err := client.Database("mine").Collection("log").InsertOne(ctx, event); err != nil {
		t.Fatal(err)
	}
	if err := poll.Until(ctx, "the event in the read model", func(ctx context.Context) (bool, string) {
		n, err := client.Database("shop_read").Collection("latest").CountDocuments(ctx, bson.D{{Key: "_id", Value: "a"}})
		return err == nil && n == 1, out.String()
	}); err != nil {
		t.Fatal(err)
	}
	stop()
	if err := <-ended; err != nil {
		t.Errorf("Run = %v, want nil", err)
	}
}

func TestUp_ShowsWhyAServiceDoesNotStart(t *testing.T) {
	t.Parallel()
	err := up.Run(within(t), upConfig(t, "--projector", "ON_GAP=maybe"), t.Output())
	if err == nil || !strings.Contains(err.Error(), "projector-1 has ended") || !strings.Contains(err.Error(), `ON_GAP: is "maybe"`) {
		t.Errorf("Run = %v, want that the projector has ended, and why", err)
	}
}

func TestUp_RefusesWhatItCannotRun(t *testing.T) {
	t.Parallel()
	_, err := up.Parse([]string{"--publishers", "0", "--projectors", "-1", "--projections", "missing.yaml", "now"}, t.Output())
	if err == nil {
		t.Fatal("got no error")
	}
	for _, want := range []string{"--publishers is 0", "--projectors is -1", "missing.yaml", `no argument "now"`} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("got %q, want it to say %q", err, want)
		}
	}
}
