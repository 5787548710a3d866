package witness

import (
	"context"
	"fmt"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/e2e/internal/validate"
)

// decisionsLedger is the collection in which projectors write down what operators
// have left out of the read model.
const decisionsLedger = "projector_ledger"

// leavingOut are the commands whose lines name events that are left out. What
// others name, as halts or versions, must have come all the same.
var leavingOut = []string{"parked discard", "dlq discard"}

// leftOut are the events that a line of the projectors' ledger names. One that is
// not among the names of its line, or has no version there, is not forgiven.
func (w *Witness) leftOut(ctx context.Context) (map[validate.Event]bool, error) {
	var lines []struct {
		Command string `bson:"command"`
		About   []struct {
			Aggregate string `bson:"aggregate"`
			Version   *int64 `bson:"version"`
		} `bson:"about"`
	}
	cursor, err := w.ReadModel().Collection(decisionsLedger).Find(ctx, bson.D{})
	if err == nil {
		err = cursor.All(ctx, &lines)
	}
	if err != nil {
		return nil, fmt.Errorf("read the ledger of decisions: %w", err)
	}
	named := make(map[validate.Event]bool)
	for _, line := range lines {
		for _, n := range line.About {
			if n.Version != nil && slices.Contains(leavingOut, line.Command) {
				named[validate.Event{Aggregate: n.Aggregate, Version: *n.Version}] = true
			}
		}
	}
	return named, nil
}
