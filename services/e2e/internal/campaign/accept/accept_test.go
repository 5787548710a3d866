package accept

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"changerelay/services/e2e/internal/harness/cluster"
	"changerelay/services/e2e/internal/harness/cluster/clustertest"
	"changerelay/services/e2e/internal/harness/poll"
)

func TestMain(m *testing.M) { clustertest.Main(m) }

const (
	mongoURI   = "mongodb://user:p%40ss@db.example:27017/?tls=true"
	connection = "Endpoint=sb://bus.example;SharedAccessKeyName=root;SharedAccessKey=c2VjcmV0"
)

func TestRead_TakesOneServerOrBoth(t *testing.T) {
	t.Parallel()
	sandbox := cluster.Endpoints{MongoURI: "sandbox", ServiceBus: "sandbox"}
	for _, tt := range []struct{ mongo, bus, wantMongo, wantBus string }{
		{mongoURI, connection, mongoURI, connection},
		{mongoURI, "", mongoURI, "sandbox"},
		{"", connection, "sandbox", connection},
	} {
		c, err := Read(func(name string) string { return map[string]string{envMongo: tt.mongo, envServiceBus: tt.bus}[name] })
		if e := c.over(sandbox); err != nil || e.MongoURI != tt.wantMongo || e.ServiceBus != tt.wantBus {
			t.Errorf("%+v: got %+v, %v", tt, e, err)
		}
	}
	if _, err := Read(func(string) string { return "" }); err == nil || !strings.Contains(err.Error(), envMongo) {
		t.Errorf("with neither: got %v, want an error that names the variables", err)
	}
}

func TestReport_HoldsNoSecretAndSaysWhatFailed(t *testing.T) {
	t.Parallel()
	c := Config{MongoURI: mongoURI, ServiceBus: connection}
	results := []result{
		{step: step{name: "one"}},
		{step: step{name: "two"}, err: errors.New("exit status 1"), output: "dial " + mongoURI + " as user p@ss\nusing " + connection + " and c2VjcmV0"},
	}
	text, passed := c.report("8.0.1", "abc", results, []string{"a database"})
	if passed {
		t.Error("got a pass although a step failed")
	}
	for _, secret := range []string{"p@ss", "p%40ss", "c2VjcmV0"} {
		if strings.Contains(text, secret) {
			t.Errorf("the report shows %q:\n%s", secret, text)
		}
	}
	for _, want := range []string{"db.example:27017, version 8.0.1", "bus.example", "ok ", "FAILED", "NOT RUN", "LEFT     a database", "using ***"} {
		if !strings.Contains(text, want) {
			t.Errorf("the report lacks %q:\n%s", want, text)
		}
	}
	if _, passed := c.report("8.0.1", "abc", results[:1], nil); !passed {
		t.Error("got no pass although all steps passed")
	}
}

// What tests of the services print where they have a sandbox of their own is in the report.
func TestReport_NamesTheTestsThatHaveASandboxOfTheirOwn(t *testing.T) {
	t.Parallel()
	root, err := cluster.Root()
	if err != nil {
		t.Fatal(err)
	}
	env := environment(clustertest.Sandbox(t), cluster.Binaries{Sandbox: os.Getenv("SANDBOX_BIN")})
	for _, tried := range []struct{ name, dir, in, own, given string }{
		{"publisher", "services/publisher", "./internal/servicebus", "TestTopic_ADeletionWithoutDataHasNoContentType", "TestTopic_ASendEndsWithItsContext"},
		{"projector", "services/projector", "./internal/readmodel", "TestRefresh_MendsAViewOfWhichItMayNoteNothing", "TestRefresh_NotesNothingOverASwitch"},
	} {
		command := slices.Concat(steps("")[1].command[:6], []string{"-run", "^(" + tried.own + "|" + tried.given + ")$", tried.in})
		r := step{name: tried.name, dir: tried.dir, command: command}.run(t.Context(), root, env)
		if r.err != nil {
			t.Errorf("%s: %v: %s", tried.name, r.err, r.output)
		}
		text, _ := Config{}.report("8.0.1", "abc", []result{r}, nil)
		if want := "NOT RUN  of " + tried.name + ", 1 of 2 tests, which have a sandbox of their own: " + tried.own + "\n"; !strings.Contains(text, want) {
			t.Errorf("got %s, want %s", text, want)
		}
	}
}

