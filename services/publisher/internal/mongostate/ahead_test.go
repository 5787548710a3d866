package mongostate_test

import (
	"testing"
	"time"

	"changerelay/services/publisher/internal/checkpoint"
	"changerelay/services/publisher/internal/mongostate"
	"changerelay/services/publisher/internal/testserver"
)

// TestFoundAhead_IsOfOnePlaceUntilATermIsConfirmed has a halt be entered in term 7.
func TestFoundAhead_IsOfOnePlaceUntilATermIsConfirmed(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		enteredAt time.Time
		confirmed int64
		place     checkpoint.Place
		want      bool
	}{
		"as it was found":                       {time.Unix(90, 0), 6, *at(100), true},
		"after a decision":                      {time.Unix(90, 0), 8, *at(100), false},
		"of another place":                      {time.Unix(90, 0), 6, *at(99), false},
		"by one whose source's clock is behind": {time.Unix(110, 0), 6, *at(100), false},
	} {
		state := mongostate.New(testserver.Mongo(t), testserver.Name(t))
		err := state.Gaps("orders").Enter(t.Context(), mongostate.Gap{
			FromTime: time.Unix(100, 0), Cause: "place in the future", Decision: "stop", At: tt.enteredAt, Term: 7,
		})
		if err != nil {
			t.Fatal(err)
		}
		got, err := state.FoundAhead(t.Context(), checkpoint.Record{Stream: "orders", Confirmed: tt.confirmed}, tt.place)
		if err != nil || got != tt.want {
			t.Errorf("%s: found ahead is %v, %v, want %v", name, got, err, tt.want)
		}
	}
}
