package witness

import (
	"context"
	"fmt"
	"regexp"
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

// decided is what the projectors' ledger says that operators of a group have left out.
type decided struct {
	// events are those that it names.
	events map[validate.Event]bool
	// aggregates are those of which messages are gone, nobody knows which. The event at which
	// one was halted, or one that was taken away, is named without a version.
	aggregates  map[string]bool
	unversioned map[validate.Event]bool
}

// ownGroup is the name of the first group.
const ownGroup = ""

// decided reads what the lines of the projectors' ledger name, by the groups. What is not
// among the names of its line is not named.
func (w *Witness) decided(ctx context.Context) (map[string]decided, error) {
	var lines []struct {
		Group   string `bson:"group"`
		Command string `bson:"command"`
		About   []struct {
			Aggregate string `bson:"aggregate"`
			Version   *int64 `bson:"version"`
			Event     string `bson:"event"`
		} `bson:"about"`
	}
	cursor, err := w.ReadModel().Collection(decisionsLedger).Find(ctx, bson.D{})
	if err == nil {
		err = cursor.All(ctx, &lines)
	}
	if err != nil {
		return nil, fmt.Errorf("read the ledger of decisions: %w", err)
	}
	groups := make(map[string]decided)
	for _, line := range lines {
		if !leavesOut(line.Command) {
			continue
		}
		d, there := groups[line.Group]
		if !there {
			d = decided{events: make(map[validate.Event]bool), aggregates: make(map[string]bool), unversioned: make(map[validate.Event]bool)}
			groups[line.Group] = d
		}
		accepts := strings.Contains(line.Command, acceptingLost)
		for _, n := range line.About {
			this := validate.Event{Aggregate: n.Aggregate, Version: w.VersionOf(n.Event)}
			switch {
			case n.Version != nil:
				d.events[validate.Event{Aggregate: n.Aggregate, Version: *n.Version}] = true
			case accepts:
				d.aggregates[n.Aggregate], d.unversioned[this] = true, true
			case this.Version > 0:
				d.events[this] = true
			}
		}
	}
	return groups, nil
}

// names says whether a line names an event of which an operator says how it was left out.
func (d decided) names(e validate.Event, how Leaving) bool {
	return d.events[e] || d.unversioned[e] || how.Deleted && d.aggregates[e.Aggregate]
}

// ofNobody finds what the lines name, and nobody says to have left out.
func (d decided) ofNobody(known LeftOut) validate.Findings {
	var found validate.Findings
	for e := range d.events {
		if _, there := known[e]; !there {
			found.Add("event %d of %s", e.Version, e.Aggregate)
		}
	}
	some := known.aggregates()
	for aggregate := range d.aggregates {
		if !some[aggregate] {
			found.Add("messages of %s that are gone", aggregate)
		}
	}
	return found
}

// goneIDs are the ids of parked changes that were never sent, as the publishers' ledger has
// them: purged, or gone from the state database.
type goneIDs map[string]bool

// listed match where lines of the ledger list such ids.
var (
	listedDiscarded = regexp.MustCompile(`never sent: (.*)`)
	listedLost      = regexp.MustCompile(`gone from parked_changes \(([^)]*)\)`)
)

// goneIn are those that lines of the ledger name.
func goneIn(gaps []Gap) goneIDs {
	ids := make(goneIDs)
	add := func(list []string, separator string) {
		if list == nil {
			return
		}
		for one := range strings.SplitSeq(list[1], separator) {
			id, _, _ := strings.Cut(one, " ") // what follows is for people
			ids[id] = true
		}
	}
	for _, g := range gaps {
		switch g.Decision {
		case discarded:
			add(listedDiscarded.FindStringSubmatch(g.Error), "; ")
		case lost:
			add(listedLost.FindStringSubmatch(g.Error), ", ")
		}
	}
	return ids
}

// name says whether a line names what an operator has left out as a change.
func (ids goneIDs) name(how Leaving) bool {
	return slices.ContainsFunc(how.Changes, func(id string) bool { return ids[id] })
}

// ofNobody finds changes that the lines name, and nobody says to have left out.
func (ids goneIDs) ofNobody(known LeftOut) validate.Findings {
	var found validate.Findings
	some := known.changes()
	for id := range ids {
		if !some[id] {
			found.Add("parked change %s", id)
		}
	}
	return found
}

// applied are the events of the aggregates of some that the shadow has among their
// latest; none where there is no shadow.
func (w *Witness) applied(ctx context.Context, events LeftOut) (map[validate.Event]bool, error) {
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