func TestReport_ShowsOfAFailedStepWhatHasFailed(t *testing.T) {
	t.Parallel()
	const output = "=== RUN   TestA\n    a_test.go:1: got 2, want 1\n--- FAIL: TestA (0.00s)\n"
	noise := strings.Repeat("=== PAUSE TestB\n    b_test.go:1: NOT RUN on the servers that are named: TestB has a sandbox of its own\n--- PASS: TestB (0.00s)\n", shown)
	text, _ := Config{}.report("8.0.1", "abc", []result{{step: step{name: "one"}, err: errors.New("exit status 1"), output: output + noise}}, nil)
	if !strings.Contains(text, "got 2, want 1\n--- FAIL: TestA") {
		t.Errorf("got %s, want what has failed", text)
	}
}

// What a step has started writes nothing any more once the step is over.
func TestRun_AStepThatIsCancelledEndsWithAllThatItHasStarted(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "written")
	written := func(context.Context) (bool, string) {
		_, err := os.Stat(file)
		return err == nil, ""
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() { cancel(poll.Until(ctx, "the first write", written)) }()
	// A shell stands for the go tool, and another one for the campaign that it has built.
	writes := "while echo more >> " + file + "; do sleep 0.01; done"
	r := step{name: "one", command: []string{"sh", "-c", "sh -c '" + writes + "' & wait"}}.run(ctx, "/", os.Environ())
	if !errors.Is(r.err, context.Canceled) {
		t.Errorf("got %v, want that it was cancelled", r.err)
	}
	if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	later, over := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer over()
	if poll.Until(later, "another write", written) == nil {
		t.Error("it writes on after the end of its step")
	}
}

// connect is a client of a server, and what writes to databases there.
func connect(t *testing.T, with *options.ClientOptions) (client *mongo.Client, write func(names ...string)) {
	t.Helper()
	client, err := mongo.Connect(with)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Disconnect(context.WithoutCancel(t.Context())) })
	return client, func(names ...string) {
		for _, name := range names {
			if _, err := client.Database(name).Collection("c").InsertOne(t.Context(), bson.D{}); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestClean_DropsWhatIsOursAndNothingElse(t *testing.T) {
	t.Parallel()
	client, write := connect(t, options.Client().ApplyURI(clustertest.Sandbox(t).MongoURI))
	write("test_0123456789abcdef01234567", "shop")
	before, err := client.ListDatabaseNames(t.Context(), bson.D{})
	if err != nil {
		t.Fatal(err)
	}
	n := cluster.DefaultNames().OfRun(cluster.RunName(time.Now()))
	write("test_6b033d3ed02a4a0ba3bf37ae", n.SourceDatabase, n.StateDatabase, n.ReadModelDatabase, "accounts", "test_accounts")
	left := clean(t.Context(), client, before)
	if len(left) != 2 || !strings.HasPrefix(left[0], "accounts: ") || !strings.HasPrefix(left[1], "test_accounts: ") {
		t.Errorf("left: got %q, want the two that are not ours", left)
	}
	want := append(slices.Clone(before), "accounts", "test_accounts")
	slices.Sort(want)
	got, err := client.ListDatabaseNames(t.Context(), bson.D{})
	slices.Sort(got)
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("databases: got %q, %v, want %q", got, err, want)
	}
}

// A server may still be at what it was asked for by a process that was killed.
func TestClean_DropsWhatComesAgainAndSaysWhatDoesNotStop(t *testing.T) {
	t.Parallel()
	uri := clustertest.Sandbox(t).MongoURI
	_, write := connect(t, options.Client().ApplyURI(uri))
	for name, tt := range map[string]struct{ times, left int }{
		"shop_20261122_190836_abc234": {1, 0}, "change_relay_20261122_190836_abc234": {1 << 10, 1},
	} {
		write(name)
		client, _ := connect(t, options.Client().ApplyURI(uri).SetMonitor(&event.CommandMonitor{Succeeded: func(_ context.Context, e *event.CommandSucceededEvent) {
			if e.CommandName == "dropDatabase" && tt.times > 0 {
				tt.times--
				write(name)
			}
		}}))
		left := clean(t.Context(), client, []string{"admin", "config", "local"})
		names, err := client.ListDatabaseNames(t.Context(), bson.D{{Key: "name", Value: name}})
		if err != nil || len(left) != tt.left || len(names) != tt.left || tt.left > 0 && !strings.HasPrefix(left[0], name) {
			t.Errorf("%s: got %q, and said that %q is left, error %v", name, names, left, err)
		}
	}
}
