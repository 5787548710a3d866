package checkpoint_test

import (
	"errors"
	"testing"

	"changerelay/pkg/contract"
	"changerelay/services/publisher/internal/checkpoint"
	"changerelay/services/publisher/internal/checkpoint/checkpointtest"
)

func TestCheckpoint_TheFakeStoreConforms(t *testing.T) {
	t.Parallel()
	checkpointtest.Conform(t, func(*testing.T) checkpoint.Store { return &checkpointtest.Store{} })
}

func TestCheckpoint_ASupersededClaimCannotMoveTheCheckpoint(t *testing.T) {
	t.Parallel()
	store := &checkpointtest.Store{}
	older := claim(t, store)
	if err := older.Move(t.Context(), checkpoint.Place{Token: []byte("one"), Position: "p1"}); err != nil {
		t.Fatal(err)
	}
	newer := claim(t, store)
	if string(newer.Token) != "one" || newer.Position != "p1" {
		t.Errorf("the newer claim starts at %q, %q, want where the older saved", newer.Token, newer.Position)
	}
	if err := older.Move(t.Context(), checkpoint.Place{Token: []byte("two"), Position: "p2"}); !errors.Is(err, checkpoint.ErrSuperseded) {
		t.Errorf("Save of the older = %v, want ErrSuperseded", err)
	}
	if got := store.Current("orders"); string(got.Token) != "one" {
		t.Errorf("checkpoint is at %q, want one", got.Token)
	}
}

func TestCheckpoint_ASaveAfterAnUnansweredOneGoesThrough(t *testing.T) {
	t.Parallel()
	answered := true
	store := &checkpointtest.Store{}
	store.Fault = func(string) (error, bool) {
		if answered {
			return nil, false
		}
		return checkpointtest.ErrInjected, true
	}
	claimed := claim(t, store)
	answered = false
	if err := claimed.Move(t.Context(), checkpoint.Place{Token: []byte("one"), Position: "p1"}); !errors.Is(err, checkpointtest.ErrInjected) {
		t.Fatalf("Save = %v, want the injected fault", err)
	}
	answered = true
	if err := claimed.Move(t.Context(), checkpoint.Place{Token: []byte("two"), Position: "p2"}); err != nil {
		t.Errorf("Save after an unanswered one = %v", err)
	}
	if got := store.Current("orders"); string(got.Token) != "two" {
		t.Errorf("checkpoint is at %q, want two", got.Token)
	}
}

func TestCheckpoint_TheStartIsPinnedByWhoeverComesFirst(t *testing.T) {
	t.Parallel()
	store := &checkpointtest.Store{}
	one := claim(t, store)
	if one.Pinned() {
		t.Fatal("a new checkpoint counts as pinned")
	}
	at := checkpoint.ClusterTime{Seconds: 5}
	if err := one.Pin(t.Context(), checkpoint.Place{Start: at}); err != nil || one.Start != at || !one.Pinned() {
		t.Fatalf("Pin = %v, start %v, want %v", err, one.Start, at)
	}
	two := claim(t, store)
	if two.Start != at || !two.Pinned() {
		t.Errorf("the second claim starts at %v, want %v", two.Start, at)
	}
	if err := one.Pin(t.Context(), checkpoint.Place{Start: checkpoint.ClusterTime{Seconds: 9}}); !errors.Is(err, checkpoint.ErrSuperseded) {
		t.Errorf("Pin of a superseded claim = %v, want ErrSuperseded", err)
	}
}

func TestCheckpoint_ATokenIsNotUsedUnderOtherOptions(t *testing.T) {
	t.Parallel()
	store := &checkpointtest.Store{}
	one := claim(t, store)
	if err := one.Adopt("with a filter"); err != nil {
		t.Fatalf("Adopt before any save = %v, want nil", err)
	}
	if err := one.Move(t.Context(), checkpoint.Place{Token: []byte("one"), Position: "p1"}); err != nil {
		t.Fatal(err)
	}
	if err := claim(t, store).Adopt("without"); !errors.Is(err, checkpoint.ErrOptionsChanged) {
		t.Errorf("Adopt of other options = %v, want ErrOptionsChanged", err)
	}
	if err := claim(t, store).Adopt("with a filter"); err != nil {
		t.Errorf("Adopt of the same options = %v, want nil", err)
	}
}

func claim(t *testing.T, store checkpoint.Store) *checkpoint.Claimed {
	t.Helper()
	claimed, err := checkpoint.Claim(t.Context(), store, "orders", checkpoint.Claimant{Owner: "a", Create: true})
	if err != nil {
		t.Fatal(err)
	}
	return claimed
}

func TestPlace_SaysWhatItHasPassed(t *testing.T) {
	t.Parallel()
	first, second := contract.StreamPosition(7, 1, "82A"), contract.StreamPosition(7, 1, "82B")
	copied := contract.SnapshotPosition(7, 1, 3)
	start := checkpoint.ClusterTime{Seconds: 7, Increment: 1}
	for name, tt := range map[string]struct {
		place checkpoint.Place
		at    contract.Position
		want  bool
	}{
		"a change at it":                    {checkpoint.Place{Position: second}, second, true},
		"one before it in its transaction":  {checkpoint.Place{Position: second}, first, true},
		"one behind it in its transaction":  {checkpoint.Place{Position: first}, second, false},
		"one at the time that it starts at": {checkpoint.Place{Start: start}, first, false},
		"one anywhere, with no place":       {checkpoint.Place{}, first, false},
		"one copied, with its copy done":    {checkpoint.Place{Start: start}, copied, true},
		"one copied, with its copy at it":   {checkpoint.Place{Position: copied, Start: start, Copy: &checkpoint.Copy{}}, copied, true},
		"one copied, with its copy before":  {checkpoint.Place{Start: start, Copy: &checkpoint.Copy{}}, copied, false},
		"one copied, with no place":         {checkpoint.Place{}, copied, false},
	} {
		if got := tt.place.Passed(tt.at); got != tt.want {
			t.Errorf("%s: passed is %v, want %v", name, got, tt.want)
		}
	}
}
