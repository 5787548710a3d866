package mongostate_test

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/publisher/internal/checkpoint"
	"changerelay/services/publisher/internal/mongostate"
	"changerelay/services/publisher/internal/testserver"
)

// TestRecounted_IsNeitherWhatIsComingNorWhatAPurgeTakes has three changes be there, of
// which one may be named as coming, and a purge may be under way.
func TestRecounted_IsNeitherWhatIsComingNorWhatAPurgeTakes(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		coming, purging bool
		want            int64
	}{
		"all":                   {want: 3},
		"one of them is coming": {coming: true, want: 2},
		"a purge is under way":  {purging: true},
	} {
		database := testserver.Name(t)
		state := mongostate.New(testserver.Mongo(t), database)
		if _, err := checkpoint.Claim(t.Context(), state.Checkpoints(), "orders", checkpoint.Claimant{Owner: "a", Create: true}); err != nil {
			t.Fatal(err)
		}
		fillParked(t, state.Parked("orders"), 3)
		if tt.purging {
			now := bson.D{{Key: "$currentDate", Value: bson.D{{Key: "purgedAt", Value: true}}}}
			if _, err := kept(t, database).UpdateOne(t.Context(), bson.D{}, now); err != nil {
				t.Fatal(err)
			}
		}
		var coming []checkpoint.Expected
		if tt.coming {
			coming = append(coming, checkpoint.Expected{ID: listed(t, state.Parked("orders"))[0]})
		}
		got, _, err := state.Parked("orders").Recounted(t.Context(), "orders", coming)
		if err != nil || got.Count != tt.want {
			t.Errorf("%s: recounted is %+v, %v, want %d", name, got, err, tt.want)
		}
	}
}
