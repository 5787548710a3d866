package witness

import (
	"fmt"
	"hash/fnv"
	"maps"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/e2e/internal/check/expect"
	"changerelay/services/e2e/internal/check/readmodel"
	"changerelay/services/e2e/internal/check/validate"
	"changerelay/services/e2e/internal/harness/cluster"
	"changerelay/services/e2e/internal/harness/orders"
	"changerelay/services/e2e/internal/harness/plain"
	"changerelay/services/e2e/internal/harness/source"
)

// record is what the source held, and the read model computed from it.
type record struct {
	projection Projection
	events     validate.Source                 // that must be in the read model
	owing      validate.Source                 // that must be on the topic
	owed       map[validate.Event]expect.Print // the message of each event
	last       map[string]last                 // the last event of each aggregate
	forgiven   int                             // events that need not be in the read model, and are not in events
	orders     orders.Model
	latest     orders.Latest
	keyed      keyed
	stepped    stepped
	// marks are the numbers that stand for the events in the shadow, changes the read
	// model of a source in documents mode.
	marks   validate.Source
	changes orders.Changes
	// skipped are the events that the projection goes on without, by their message ids.
	skipped map[string]skipped
	// stays is where the projection's document of an aggregate stays whose last events are
	// dead letters.
	stays map[string]validate.Position
}

func newRecord(p Projection) *record {
	return &record{projection: p, events: validate.Source{}, owing: validate.Source{}, owed: map[validate.Event]expect.Print{}, last: map[string]last{}, orders: orders.Model{}, latest: orders.Latest{}, keyed: newKeyed(), stepped: newStepped(), marks: validate.Source{}, changes: orders.Changes{}, skipped: map[string]skipped{}, stays: map[string]validate.Position{}}
}

// forOthers is a record that goes on from this one by itself, of what another group has
// made of the events.
func (r *record) forOthers() *record {
	others := newRecord(r.projection)
	for aggregate, versions := range r.events {
		others.events[aggregate], others.marks[aggregate] = slices.Clip(versions), slices.Clip(r.marks[aggregate])
	}
	maps.Copy(others.last, r.last)
	return others
}

// last is an aggregate's last event.
type last struct {
	validate.Position
	data string // a hash of its data, of which the order of fields says nothing
}

// owe takes in that an event must be on the topic, and returns it as messages show it,
// with its message.
func (r *record) owe(names cluster.Names, e source.Stored) (source.Stored, expect.Message, error) {
	e, err := r.projection.shown(e)
	if err != nil {
		return e, expect.Message{}, fmt.Errorf("event %s: %w", e.ID(), err)
	}
	message, err := expect.Of(names.SourceDatabase, names.CollectionOf(e.Aggregate), e.Document)
	if err != nil {
		return e, message, fmt.Errorf("event %s: %w", e.ID(), err)
	}
	r.owed[validate.Event{Aggregate: e.Aggregate, Version: e.Version}] = message.Print()
	r.owing[e.Aggregate] = append(r.owing[e.Aggregate], e.Version)
	return e, message, nil
}

// shown is an event without what messages do not show of it.
func (p Projection) shown(e source.Stored) (source.Stored, error) {
	if p.Hidden.Dropped == nil && p.Hidden.Masked == nil {
		return e, nil
	}
	document, err := p.Hidden.Of(e.Document)
	if err != nil {
		return e, err
	}
	fields, err := plain.Document(document)
	if err != nil {
		return e, err
	}
	e.Document, e.Data = document, fields["data"]
	return e, nil
}

