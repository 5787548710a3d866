package chaos

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"changerelay/services/e2e/internal/check/witness"
	"changerelay/services/e2e/internal/harness/orders"
)

// noEnv is an empty environment.
func noEnv(string) string { return "" }

func config(t *testing.T, args ...string) Config {
	t.Helper()
	cfg, err := Parse(args, noEnv, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// drawn is what of a plan can be compared.
type drawn struct {
	at, lasts time.Duration
	fault     string
	draw      uint64
}

// within are the injections of the planned time.
func within(cfg Config) []injection {
	var injections []injection
	for s := range planned(cfg) {
		if s.at >= cfg.Duration {
			break
		}
		injections = append(injections, s)
	}
	return injections
}

func draw(cfg Config) []drawn {
	var plan []drawn
	for _, s := range within(cfg) {
		plan = append(plan, drawn{s.at, s.lasts, s.fault.name, s.draw})
	}
	return plan
}

func TestPlan_ASeedMakesAPlan(t *testing.T) {
	t.Parallel()
	one := draw(config(t, "--seed", "7", "--duration", "10m"))
	if again := draw(config(t, "--seed", "7", "--duration", "10m")); !reflect.DeepEqual(one, again) {
		t.Error("the same seed made another plan")
	}
	if other := draw(config(t, "--seed", "8", "--duration", "10m")); reflect.DeepEqual(one, other) {
		t.Error("another seed made the same plan")
	}
	if sorted := slices.IsSortedFunc(one, func(a, b drawn) int { return int(a.at - b.at) }); !sorted || len(one) < 150 || len(one) > 250 {
		t.Errorf("got %d faults in 10 minutes, in order %t; want about 200, in order", len(one), sorted)
	}
}

func TestPlan_EveryDeedIsDone(t *testing.T) {
	t.Parallel()
	done := map[string]int{}
	for _, s := range within(config(t, "--duration", "1h", "--plain")) {
		done[s.fault.name]++
		if s.lasts < s.fault.shortest || s.lasts > s.fault.longest {
			t.Errorf("%s lasts %v, want %v to %v", s.fault.name, s.lasts, s.fault.shortest, s.fault.longest)
		}
	}
	for _, d := range faultKinds() {
		if done[d.name] == 0 {
			t.Errorf("an hour has no %s", d.name)
		}
	}
}

func TestPlan_EachKindComesOnceBeforeOneComesAgain(t *testing.T) {
	t.Parallel()
	orders := map[string]bool{}
	for _, args := range [][]string{{"--operators", "all"}, {"--operators", "all", "--seed", "2"}, {"--repairs", "yes"}} {
		cfg := config(t, args...)
		var names []string
		for s := range planned(cfg) {
			if names = append(names, s.fault.name); len(names) == len(cfg.kinds()) {
				break
			}
		}
		orders[strings.Join(names, ", ")] = true
		slices.Sort(names)
		if once := slices.Compact(slices.Clone(names)); len(once) != len(names) {
			t.Errorf("%q: got %q, want each once", args, names)
		}
	}
	if len(orders) != 3 {
		t.Errorf("got %d orders, want one of each seed", len(orders))
	}
}

func TestPlan_WithGivenProgramsNothingIsPlannedThatNeedsOthers(t *testing.T) {
	t.Parallel()
	built, given := config(t), config(t, "--bin", t.TempDir())
	built.Plain, given.Plain = true, true
	missing := func(cfg Config) (names []string) {
		for _, name := range ofBuilds {
			if !slices.ContainsFunc(cfg.kinds(), func(f fault) bool { return f.name == name }) {
				names = append(names, name)
			}
		}
		return names
	}
	if got := missing(built); got != nil {
		t.Errorf("without --bin: got no %q", got)
	}
	if got := missing(given); !slices.Equal(got, ofBuilds) {
		t.Errorf("with --bin: got %q left out, want %q", got, ofBuilds)
	}
}

// A projector of the last release ends at once where it cannot read what is declared.
func TestPlan_NobodyIsRolledBackToAReleaseThatRefusesTheDeclarations(t *testing.T) {
	t.Parallel()
	cfg := config(t)
	rolled := 0
	for cfg.Seed = range uint64(50) {
		m := cfg.mode()
		rolls := slices.ContainsFunc(cfg.kinds(), func(f fault) bool { return f.name == lastRelease })
		if want := !m.Keyed && !m.InGo && !m.Repairs && !m.Skips; rolls != want {
			t.Errorf("seed %d, %v: got %t, want %t", cfg.Seed, m, rolls, want)
		}
		if rolls {
			rolled++
		}
	}
	if rolled == 0 {
		t.Error("no seed rolls a projector back")
	}
}

func TestPlan_WhatWasNotDoneIsNamed(t *testing.T) {
	t.Parallel()
	c := &campaign{cfg: config(t, "--operators", "repartition,replay,halts"), done: map[string]int{"operator: repartition": 2}}
	if got, want := c.notDone(), []string{"operator: replay of what is parked", "operator: halts deleted"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestPlan_ClocksAreWrongInBothDirectionsWithinTheirBounds(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 1))
	ahead, behind := 0, 0
	for range 1000 {
		w := wrong(rng, serversWrong)
		if w.Ahead.Abs() > serversWrong || w.Then.Abs() > serversWrong || w.After < 0 || w.After > steadyClock {
			t.Fatalf("got %+v, want at most %v either way and %v until the jump", w, serversWrong, steadyClock)
		}
		if w.Ahead > 0 {
			ahead++
		}
		if w.Ahead < 0 {
			behind++
		}
	}
	if ahead == 0 || behind == 0 {
		t.Errorf("got %d clocks ahead and %d behind, want some of each", ahead, behind)
	}
}

func TestPlan_PhasesKeepTheirAggregatesApart(t *testing.T) {
	t.Parallel()
	owner := map[string]string{}
	for _, p := range phases {
		if p.aggregates == 0 {
			continue
		}
		next := p.events(1, 1)
		largest := 0
		for range 200 {
			e, _ := next()
			if by, taken := owner[e.Aggregate]; taken && by != p.name {
				t.Fatalf("%s belongs to the phases %s and %s: their versions would collide", e.Aggregate, by, p.name)
			}
			owner[e.Aggregate] = p.name
			note, _ := e.Data.(orders.Data)["note"].(string)
			largest = max(largest, len(note))
		}
		if (largest > 0) != (p.padding > 0) || largest > p.padding {
			t.Errorf("%s: the largest event is padded by %d bytes, want at most %d", p.name, largest, p.padding)
		}
	}
}

func TestPlan_EveryWrongFlagIsNamedAtOnce(t *testing.T) {
	t.Parallel()
	_, err := Parse([]string{"--publishers", "1", "--every", "1ms", "--lease", "1s", "--events", "-1", "more"}, noEnv, io.Discard)
	for _, want := range []string{"--publishers is 1, below 2", "--every is 1ms", "--lease is 1s", "--events is -1", `no argument "more"`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want it to say %q", err, want)
		}
	}
}

func TestPlan_HarmEndsWhenThereWasEnoughOfItAndNotBeforeTheEventsAreWritten(t *testing.T) {
	t.Parallel()
	stop, end := context.WithCancel(t.Context())
	c := &campaign{stop: stop, cfg: config(t, "--duration", "1m", "--events", "1"), witness: &witness.Witness{Ledger: witness.NewLedger()}}
	if c.enough(time.Hour) {
		t.Error("got enough before an event was written")
	}
	c.witness.Ledger.Wrote([]orders.Event{{Aggregate: "o", Version: 1}})
	if c.enough(time.Second) || !c.enough(time.Minute) {
		t.Error("got enough after a second or not after a minute, want a minute")
	}
	end()
	if !c.enough(time.Second) {
		t.Error("got not enough after an interrupt")
	}
}

func TestPlan_OperatorsMistakesAreMadeInPlaceOfOtherHarm(t *testing.T) {
	t.Parallel()
	of := func(args ...string) map[string]bool {
		kinds := map[string]bool{}
		for _, d := range draw(config(t, append(args, "--duration", "60m")...)) {
			kinds[d.fault] = true
		}
		return kinds
	}
	if all := of("--operators", "all"); len(all) != len(operators()) {
		t.Errorf("all: got %d kinds, want %d", len(all), len(operators()))
	}
	if some := of("--operators", "future,repartition"); len(some) != 3 {
		t.Errorf("of the future, and repartition: got %v, want three kinds", some)
	}
	for kind := range of() {
		if strings.HasPrefix(kind, "operator") {
			t.Errorf("without: got %s", kind)
		}
	}
	if _, err := Parse([]string{"--operators", "nonsense"}, noEnv, io.Discard); err == nil {
		t.Error("a name of nobody's: got no error")
	}
}

// A mistake that names the number of partitions that there are would be none.
func TestPlan_OperatorsMistakeTheNumberOfPartitionsWhateverItIs(t *testing.T) {
	t.Parallel()
	tried := map[string]bool{}
	for seed := range uint64(50) {
		cfg := config(t, "--operators", "all", "--seed", fmt.Sprint(seed))
		own := "PARTITIONS=" + cfg.mode().Publisher["PARTITIONS"]
		tried[own] = true
		for _, named := range []string{"PARTITIONS=2", "PARTITIONS=3"} {
			got := cfg.notOurs([]string{"READMODEL_GROUP=other", named})
			if got[0] != "READMODEL_GROUP=other" || got[1] == own || named != own && got[1] != named {
				t.Errorf("seed %d, of %s: got %q", seed, own, got)
			}
		}
	}
	if len(tried) != 3 {
		t.Errorf("tried %v, want three numbers", tried)
	}
}

func TestPlan_NothingIsDoneToServersThatAreGiven(t *testing.T) {
	t.Parallel()
	given := func(name string) string {
		return map[string]string{envMongo: "mongodb://db.example", envServiceBus: "Endpoint=sb://bus.example"}[name]
	}
	cfg, err := Parse([]string{"--duration", "60m", "--plain"}, given, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]bool{}
	for _, d := range draw(cfg) {
		kinds[d.fault] = true
	}
	for kind := range kinds {
		if !slices.Contains(processFaults, kind) {
			t.Errorf("got %s, want faults of processes alone", kind)
		}
	}
	if len(kinds) != len(processFaults) {
		t.Errorf("got %d kinds, want all %d", len(kinds), len(processFaults))
	}
	cfg.Plain = false
	for seed := range uint64(50) {
		cfg.Seed = seed
		if m := cfg.mode(); m.Beside || m.Documents != nil {
			t.Errorf("seed %d: got %v, want nothing that given servers may lack", seed, m)
		}
	}
	for _, args := range [][]string{{"--operators", "all"}, {"--world", "datacenter"}} {
		if _, err := Parse(args, given, io.Discard); err == nil {
			t.Errorf("%q on given servers: got no error", args)
		}
	}
}

func TestConfig_TheSourceIsDrawnUnlessItIsGiven(t *testing.T) {
	t.Parallel()
	for _, of := range [][]string{nil, {"--operators", "all"}} {
		drawn := map[bool]int{}
		for seed := range uint64(50) {
			cfg := config(t, of...)
			cfg.Seed = seed
			drawn[cfg.mode().Documents != nil]++
			cfg.Source = "events"
			if m := cfg.mode(); m.Documents != nil || m.Publisher["MODE"] != "" {
				t.Errorf("seed %d, events: got %v", seed, m)
			}
			cfg.Source = "documents"
			if m := cfg.mode(); m.Documents == nil || m.Publisher["MODE"] != "documents" {
				t.Errorf("seed %d, documents: got %v", seed, m)
			}
		}
		if drawn[true] == 0 || drawn[false] == 0 {
			t.Errorf("%q: got %v, want some of each", of, drawn)
		}
	}
}
