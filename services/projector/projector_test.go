package projector_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"changerelay/services/projector"
)

// Whoever uses the package can name every type that it shows.
func TestPackage_ShowsNoInternalType(t *testing.T) {
	t.Parallel()
	shown, err := exec.CommandContext(t.Context(), "go", "doc", "-all", ".").CombinedOutput()
	if err != nil || !strings.Contains(string(shown), "func Main(projections ...Projection)") {
		t.Fatalf("got %s and %v, want what the package shows", shown, err)
	}
	if found := regexp.MustCompile(`\b(projection|command|config|cli|contract)\.[A-Z]\w+|/internal`).FindString(string(shown)); found != "" {
		t.Errorf("it shows %s", found)
	}
}

func run(t *testing.T, args string, projections ...projector.Projection) (status int, stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	status = projector.Run(t.Context(), strings.Fields(args), &out, &err, projections...)
	return status, out.String(), err.String()
}

func TestRun_RefusesAProjectionThatCannotBe(t *testing.T) {
	t.Parallel()
	nameless := projector.Projection{Collection: "c", Revision: "1", Decide: stock.Decide}
	twin := stock
	twin.Name = "twin"
	for name, tt := range map[string]struct {
		projections []projector.Projection
		says        string
	}{
		"without a name":     {[]projector.Projection{nameless}, "it has no name"},
		"without a revision": {[]projector.Projection{{Name: "p", Collection: "c", Decide: stock.Decide}}, "it has no revision"},
		"that do nothing":    {[]projector.Projection{{Name: "p", Collection: "c", Revision: "1"}}, "it does not decide"},
		"with no action":     {[]projector.Projection{{Name: "p", Collection: "c", Revision: "1", Decide: stock.Decide, OnError: projector.OnError{Store: "ignore"}}}, `OnError: store: "ignore" is not one of skip, deadletter, halt, stop`},
		"twice":              {[]projector.Projection{stock, stock}, `projection "stock" is there twice`},
		"in one collection":  {[]projector.Projection{stock, twin}, `projection "twin" writes collection "stock", which belongs to projection "stock"`},
	} {
		if status, _, stderr := run(t, "validate", tt.projections...); status != 2 || !strings.Contains(stderr, tt.says) {
			t.Errorf("%s: got status %d and %s, want 2 and %s", name, status, stderr, tt.says)
		}
	}
}

// What the program has in its code stands beside what PROJECTIONS declares, and in the
// place of the default projection.
func TestRun_HasItsProjectionsBesideThoseOfFiles(t *testing.T) {
	const inGo, declared, latest = `{"name":"stock","collections":["stock"],"types":["StockMoved"]}`, `{"name":"orders","collections":["orders"],"types":["OrderPlaced"]}`, `{"name":"latest","collections":["latest"]}`
	file := filepath.Join(t.TempDir(), "p.yaml")
	if err := os.WriteFile(file, []byte("projections: [{name: orders, collection: orders, on: {OrderPlaced: {inc: {n: 1}}}}]"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		files       string
		projections []projector.Projection
		want        []string
	}{
		{"", []projector.Projection{stock}, []string{inGo}},
		{file, []projector.Projection{stock}, []string{inGo, declared}},
		{file, nil, []string{declared}},
		{"", nil, []string{latest}},
	} {
		t.Setenv("PROJECTIONS", tt.files)
		status, stdout, stderr := run(t, "validate", tt.projections...)
		if got := strings.Split(strings.TrimSpace(stdout), "\n"); status != 0 || strings.Join(got, " ") != strings.Join(tt.want, " ") {
			t.Errorf("with PROJECTIONS=%s: got status %d, %s and %s, want %s", tt.files, status, stdout, stderr, tt.want)
		}
	}
	t.Setenv("PROJECTIONS", "")
	for args, want := range map[string]int{"version": 0, "--help": 0, "nonsense": 2, "status": 2, "": 2} {
		if status, stdout, stderr := run(t, args, stock); status != want {
			t.Errorf("%s: got status %d, %s and %s, want %d", args, status, stdout, stderr, want)
		}
	}
}

func TestRun_TriesItsProjections(t *testing.T) {
	t.Parallel()
	event := filepath.Join(t.TempDir(), "event.json")
	if err := os.WriteFile(event, []byte(`{"type": "StockMoved", "data": {"article": "tea", "from": "a", "to": "b", "count": 3}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	status, stdout, stderr := run(t, "try --event "+event, stock)
	if status != 0 || strings.Count(stdout, "\n") != 2 || !strings.Contains(stdout, `"tea@b"`) || !strings.Contains(stdout, "applied_positions") {
		t.Errorf("got status %d, %s and %s, want two updates, with their guard", status, stdout, stderr)
	}
	broken := stock
	broken.Decide = func(*projector.Event) ([]projector.Write, error) { panic("of the code") }
	status, _, stderr = run(t, "try --event "+event, broken)
	if status != 1 || !strings.Contains(stderr, "panic: of the code") || !strings.Contains(stderr, "projector_test.go") {
		t.Errorf("got status %d and %s, want the panic, with its stack", status, stderr)
	}
}

func TestTry_FindsWhatDependsOnMoreThanTheEvent(t *testing.T) {
	t.Parallel()
	calls := 0
	counting := projector.Projection{Name: "p", Collection: "c", Revision: "1", Decide: func(e *projector.Event) ([]projector.Write, error) {
		calls++
		return []projector.Write{projector.Update(e.AggregateID, projector.Set("calls", calls/10))}, nil
	}}
	if got, err := counting.Try(`{"type": "Happened"}`); err == nil || !strings.Contains(err.Error(), "decides differently about the same event") {
		t.Errorf("got %s and %v, want that it decides differently", got, err)
	}
	for name, broken := range map[string]projector.Projection{
		"that cannot be": {Name: "p"},
		"that refuses":   {Name: "p", Collection: "c", Revision: "1", Decide: func(*projector.Event) ([]projector.Write, error) { return nil, projector.ErrNoData }},
		"beyond bounds": {Name: "p", Collection: "c", Revision: "1", Decide: func(*projector.Event) ([]projector.Write, error) {
			return []projector.Write{projector.Update("another", projector.Set("a", 1))}, nil
		}},
	} {
		if got, err := broken.Try(`{"type": "Happened"}`); err == nil {
			t.Errorf("a projection %s: got %s, want an error", name, got)
		}
	}
	if got, err := stock.Try(`{"type": `); err == nil {
		t.Errorf("an event that is cut off: got %s, want an error", got)
	}
}

// What Decide is given is its own: others decide about the same event.
func TestEvent_IsDecidesOwn(t *testing.T) {
	t.Parallel()
	spoiling := projector.Projection{Name: "p", Collection: "c", Revision: "1", Decide: func(e *projector.Event) ([]projector.Write, error) {
		write := projector.Update(e.AggregateID, projector.Set("data", e.Data), projector.Push("list"), projector.AddToSet("set", 1), projector.Pull("pull", 1), projector.Min("min", 1))
		text := write.String()
		clear(e.Data.Value)
		return []projector.Write{projector.Update(e.AggregateID, projector.Set("text", text)), projector.Update(e.AggregateID)}, nil
	}}
	got, err := spoiling.Try(`{"type": "Happened", "data": {"a": 1}}`)
	if err != nil || !strings.Contains(got, `{\"data\":{\"a\":1}}`) {
		t.Errorf("got %s and %v, want the data as they came", got, err)
	}
}