// add takes one event in. Those of one aggregate must come in the order of
// their versions.
func (r *record) add(names cluster.Names, e source.Stored) error {
	e, message, err := r.owe(names, e)
	if err != nil {
		return err
	}
	data, err := hashOf(e.Document.Lookup("data"))
	if err != nil {
		return fmt.Errorf("event %s: %w", e.ID(), err)
	}
	at, _ := e.Document.Lookup("time").DateTimeOK()
	r.stay(e)
	r.events[e.Aggregate] = append(r.events[e.Aggregate], e.Version)
	r.marks[e.Aggregate] = append(r.marks[e.Aggregate], e.Version)
	r.last[e.Aggregate] = last{data: data, Position: validate.Position{
		ID: message[expect.MessageID], Type: e.Type, Sequence: fmt.Sprintf("%019d", e.Version), Time: at, Version: e.Version,
	}}
	if r.projection.Keyed != "" {
		r.keyed.add(e, &message)
	}
	if r.projection.InGo {
		r.stepped.add(e, r.last[e.Aggregate].Position)
	}
	switch {
	case r.projection.OnError != "" && unaddable(e.Event):
		r.skipped[message[expect.MessageID]] = skipped{aggregate: e.Aggregate, version: e.Version, message: message.Print()}
	case r.projection.Counts:
		r.orders.Apply(e.Event)
	default:
		r.latest.Apply(e.Event)
	}
	return nil
}

// stay notes where the document stays that an event is not applied to. It is called before
// the event is taken in.
func (r *record) stay(e source.Stored) {
	if r.projection.OnError != "deadletter" || !unaddable(e.Event) {
		delete(r.stays, e.Aggregate)
	} else if _, already := r.stays[e.Aggregate]; !already {
		r.stays[e.Aggregate] = r.last[e.Aggregate].Position
	}
}

// hashOf is a short text for a document, whatever the order of its fields.
func hashOf(v bson.RawValue) (string, error) {
	document, _ := v.DocumentOK()
	if len(document) == 0 {
		return "nothing", nil
	}
	text, err := expect.Text(document, expect.AnyOrder)
	if err != nil {
		return "", err
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(text))
	return fmt.Sprintf("%016x", h.Sum64()), nil
}

// documents are the read documents as they should be.
func (r *record) documents() map[string]map[string]any {
	if r.projection.ownRules() {
		return map[string]map[string]any{}
	}
	want := r.changes.Clone()
	for id, doc := range r.orders {
		orders.SortSets(doc)
		want[id] = doc
	}
	for id, data := range r.latest {
		want[id] = map[string]any{"data": data}
	}
	return want
}

// counts returns how many events of each aggregate are in the read model, by what
// counts them: the shadow's documents, which nothing erases, or those of a read
// model from which nothing is erased. The data of the latest event says nothing
// of those before it; there an aggregate counts whole when its document is right.
func (r *record) counts(m readmodel.Model, shadow map[string]validate.Tally) map[string]int64 {
	counts := make(map[string]int64, len(r.events))
	for aggregate, versions := range r.events {
		switch {
		case r.projection.Shadow != "":
			counts[aggregate] = shadow[aggregate].Events
		case r.projection.Counts:
			counts[aggregate], _ = m.Documents[aggregate]["events"].(int64)
		default:
			counts[aggregate] = upTo(versions, m.Positions[aggregate].Version, m.Positions[aggregate].ID != "")
		}
	}
	return counts
}

// upTo counts the versions that are not above one that was reached.
func upTo(versions []int64, highest int64, reached bool) int64 {
	n := int64(0)
	for _, v := range versions {
		if reached && v <= highest {
			n++
		}
	}
	return n
}

// places are the events that the projection's documents should have come to.
func (r *record) places() map[string]validate.Position {
	places := r.positions()
	maps.Copy(places, r.stays)
	return places
}

// positions are the events that documents should have come to in which each is applied.
func (r *record) positions() map[string]validate.Position {
	positions := make(map[string]validate.Position, len(r.last))
	for aggregate := range r.last {
		positions[aggregate] = r.last[aggregate].Position
	}
	return positions
}

// notes are what is noted of how far each aggregate has come in documents of another key that
// have versions: these note every event, also one that they do not follow.
func (r *record) notes() map[string]map[string]any {
	notes := make(map[string]map[string]any, len(r.last))
	for aggregate, e := range r.last {
		notes[aggregate] = map[string]any{"eventId": e.ID, "sequence": e.Sequence}
	}
	return notes
}
