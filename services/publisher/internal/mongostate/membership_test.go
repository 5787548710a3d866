package mongostate_test

import (
	"slices"
	"testing"
	"time"

	"changerelay/services/publisher/internal/lease"
	"changerelay/services/publisher/internal/mongostate"
	"changerelay/services/publisher/internal/testserver"
)

func TestMembership_ShowsWhoIsThereAndWhoHoldsWhat(t *testing.T) {
	t.Parallel()
	state := mongostate.New(testserver.Mongo(t), testserver.Name(t))
	names := mongostate.PartitionNames("orders", 3)
	membership := state.Membership("orders", names)
	for member, during := range map[string]time.Duration{"a": time.Hour, "b": time.Hour, "gone": -time.Second} {
		if err := membership.Announce(t.Context(), member, []int{2}, during); err != nil {
			t.Fatal(err)
		}
	}
	if err := state.Membership("customers", nil).Announce(t.Context(), "c", nil, time.Hour); err != nil {
		t.Fatal(err)
	}
	if err := membership.Withdraw(t.Context(), "b"); err != nil {
		t.Fatal(err)
	}
	claim := lease.Claim{Holder: lease.Holder{ID: "a", Incarnation: "1", Tenure: 1}, TTL: time.Hour}
	if _, err := state.Lease(names[1]).Take(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	claim.TTL = time.Nanosecond
	if _, err := state.Lease(names[2]).Take(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	snapshot, err := membership.Snapshot(t.Context())
	if err != nil || !slices.Equal(snapshot.Members, []string{"a"}) || !slices.Equal(snapshot.Aside["a"], []int{2}) || !slices.Equal(snapshot.Holders, []string{"", "a", ""}) {
		t.Errorf("snapshot is %+v, %v, want a alone, holding the second, aside from the third", snapshot, err)
	}
}

func TestMembership_OnePartitionIsNamedAsTheWhole(t *testing.T) {
	t.Parallel()
	if names := mongostate.PartitionNames("orders", 1); !slices.Equal(names, []string{"orders"}) {
		t.Errorf("names are %q", names)
	}
}
