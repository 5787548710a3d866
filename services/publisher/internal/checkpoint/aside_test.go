package checkpoint_test

import (
	"slices"
	"testing"

	"changerelay/services/publisher/internal/checkpoint"
	"changerelay/services/publisher/internal/checkpoint/checkpointtest"
)

// TestAside_IsSaidByTheNextMarkWhereOneFails has every second mark fail.
func TestAside_IsSaidByTheNextMarkWhereOneFails(t *testing.T) {
	t.Parallel()
	failing, b := false, checkpoint.Expected{ID: "b", At: "p3"}
	store := &checkpointtest.Store{Fault: func(op string) (error, bool) {
		if op == "save" && failing {
			return checkpointtest.ErrInjected, false
		}
		return nil, false
	}}
	claimed := claim(t, store)
	if err := claimed.Count(t.Context(), checkpoint.Aside{}, checkpoint.Naming{All: &checkpoint.Names{}}); err != nil {
		t.Fatal(err)
	}
	fails := func(what string, mark func() error) {
		t.Helper()
		failing = true
		if mark() == nil {
			t.Errorf("%s: want the injected fault", what)
		}
		failing = false
		if err := mark(); err != nil {
			t.Errorf("%s again = %v", what, err)
		}
	}
	says := func(what string, want checkpoint.Aside) {
		t.Helper()
		got := store.Current("orders").Aside
		if got == nil || got.Count != want.Count || got.From != want.From || !slices.Equal(got.Coming, want.Coming) {
			t.Errorf("after %s: %+v, want %+v", what, got, want)
		}
	}
	fails("expect", func() error { return claimed.Expect(t.Context(), checkpoint.Expected{ID: "a"}, b) })
	says("expect", checkpoint.Aside{Coming: []checkpoint.Expected{{ID: "a"}, b}})
	fails("keep", func() error { return claimed.Keep(t.Context(), "a", "p2") })
	if names := store.Current("orders").Names; names == nil || !slices.Equal(names.IDs, []string{"a"}) {
		t.Errorf("after keep the names are %+v, want the one that was counted", names)
	}
	says("keep", checkpoint.Aside{Count: 1, From: "p2", Coming: []checkpoint.Expected{b}})
	if err := claimed.Keep(t.Context(), "b", "p3"); err != nil {
		t.Fatal(err)
	}
	says("a later one", checkpoint.Aside{Count: 2, From: "p2"})
	fails("miss", func() error { return claimed.Miss(t.Context(), 1, []string{"a"}) })
	says("miss", checkpoint.Aside{Count: 1, From: "p2"})
	if err := claimed.Expect(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	fails("leave", func() error { return claimed.Leave(t.Context(), "b") })
	says("leave", checkpoint.Aside{Count: 1, From: "p2"})
	failing = true
	if claimed.Expect(t.Context(), checkpoint.Expected{ID: "c"}) == nil || claimed.Expects("c") {
		t.Error("a change is expected that the checkpoint does not name")
	}
}
