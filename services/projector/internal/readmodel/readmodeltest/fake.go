// Package readmodeltest has a read model in memory that behaves as the one in
// MongoDB does, and the suite that both pass.
package readmodeltest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/delivery"
	"changerelay/services/projector/internal/projection"
)

// Fake is a read model in memory. Use it by pointer, from any goroutine.
type Fake struct {
	// Fail, where set, is asked before each write of a document and each other
	// operation; an error makes the operation fail there, with what came before
	// it stored. It is set before the first use.
	Fail func(operation string) error
	// StoredBut, where set, is asked after each write of a document; an error
	// makes the call fail although the write is stored, and its outcome unknown.
	StoredBut func() error

	mu        sync.Mutex
	documents map[string]map[any]*document // guarded by mu; by collection and key
	halts     map[string]delivery.Halt     // guarded by mu
	parked    []delivery.Parked            // guarded by mu
	// positions are those of the ledger. Guarded by mu.
	positions map[[2]string]*contract.Event
	// versions are those that the aggregates have reached. Guarded by mu.
	versions map[string]contract.Version
}

type document struct {
	fields   map[string]any
	sequence contract.Sequence
	eventID  string
	deleted  bool
	// foreign has no position.
	foreign bool
	// shared is not one aggregate's own.
	shared bool
	// mark is the reason of the halt that the document is marked with.
	mark string
}

var (
	_ delivery.Store            = (*Fake)(nil)
	_ delivery.Parking          = (*Fake)(nil)
	_ delivery.HaltedAggregates = (*Fake)(nil)
	_ delivery.Shelf            = (*Fake)(nil)
	_ delivery.Versions         = (*Fake)(nil)
)

// NewFake returns an empty read model.
func NewFake() *Fake {
	return &Fake{documents: map[string]map[any]*document{}, halts: map[string]delivery.Halt{}, positions: map[[2]string]*contract.Event{}, versions: map[string]contract.Version{}}
}

func (f *Fake) fail(operation string) error {
	if f.Fail == nil {
		return nil
	}
	return f.Fail(operation)
}

// Write implements delivery.Store.
func (f *Fake) Write(ctx context.Context, writes []projection.Write) ([]delivery.Outcome, error) {
	outcomes := make([]delivery.Outcome, len(writes))
	// As with MongoDB, the writes to one collection go before those to the next.
	var collections []string
	var keyed []int
	for i := range writes {
		if writes[i].Keyed {
			keyed = append(keyed, i)
			continue
		}
		if !slices.Contains(collections, writes[i].Collection) {
			collections = append(collections, writes[i].Collection)
		}
	}
	for _, collection := range collections {
		for i := range writes {
			if writes[i].Collection != collection || writes[i].Keyed {
				continue
			}
			if err := ctx.Err(); err != nil {
				return outcomes, err
			}
			if err := f.fail("write"); err != nil {
				return outcomes, err
			}
			outcome, problem := f.write(&writes[i])
			if problem != "" {
				return outcomes, &delivery.RejectedError{Index: i, Reason: problem}
			}
			if f.StoredBut != nil {
				if err := f.StoredBut(); err != nil {
					return outcomes, err
				}
			}
			outcomes[i] = outcome
		}
	}
	return outcomes, f.writeKeyed(ctx, writes, outcomes, keyed)
}

func (f *Fake) write(w *projection.Write) (outcome delivery.Outcome, problem string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.documents[w.Collection] == nil {
		f.documents[w.Collection] = map[any]*document{}
	}
	d := f.documents[w.Collection][w.ID]
	switch {
	case d == nil:
		d = &document{fields: map[string]any{}}
	case d.foreign:
		return 0, "the read document is not of the projector"
	case d.sequence == w.Event.Sequence && d.eventID != w.Event.ID:
		return 0, "two events of the aggregate have one sequence"
	case d.sequence >= w.Event.Sequence:
		return delivery.Repeated, ""
	}
	next := &document{fields: maps.Clone(d.fields), sequence: w.Event.Sequence, eventID: w.Event.ID, deleted: w.Delete}
	if w.Delete {
		next.fields = map[string]any{}
	}
	if w.Halted != nil {
		next.mark = w.Halted.Reason
	}
	if problem := apply(next.fields, w.Update); problem != "" {
		return 0, problem
	}
	f.documents[w.Collection][w.ID] = next
	return delivery.Applied, ""
}

// apply runs update operators on a document of top-level fields.
func apply(fields map[string]any, update bson.D) string {
	for _, operator := range update {
		for _, e := range operator.Value.(bson.D) {
			old, exists := fields[e.Key]
			switch operator.Key {
			case "$set":
				fields[e.Key] = e.Value
			case "$unset":
				delete(fields, e.Key)
			case "$inc":
				if exists && !isInteger(old) {
					return fmt.Sprintf("Cannot apply $inc to field %q of type %T", e.Key, old)
				}
				fields[e.Key] = integer(old) + integer(e.Value)
			case "$push":
				list, ok := old.(bson.A)
				if exists && !ok {
					return fmt.Sprintf("The field %q must be an array", e.Key)
				}
				fields[e.Key] = push(slices.Clone(list), e.Value)
			default:
				panic("the fake does not know " + operator.Key)
			}
		}
	}
	return ""
}

func push(list bson.A, operand any) bson.A {
	modifiers, ok := operand.(bson.D)
	if !ok || len(modifiers) != 2 || modifiers[0].Key != "$each" {
		return append(list, operand)
	}
	list = append(list, modifiers[0].Value.(bson.A)...)
	last := -modifiers[1].Value.(int)
	return list[max(0, len(list)-last):]
}

