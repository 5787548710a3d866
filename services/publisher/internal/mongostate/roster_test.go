package mongostate_test

import (
	"slices"
	"testing"
	"time"

	"changerelay/services/publisher/internal/lease"
	"changerelay/services/publisher/internal/mongostate"
	"changerelay/services/publisher/internal/testserver"
)

func TestTheRosterShowsWhoIsThereAndWhoHoldsWhat(t *testing.T) {
	t.Parallel()
	state := mongostate.New(testserver.Mongo(t), testserver.Name(t))
	names := mongostate.PartitionNames("orders", 3)
	roster := state.Roster("orders", names)
	for member, during := range map[string]time.Duration{"a": time.Hour, "b": time.Hour, "gone": -time.Second} {
		if err := roster.Announce(t.Context(), member, []int{2}, during); err != nil {
			t.Fatal(err)
		}
	}
	if err := state.Roster("customers", nil).Announce(t.Context(), "c", nil, time.Hour); err != nil {
		t.Fatal(err)
	}
	if err := roster.Withdraw(t.Context(), "b"); err != nil {
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
	picture, err := roster.Picture(t.Context())
	if err != nil || !slices.Equal(picture.Members, []string{"a"}) || !slices.Equal(picture.Aside["a"], []int{2}) || !slices.Equal(picture.Holders, []string{"", "a", ""}) {
		t.Errorf("picture is %+v, %v, want a alone, holding the second, aside from the third", picture, err)
	}
}

func TestOnePartitionIsNamedAsTheWhole(t *testing.T) {
	t.Parallel()
	if names := mongostate.PartitionNames("orders", 1); !slices.Equal(names, []string{"orders"}) {
		t.Errorf("names are %q", names)
	}
}
