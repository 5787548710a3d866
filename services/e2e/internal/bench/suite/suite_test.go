package suite

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"changerelay/services/e2e/internal/bench/results"
)

// smallest measures everything as little as it can be measured.
func smallest() Scale {
	return Scale{
		Repeats: 1, Events: 200, Aggregates: 50, Rates: []int{200}, Steady: 500 * time.Millisecond,
		Failovers: 1, Lease: leastLease, Sizes: []Size{{2_000, 50}}, Spreads: []int{10}, Projectors: []int{1, 2}, Partitions: []int{1, 2},
		Backlog: 300, Messages: 200, HotMessages: 5, ShortSessions: 20, Crowd: 300, Distances: []time.Duration{0}, Plain: 100 * time.Millisecond, PlainMessages: 5, Near: time.Millisecond, Far: time.Millisecond,
		Limited: 500, Burst: 200, LimitedMessages: 200, Links: []LinkScale{{2, time.Millisecond, 12, 20, 50_000}}, Mixed: 20,
		Foreign: 100, Scan: 3 * time.Second, Copies: []int{100, 200}, Repaired: 300,
	}
}

// What is measured is compared with a recomputation, so a figure of every point
// says that all of it went through.
func TestSuite_EveryExperimentMeasuresSomething(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it builds and starts every process some twenty times")
	}
	dir := t.TempDir()
	page := filepath.Join(dir, "performance.md")
	if err := os.WriteFile(page, []byte("<!-- results -->\n<!-- end -->\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	r, err := Run(t.Context(), Config{Scale: smallest(), Dir: dir, Update: page, Timeout: time.Hour}, &out)
	if err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	if !r.Sound() {
		t.Errorf("something went wrong:\n%s", &out)
	}
	if got, want := len(r.Experiments), len(experiments(smallest())); got != want {
		t.Errorf("experiments: got %d, want %d", got, want)
	}
	for _, e := range r.Experiments {
		if len(e.Points) == 0 {
			t.Errorf("%s: got no points", e.Name)
		}
		for _, p := range e.Points {
			if len(p.Figures) == 0 || results.Median(p.Figures[0].Values) <= 0 {
				t.Errorf("%s, %s: got %+v, want figures above 0", e.Name, p.Name, p.Figures)
			}
		}
	}
	for _, file := range []string{"bench.json", "bench.html", "performance.md"} {
		text, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil || !strings.Contains(string(text), "whole path") {
			t.Errorf("%s: got %q, %v, want the result", file, text, err)
		}
	}
	again, err := Run(t.Context(), Config{From: filepath.Join(dir, "bench.json")}, &out)
	if err != nil || again.Markdown() != r.Markdown() {
		t.Errorf("shown from the file: got %v and other tables than those measured", err)
	}
}

// A measurement that cannot be made is told of, and the others are made.
func TestSuite_ARoundThatFailsIsToldOf(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	e := experiment{name: "x", rounds: []round{
		{name: "first", usual: time.Minute, measure: func(context.Context, *bench) ([]results.Point, error) { return nil, errors.New("no leader") }},
		{name: "second", usual: time.Minute, measure: func(context.Context, *bench) ([]results.Point, error) {
			return []results.Point{{Name: "p", Figures: []results.Figure{results.One("f", results.Count, 1)}}}, nil
		}},
	}}
	b, made, p := &bench{}, newTaken([]experiment{e}), newProgress(&out, []experiment{e})
	b.measured(t.Context(), made, place{0, 0}, p)
	b.measured(t.Context(), made, place{0, 1}, p)
	got := made.results()[0]
	if len(got.Wrong) != 1 || !strings.Contains(got.Wrong[0], "first: no leader") || len(got.Points) != 1 {
		t.Errorf("experiment: got %+v, want what went wrong in the first round and the point of the second", got)
	}
	for _, line := range []string{"1 of 2  x: first; about 2m0s left", "first: no leader", "2 of 2  x: second", "p: f 1"} {
		if !strings.Contains(out.String(), line) {
			t.Errorf("progress: got %q, want it to say %q", &out, line)
		}
	}
}

// Measurements are compared with each other, and read models with events that are
// drawn a second time.
func TestSuite_EventsAreTheSameEachTime(t *testing.T) {
	t.Parallel()
	f := &flow{events: 20, aggregates: 3, size: 500}
	first, second := f.generated(), f.generated()
	for range f.events {
		a, _ := first()
		b, _ := second()
		if a.ID() != b.ID() || a.Data.(map[string]any)["fill"] != b.Data.(map[string]any)["fill"] {
			t.Fatalf("events: got %v and %v, want the same", a, b)
		}
		if got := len(a.Data.(map[string]any)["fill"].(string)); got != 300 {
			t.Errorf("filler: got %d characters, want what is missing to 500 bytes", got)
		}
	}
}
