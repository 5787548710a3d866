package witness

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/e2e/internal/check/readmodel"
	"changerelay/services/e2e/internal/check/validate"
)

// decisionsLedger is the collection in which projectors write down what operators
// have left out of the read model.
const decisionsLedger = "projector_ledger"

// LineOfNobody is the violation of a ledger that names what nobody has left out.
const LineOfNobody = "named by a line of a ledger, but left out by nobody"

// acceptingLost is what the commands say that go on without what is gone.
const acceptingLost = "--accept-lost"

// leavesOut says whether the lines of a command name events that are left out. What
// others name, as halts or versions, must have come all the same.
func leavesOut(command string) bool {
	return slices.Contains([]string{"parked discard", "dlq discard"}, command) || strings.Contains(command, acceptingLost)
}

// decided is what the ledgers say that operators have left out.
type decided struct {
	events     map[validate.Event]bool
	aggregates map[string]bool // of which messages are gone, nobody knows which
	unsent     []string        // texts that name changes that were never sent
}

// decided reads what a line of the projectors' ledger names, and what the
// publishers' ledger says of changes that were discarded and purged, or are gone.
// What is not among the names of its line is not named.
func (w *Witness) decided(ctx context.Context, gaps []Gap) (decided, error) {
	var lines []struct {
		Command string `bson:"command"`
		About   []struct {
			Aggregate string `bson:"aggregate"`
			Version   *int64 `bson:"version"`
			Event     string `bson:"event"`
		} `bson:"about"`
	}
	d := decided{events: make(map[validate.Event]bool), aggregates: make(map[string]bool)}
	cursor, err := w.ReadModel().Collection(decisionsLedger).Find(ctx, bson.D{})
	if err == nil {
		err = cursor.All(ctx, &lines)
	}
	if err != nil {
		return d, fmt.Errorf("read the ledger of decisions: %w", err)
	}
	for _, line := range lines {
		for _, n := range line.About {
			version := w.VersionOf(n.Event)
			switch {
			case !leavesOut(line.Command):
			case n.Version != nil:
				d.events[validate.Event{Aggregate: n.Aggregate, Version: *n.Version}] = true
			case strings.Contains(line.Command, acceptingLost):
				d.aggregates[n.Aggregate] = true
			case version > 0:
				d.events[validate.Event{Aggregate: n.Aggregate, Version: version}] = true
			}
		}
	}
	for _, g := range gaps {
		if g.Decision == discarded || g.Decision == lost {
			d.unsent = append(d.unsent, g.Error)
		}
	}
	return d, nil
}

// names says whether a line names an event that was left out: of the projectors where
// it came to the topic, of the publishers by the id of the parked change where not.
func (d decided) names(e validate.Event, change string, came bool) bool {
	if came {
		return d.events[e] || d.aggregates[e.Aggregate]
	}
	return change != "" && slices.ContainsFunc(d.unsent, func(text string) bool { return strings.Contains(text, change) })
}

// ofNobody finds what the projectors' ledger names, and nobody says to have left out.
func (d decided) ofNobody(leftOut map[validate.Event]string) validate.Findings {
	var found validate.Findings
	for e := range d.events {
		if _, known := leftOut[e]; !known {
			found.Add("event %d of %s", e.Version, e.Aggregate)
		}
	}
	return found
}

// applied are the events of the aggregates of some that the shadow has among their
// latest; none where there is no shadow.
func (w *Witness) applied(ctx context.Context, events map[validate.Event]string) (map[validate.Event]bool, error) {
	there, of := make(map[validate.Event]bool), make(map[string]bool)
	for e := range events {
		of[e.Aggregate] = true
	}
	if w.projection.Shadow == "" || len(events) == 0 {
		return there, nil
	}
	return there, readmodel.Each(ctx, w.Client, w.names.ReadModelDatabase, w.projection.Shadow, func(raw bson.Raw) error {
		id, _ := raw.Lookup("_id").StringValueOK()
		if !of[id] {
			return nil
		}
		for _, mark := range marksOf(raw.Lookup("tail")) {
			there[w.marked(id, mark)] = true
		}
		return nil
	})
}
