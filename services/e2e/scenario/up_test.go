package scenario

import (
	"context"
	"io"
	"net"
	"net/http"
	"os/exec"
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
	linksAll(ctx, t, out.String())
	dir := regexp.MustCompile(`(?m)^logs +(\S+)$`).FindStringSubmatch(out.String())[1]
	for _, command := range []string{"publisher status", "publisher doctor", "projector status", "projector doctor"} {
		name, argument, _ := strings.Cut(command, " ")
		if answer, err := exec.CommandContext(ctx, filepath.Join(dir, name), argument).CombinedOutput(); err != nil {
			t.Errorf("%s, as it is printed: %v: %s", command, err, answer)
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Errorf("Run = %v, want nil", err)
	}
}

// linksAll opens the page of all, and each page that it links.
func linksAll(ctx context.Context, t *testing.T, printed string) {
	t.Helper()
	get := func(url string) string {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		if err != nil || response.StatusCode != http.StatusOK {
			t.Fatalf("%s: %d, %v", url, response.StatusCode, err)
		}
		return string(body)
	}
	page := get(regexp.MustCompile(`(?m)^page of all +(\S+)$`).FindStringSubmatch(printed)[1])
	links := regexp.MustCompile(`<a href="([^"]+)">([^<]+)</a></th><td[^>]*>(at work|publishing|running)</td>`).FindAllStringSubmatch(page, -1)
	if len(links) != 3 {
		t.Fatalf("the page links %q, want the pages of sandbox, publisher and projector, all at work: %s", links, page)
	}
	for _, link := range links {
		if got := get(link[1]); !strings.Contains(got, "<!doctype html>") || !strings.Contains(printed, link[1]) {
			t.Errorf("%s: got %.100s, want the page of %s at a printed address", link[1], got, link[2])
		}
	}
}

func TestUp_ShowsWhyAServiceDoesNotStart(t *testing.T) {
	t.Parallel()
	err := up.Run(within(t), upConfig(t, "--projector", "ON_GAP=maybe"), t.Output())
	if err == nil || !strings.Contains(err.Error(), "projector-1 has ended") || !strings.Contains(err.Error(), `ON_GAP: is "maybe"`) {
		t.Errorf("Run = %v, want that the projector has ended, and why", err)
	}
}

// TestUp_RefusesASettingThatThereIsNot has a name that is near to none, which the service
// itself takes for somebody else's.
func TestUp_RefusesASettingThatThereIsNot(t *testing.T) {
	t.Parallel()
	err := up.Run(within(t), upConfig(t, "--publisher", "OTEL_TRACES_EXPORTER=none", "--publisher", "MOD=documents", "--projector", "NOPE=1"), t.Output())
	if err == nil || !strings.Contains(err.Error(), "--publisher: MOD is no setting") || !strings.Contains(err.Error(), "--projector: NOPE is no setting") {
		t.Errorf("Run = %v, want both refused by name", err)
	}
}

func TestUp_SaysInWordsThatAPortIsTaken(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	err = up.Run(within(t), upConfig(t, "--http", taken.Addr().String()), t.Output())
	if err == nil || !strings.Contains(err.Error(), "address already in use (see ") || strings.Contains(err.Error(), "{") {
		t.Errorf("Run = %v, want words that say so", err)
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
