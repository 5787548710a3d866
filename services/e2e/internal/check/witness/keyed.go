package witness

import (
	"context"
	"fmt"
	"maps"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/e2e/internal/check/expect"
	"changerelay/services/e2e/internal/check/readmodel"
	"changerelay/services/e2e/internal/check/validate"
	"changerelay/services/e2e/internal/harness/orders"
	"changerelay/services/e2e/internal/harness/source"
)

// keyed is what keyed.yaml makes of events, and documents_keyed.yaml of changes, computed
// anew.
type keyed struct {
	customers orders.Customers
	kinds     orders.Kinds
	positions map[string]map[string]any // of each order, by the event that placed it last
}

func newKeyed() keyed {
	return keyed{customers: orders.Customers{}, kinds: orders.Kinds{}, positions: map[string]map[string]any{}}
}

// add takes in an event and its message.
func (k keyed) add(e source.Stored, message *expect.Message) {
	k.customers.Apply(e.Event)
	if e.Type == orders.Placed {
		k.positions[e.Aggregate] = map[string]any{"eventId": message[expect.MessageID], "sequence": fmt.Sprintf("%019d", e.Version)}
	}
}

// addLate takes in an event that came to the topic after a later one of its order, and so
// not to the other documents: to these all the same where none was later that they follow.
func (k keyed) addLate(e source.Stored, message *expect.Message, overtaken func(source.Stored) bool) {
	if e.Type == orders.Placed && !overtaken(e) {
		k.add(e, message)
	}
}

// addChange takes in a change, whatever its message shows of the document.
func (k keyed) addChange(c *changed) {
	k.kinds.Apply(c.Aggregate, c.Operation)
	k.positions[c.Aggregate] = map[string]any{"eventId": c.Message[expect.MessageID], "sequence": c.Sequence}
}

// documents are those of another key as they should be.
func (k keyed) documents() map[string]map[string]any {
	want := make(map[string]map[string]any, len(k.customers)+len(k.kinds))
	maps.Copy(want, k.customers)
	maps.Copy(want, k.kinds)
	return want
}

// keyedOrder says of an event that documents of another key follow whether a later such one
// of its order came to the topic before.
func (w *Witness) keyedOrder(ctx context.Context) (overtaken func(source.Stored) bool, err error) {
	placed := make(map[validate.Event]bool)
	err = w.eachEvent(ctx, func(e source.Stored) error {
		if e.Type == orders.Placed {
			placed[validate.Event{Aggregate: e.Aggregate, Version: e.Version}] = true
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	sent := sendsOf(func(yield func(validate.Event) bool) {
		for e := range validate.EventsOf(w.sends()) {
			if placed[e] && !yield(e) {
				return
			}
		}
	})
	return func(e source.Stored) bool {
		return sent[validate.Event{Aggregate: e.Aggregate, Version: e.Version}] != due
	}, nil
}

// positionsKept is the collection in which projectors note how far each aggregate has
// come in documents of another key.
const positionsKept = "applied_positions"

// judgeKeyed judges the documents that many orders change, and what is noted of how far
// each order has come in them.
func (w *Witness) judgeKeyed(ctx context.Context, truth *record) ([]Violation, error) {
	name := w.projection.Keyed
	if name == "" {
		return nil, nil
	}
	model, err := readmodel.Read(ctx, w.Client, w.names.ReadModelDatabase, name)
	if err != nil {
		return nil, err
	}
	want := truth.keyed.documents()
	for _, all := range []map[string]map[string]any{want, model.Documents} {
		for _, doc := range all {
			orders.SortSets(doc)
		}
	}
	noted, err := w.notedOf(ctx, name)
	return []Violation{
		{WrongKeyed, validate.Differences(want, model.Documents).And(validate.Halted(model.Positions))},
		{MisplacedKeyed, validate.Differences(truth.keyed.positions, noted)},
	}, err
}

// notedOf is how far each order has come in the documents of a projection, as the projectors
// note it.
func (w *Witness) notedOf(ctx context.Context, projection string) (map[string]map[string]any, error) {
	noted := make(map[string]map[string]any)
	return noted, readmodel.Each(ctx, w.Client, w.names.ReadModelDatabase, positionsKept, func(raw bson.Raw) error {
		if of, _ := raw.Lookup("_id", "projection").StringValueOK(); of != projection {
			return nil
		}
		aggregate, _ := raw.Lookup("_id", "aggregateId").StringValueOK()
		event, _ := raw.Lookup("eventId").StringValueOK()
		sequence, _ := raw.Lookup("sequence").StringValueOK()
		noted[aggregate] = map[string]any{"eventId": event, "sequence": sequence}
		return nil
	})
}
