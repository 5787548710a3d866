package chaos

import (
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"changerelay/services/e2e/internal/orders"
)

func config(t *testing.T, args ...string) Config {
	t.Helper()
	cfg, err := Parse(args, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// drawn is what of a plan can be compared.
type drawn struct {
	at, lasts time.Duration
	deed      string
	draw      uint64
}

func draw(cfg Config) []drawn {
	var plan []drawn
	for _, s := range planned(cfg) {
		plan = append(plan, drawn{s.at, s.lasts, s.deed.name, s.draw})
	}
	return plan
}

func TestASeedMakesAPlan(t *testing.T) {
	t.Parallel()
	one := draw(config(t, "--seed", "7", "--duration", "10m"))
	if again := draw(config(t, "--seed", "7", "--duration", "10m")); !reflect.DeepEqual(one, again) {
		t.Error("the same seed made another plan")
	}
	if other := draw(config(t, "--seed", "8", "--duration", "10m")); reflect.DeepEqual(one, other) {
		t.Error("another seed made the same plan")
	}
	if sorted := slices.IsSortedFunc(one, func(a, b drawn) int { return int(a.at - b.at) }); !sorted || len(one) < 150 || len(one) > 250 {
		t.Errorf("got %d deeds in 10 minutes, in order %t; want about 200, in order", len(one), sorted)
	}
}

func TestEveryDeedIsDone(t *testing.T) {
	t.Parallel()
	done := map[string]int{}
	for _, s := range planned(config(t, "--duration", "1h")) {
		done[s.deed.name]++
		if s.lasts < s.deed.shortest || s.lasts > s.deed.longest {
			t.Errorf("%s lasts %v, want %v to %v", s.deed.name, s.lasts, s.deed.shortest, s.deed.longest)
		}
	}
	for _, d := range deeds() {
		if done[d.name] == 0 {
			t.Errorf("an hour has no %s", d.name)
		}
	}
}

func TestPhasesKeepTheirAggregatesApart(t *testing.T) {
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

func TestEveryWrongFlagIsNamedAtOnce(t *testing.T) {
	t.Parallel()
	_, err := Parse([]string{"--publishers", "1", "--every", "1ms", "--lease", "1s", "more"}, io.Discard)
	for _, want := range []string{"--publishers is 1, below 2", "--every is 1ms", "--lease is 1s", `no argument "more"`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want it to say %q", err, want)
		}
	}
}
