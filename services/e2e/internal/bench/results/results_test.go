package results

import (
	"flag"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write the golden files anew")

func sample() *Result {
	growth := Experiment{Name: "projectors", Title: "More projectors", Shows: "How it grows."}
	growth.Add(Point{"1 projector", []Figure{One("messages", PerSecond, 1200), One("memory", Bytes, 50<<20)}})
	growth.Add(Point{"8 projectors", []Figure{One("messages", PerSecond, 4800)}})
	growth.Add(Point{"1 projector", []Figure{One("messages", PerSecond, 1000)}}, Point{"8 projectors", []Figure{One("messages", PerSecond, 5200)}})
	failover := Experiment{Name: "failover", Title: "Failover", Shows: "Which <leader> is gone.", Wrong: []string{"SIGSTOP, 2 of 3: no leader"}}
	failover.Add(Point{"SIGKILL", []Figure{{"longest wait", Seconds, []float64{5.5, 4.25, 6}, 7}}})
	failover.Add(Point{"SIGTERM", []Figure{{"longest wait", Seconds, []float64{0.2, 0.1, 0.3}, 1}}})
	return &Result{
		Started: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), Seconds: 660, Quick: true,
		Machine:     Machine{System: "linux/amd64", CPU: "Some CPU", Cores: 2, Memory: 4 << 30, Go: "go1.26", Commit: "abc", Load: 0.1, Servers: "sandbox"},
		Parameters:  map[string]any{"repeats": 2.0},
		Experiments: []Experiment{growth, failover},
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s: got\n%s\nwant\n%s", name, got, want)
	}
}

func TestResults_TheTables(t *testing.T) {
	t.Parallel()
	golden(t, "tables.md", sample().Markdown())
}

func TestResults_ThePage(t *testing.T) {
	t.Parallel()
	var got strings.Builder
	if err := sample().WritePage(&got); err != nil {
		t.Fatal(err)
	}
	golden(t, "page.html", got.String())
	for _, outside := range []string{"http:", "https:", "<script", "url("} {
		if strings.Contains(got.String(), outside) {
			t.Errorf("the page refers to something outside: %s", outside)
		}
	}
}

func TestResults_OnlyWhatIsBetweenTheMarksIsUpdated(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "performance.md")
	if err := os.WriteFile(path, []byte("before\n"+beginMark+"\nold\n"+endMark+"\nafter\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := sample()
	for range 2 {
		if err := r.Update(path); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if want := "before\n" + beginMark + "\n" + r.Markdown() + endMark + "\nafter\n"; string(got) != want {
		t.Errorf("document: got\n%s\nwant\n%s", got, want)
	}
	unmarked := filepath.Join(t.TempDir(), "plain.md")
	if err := os.WriteFile(unmarked, []byte("no marks"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := r.Update(unmarked); err == nil || !strings.Contains(err.Error(), beginMark) {
		t.Errorf("a document without marks: got %v, want an error that names the mark", err)
	}
}

func TestResults_TheJSONHoldsEverything(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "bench.json")
	want := sample()
	if err := want.WriteJSON(path); err != nil {
		t.Fatal(err)
	}
	got, err := Read(path)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("result: got %+v, want %+v", got, want)
	}
}

func TestResults_AResultIsSoundWhenNothingWentWrong(t *testing.T) {
	t.Parallel()
	r := sample()
	if r.Sound() {
		t.Error("a result with a measurement that went wrong is sound")
	}
	r.Experiments = r.Experiments[:1]
	if !r.Sound() {
		t.Error("a result in which nothing went wrong is not sound")
	}
}

func TestResults_Quantiles(t *testing.T) {
	t.Parallel()
	values := []float64{9, 1, 3, 7, 5, 2, 4, 6, 8, 10}
	for q, want := range map[float64]float64{0: 1, 0.1: 1, 0.5: 5, 0.51: 6, 0.99: 10, 1: 10} {
		if got := Quantile(values, q); got != want {
			t.Errorf("Quantile(1 to 10, %v): got %v, want %v", q, got, want)
		}
	}
	if got := Median(values); got != 5.5 {
		t.Errorf("Median(1 to 10): got %v, want 5.5", got)
	}
	if got := Median([]float64{3, 1, 2}); got != 2 {
		t.Errorf("Median(3, 1, 2): got %v, want 2", got)
	}
	if !math.IsNaN(Median(nil)) || !math.IsNaN(Quantile(nil, 0.5)) {
		t.Error("no values: got a number, want none")
	}
}

func TestResults_AxesEndAtRoundNumbers(t *testing.T) {
	t.Parallel()
	for most, want := range map[float64]axis{0: {step: 1, end: 1}, 1: {step: 0.5, end: 1}, 4800: {step: 2000, end: 6000}, 7: {step: 2, end: 8}, 0.3: {step: 0.1, end: 0.3}, 99: {step: 50, end: 100}} {
		got := newAxis(most, Count)
		if math.Abs(got.step-want.step) > 1e-9 || math.Abs(got.end-want.end) > 1e-9 {
			t.Errorf("newAxis(%v): got %v, want %v", most, got, want)
		}
	}
}

func TestResults_NumbersAreWrittenForPeople(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		figure Figure
		want   string
	}{
		{"one repetition has no spread", One("", PerSecond, 12345.6), "12,346/s"},
		{"short times are milliseconds, all of them", Figure{Unit: Seconds, Values: []float64{0.5, 0.25, 1.5}}, "500 ms (250–1,500)"},
		{"longer ones are seconds", Figure{Unit: Seconds, Values: []float64{5, 6}}, "5.50 s (5.00–6.00)"},
		{"bytes are mebibytes", One("", Bytes, 50<<20), "50.0 MiB"},
		{"ratios", Figure{Unit: Ratio, Values: []float64{0.8, 0.9, 1}}, "0.90 × (0.80–1.00)"},
		{"counts are whole", One("", Count, 3), "3"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := tt.figure.spread(); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestResults_ABusyMachineIsToldOf(t *testing.T) {
	t.Parallel()
	for load, want := range map[float64]bool{0.5: false, 1.5: true} {
		r := sample()
		r.Machine.Load = load
		if got := strings.Contains(r.Markdown(), "busy"); got != want {
			t.Errorf("2 cores at a load of %v: got told of %v, want %v", load, got, want)
		}
	}
}