func isInteger(v any) bool {
	switch v.(type) {
	case int, int32, int64:
		return true
	}
	return false
}

func integer(v any) int64 {
	switch v := v.(type) {
	case int:
		return int64(v)
	case int32:
		return int64(v)
	case int64:
		return v
	}
	return 0
}

// Halt implements delivery.Parking.
func (f *Fake) Halt(_ context.Context, h delivery.Halt) error {
	if err := f.fail("halt"); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, halted := f.halts[h.Event.AggregateID]; !halted {
		f.halts[h.Event.AggregateID] = h
		f.mark(h.Event.AggregateID, h.Reason)
	}
	return nil
}

// mark marks the aggregate's own documents; f.mu is held.
func (f *Fake) mark(aggregate, reason string) {
	for _, documents := range f.documents {
		if d := documents[aggregate]; d != nil && !d.foreign && !d.shared {
			d.mark = reason
		}
	}
}

// Park implements delivery.Parking.
func (f *Fake) Park(_ context.Context, messages []delivery.Parked) error {
	for i := range messages {
		if err := f.fail("park"); err != nil {
			return err
		}
		if !f.park(messages[i]) {
			return delivery.ErrLifted
		}
	}
	return nil
}

func (f *Fake) park(p delivery.Parked) (halted bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, halted := f.halts[p.Event.AggregateID]; !halted {
		return false
	}
	if !slices.ContainsFunc(f.parked, func(q delivery.Parked) bool { return sameEvent(&q.Event, &p.Event) }) {
		f.parked = append(f.parked, p)
	}
	return true
}

func sameEvent(a, b *contract.Event) bool {
	return a.AggregateID == b.AggregateID && a.Sequence == b.Sequence && a.ID == b.ID
}

// List implements delivery.HaltedAggregates.
func (f *Fake) List(_ context.Context, limit int) ([]string, error) {
	if err := f.fail("list"); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	halted := slices.Sorted(maps.Keys(f.halts))
	return halted[:min(limit, len(halted))], nil
}

// Halted implements delivery.HaltedAggregates.
func (f *Fake) Halted(_ context.Context, aggregate string) (bool, error) {
	if err := f.fail("halted"); err != nil {
		return false, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	_, halted := f.halts[aggregate]
	return halted, nil
}

// Parked returns an aggregate's parked sequences, in their order.
func (f *Fake) Parked(_ context.Context, aggregate string) ([]contract.Sequence, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var sequences []contract.Sequence
	for _, p := range f.parked {
		if p.Event.AggregateID == aggregate {
			sequences = append(sequences, p.Event.Sequence)
		}
	}
	slices.Sort(sequences)
	return sequences, nil
}

// Next implements delivery.Shelf.
func (f *Fake) Next(_ context.Context, aggregate string, limit int) ([]contract.Message, error) {
	if err := f.fail("next"); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	parked := slices.Clone(f.parked)
	slices.SortStableFunc(parked, func(a, b delivery.Parked) int {
		return strings.Compare(string(a.Event.Sequence), string(b.Event.Sequence))
	})
	var messages []contract.Message
	for i := range parked {
		if parked[i].Event.AggregateID == aggregate && len(messages) < limit {
			messages = append(messages, parked[i].Message.Message)
		}
	}
	return messages, nil
}

// Unpark implements delivery.Shelf.
func (f *Fake) Unpark(_ context.Context, e *contract.Event) (bool, error) {
	if err := f.fail("unpark"); err != nil {
		return false, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	before := len(f.parked)
	f.parked = slices.DeleteFunc(f.parked, func(p delivery.Parked) bool { return sameEvent(&p.Event, e) })
	return len(f.parked) < before, nil
}

// Lift implements delivery.Shelf.
func (f *Fake) Lift(_ context.Context, aggregate string) (bool, error) {
	if err := f.fail("lift"); err != nil {
		return false, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if slices.ContainsFunc(f.parked, func(p delivery.Parked) bool { return p.Event.AggregateID == aggregate }) {
		return false, nil
	}
	delete(f.halts, aggregate)
	f.mark(aggregate, "")
	return true, nil
}

// Mark implements delivery.Shelf.
func (f *Fake) Mark(_ context.Context, aggregate string) (*projection.Halted, error) {
	if err := f.fail("mark"); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	h, halted := f.halts[aggregate]
	if !halted {
		return nil, nil
	}
	return &projection.Halted{Reason: h.Reason, EventID: h.Event.ID}, nil
}

// Marked returns the reason that a document is marked with; "" where it is not.
func (f *Fake) Marked(_ context.Context, collection string, id any) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if d := f.documents[collection][id]; d != nil {
		return d.mark, nil
	}
	return "", nil
}

// Fields returns a document without its bookkeeping, as Extended JSON with its
// fields sorted; "" when there is none.
func (f *Fake) Fields(_ context.Context, collection string, id any) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	d := f.documents[collection][id]
	if d == nil {
		return "", nil
	}
	if d.deleted {
		return "deleted", nil
	}
	return Canonical(d.fields)
}

// PutForeign puts a document that is not of the projector.
func (f *Fake) PutForeign(_ context.Context, collection string, id any) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.documents[collection] == nil {
		f.documents[collection] = map[any]*document{}
	}
	f.documents[collection][id] = &document{foreign: true, fields: map[string]any{"mine": 1}}
	return nil
}

// Canonical is a document's text with its top-level fields sorted.
func Canonical(fields map[string]any) (string, error) {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		text, err := bson.MarshalExtJSON(bson.D{{Key: name, Value: fields[name]}}, false, false)
		if err != nil {
			return "", err
		}
		b.Write(text)
	}
	return b.String(), nil
}
