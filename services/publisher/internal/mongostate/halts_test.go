package mongostate_test

import (
	"testing"
	"time"

	"changerelay/services/publisher/internal/checkpoint"
	"changerelay/services/publisher/internal/lease"
	"changerelay/services/publisher/internal/mongostate"
	"changerelay/services/publisher/internal/testserver"
)

// TestLease_AHaltIsThatOfTheLatestTermOfItsHolder has what a holder says of its terms
// come out of order.
func TestLease_AHaltIsThatOfTheLatestTermOfItsHolder(t *testing.T) {
	t.Parallel()
	state := mongostate.New(testserver.Mongo(t), testserver.Name(t))
	record, holder := state.Lease("lease"), lease.Holder{ID: "a", Incarnation: "1", Tenure: 1}
	if _, err := record.Take(t.Context(), lease.Claim{Holder: holder, TTL: time.Hour, Subject: "orders"}); err != nil {
		t.Fatal(err)
	}
	says := func(what, want string, err error) {
		t.Helper()
		scope, scopeErr := state.Scope(t.Context(), "orders", "lease")
		if err != nil || scopeErr != nil || len(scope.Holders) != 1 || scope.Holders[0].Halt != want {
			t.Errorf("after %s the holder is %+v, %v, %v, want its halt %q", what, scope.Holders, err, scopeErr, want)
		}
	}
	says("a claim", "", record.Confirm(t.Context(), holder, 5))
	says("an earlier claim that is said late", "", record.Confirm(t.Context(), holder, 3))
	says("a halt of the time between", "", record.Halt(t.Context(), holder, 4, "late"))
	says("a halt", "why", record.Halt(t.Context(), holder, 5, "why"))
	says("the next claim", "", record.Confirm(t.Context(), holder, 6))
}

// TestMove_AfterAResetIsInTheEntryOfThat sets a place before the stream has begun anew.
func TestMove_AfterAResetIsInTheEntryOfThat(t *testing.T) {
	t.Parallel()
	client, name := testserver.Mongo(t), testserver.Name(t)
	state := mongostate.New(client, name)
	begun(t, state, 100)
	_, err := state.MoveCheckpoint(t.Context(), mongostate.Move{
		Stream: "orders", Action: mongostate.Reset, Who: "ann", Why: "test", At: time.Now(), To: &checkpoint.Place{Anew: true},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := moveTo(t, client, name, 200); err != nil {
		t.Fatal(err)
	}
	if got := entries(t, state); len(got) != 1 || got[200].Decision != mongostate.Reset || got[200].FromTime.Unix() != 100 {
		t.Errorf("the ledger says %+v, want one entry, of the reset, from 100 to 200", got)
	}
}
