package command

import (
	"fmt"
	"strings"
	"testing"
)

// Reasons that differ in what they say of one aggregate or event are of one kind; the
// projection and the type of the event tell kinds apart.
func TestRedriveSummary_CountsReasonsByKind(t *testing.T) {
	t.Parallel()
	var reasons tally
	for i := range 3 {
		reasons.add(fmt.Sprintf("version gap: version %d follows %d", i+7, i))
	}
	for _, name := range []string{"orders", "totals", "orders", "orders", "orders"} {
		reasons.add(fmt.Sprintf(`aggregate "%c" has event "%d-x" at sequence %020d, and projection %q is at 2026-11-24T09:37:13Z.`, 'a'+len(reasons), len(reasons), len(reasons), name))
	}
	want := []string{
		`4 aggregate … has event … at sequence …, and projection "orders" is at ….`,
		"3 version gap: version … follows …",
		`1 aggregate … has event … at sequence …, and projection "totals" is at ….`,
	}
	for i, kind := range reasons {
		if got := fmt.Sprint(kind.Count, " ", kind.Kind); i >= len(want) || got != want[i] {
			t.Errorf("kind %d: got %q, want %q", i, got, want[min(i, len(want)-1)])
		}
	}
	if len(reasons) != len(want) || reasons[1].Example != "version gap: version 7 follows 0" {
		t.Errorf("got %+v, want %d kinds, each with its first text", reasons, len(want))
	}
}

// A command that a reason names is one for each aggregate, and of one kind.
func TestRedriveSummary_TakesCommandsForAggregatesTogether(t *testing.T) {
	t.Parallel()
	var reasons tally
	for _, aggregate := range []string{"a", "order-7", "'a b;c'", `'it'\''s'`} {
		reasons.add("have it sent again with publisher resend --aggregate " + aggregate + " --group '/the orders' --why TEXT")
	}
	if len(reasons) != 1 || reasons[0].Count != 4 || reasons[0].Kind != "have it sent again with publisher resend … --group '/the orders' --why TEXT" {
		t.Errorf("got %+v, want one kind", reasons)
	}
}

// A summary has so many kinds of reasons and no more.
func TestRedriveSummary_BoundsTheKinds(t *testing.T) {
	t.Parallel()
	var reasons tally
	for i := range 3 * mostReasons {
		reasons.add("because of " + strings.Repeat("x", i))
	}
	if len(reasons) != mostReasons+1 || reasons[0].Kind != otherReasons || reasons[0].Count != 2*mostReasons || reasons[0].Example == "" {
		t.Errorf("got %d kinds, %+v first, want %d and all others counted together", len(reasons), reasons[0], mostReasons)
	}
}
