package chaos

import (
	"math/rand/v2"
	"testing"
	"time"

	"changerelay/services/e2e/internal/check/validate"
	"changerelay/services/e2e/internal/check/witness"
	"changerelay/services/e2e/internal/harness/orders"
)

// Whatever is drawn to be sent again, the campaign knows of each event whether it is.
func TestSelection_SaysOfEachEventWhetherItIsSelected(t *testing.T) {
	t.Parallel()
	now := time.Now()
	c := &campaign{witness: &witness.Witness{Ledger: witness.NewLedger()}, repairs: &repairs{}, began: now.Add(-time.Hour)}
	c.wrote([]orders.Event{
		{Aggregate: "a", Version: 1, Type: orders.Placed, Time: c.began.Add(-time.Second)},
		{Aggregate: "a", Version: 2, Type: orders.Paid, Time: now},
	})
	c.wrote([]orders.Event{{Aggregate: "b", Version: 1, Type: orders.Paid, Time: c.began.Add(-time.Second)}})
	a1, a2, b1 := validate.Event{Aggregate: "a", Version: 1}, validate.Event{Aggregate: "a", Version: 2}, validate.Event{Aggregate: "b", Version: 1}
	want := map[string]map[validate.Event]bool{
		"--all":   {a1: true, a2: true, b1: true},
		"--where": {a1: false, a2: true, b1: true},
		"--since": {a1: false, a2: true, b1: false},
	}
	seen := map[string]int{}
	for seed := range uint64(60) {
		args, selects := c.selection(rand.New(rand.NewPCG(seed, 0)))
		seen[args[0]]++
		for e, selected := range want[args[0]] {
			if selects(e) != selected {
				t.Errorf("%q: selects %v: %t, want %t", args, e, !selected, selected)
			}
		}
		for i := 1; args[0] == "--aggregate" && i < len(args); i += 2 {
			if !selects(validate.Event{Aggregate: args[i], Version: 1}) || selects(validate.Event{Aggregate: "c", Version: 1}) {
				t.Errorf("%q: want events of these aggregates selected, and of no other", args)
			}
		}
	}
	if len(seen) != len(want)+1 || c.witness.Ledger.Aggregates() != 2 {
		t.Errorf("got %v, want each kind of selection drawn, and what was written in the ledger", seen)
	}
}

// A time that is drawn is one of the run, so that it leaves events out.
func TestSelection_ATimeLeavesOutWhatIsBefore(t *testing.T) {
	t.Parallel()
	c := &campaign{witness: &witness.Witness{Ledger: witness.NewLedger()}, repairs: &repairs{}, began: time.Now().Add(-time.Hour)}
	for seed := range uint64(60) {
		args, selects := c.selection(rand.New(rand.NewPCG(seed, 0)))
		if args[0] != "--since" {
			continue
		}
		since, err := time.Parse(time.RFC3339, args[1])
		if err != nil || since.Before(c.began.Truncate(time.Second)) || since.After(time.Now()) {
			t.Errorf("got %q, want a time since %v", args, c.began)
		}
		c.wrote([]orders.Event{{Aggregate: "a", Version: 1, Time: since}, {Aggregate: "a", Version: 2, Time: since.Add(-time.Millisecond)}})
		if !selects(validate.Event{Aggregate: "a", Version: 1}) || selects(validate.Event{Aggregate: "a", Version: 2}) {
			t.Errorf("%q: want what names that time selected, and nothing before", args)
		}
	}
}
