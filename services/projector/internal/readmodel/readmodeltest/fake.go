// Package readmodeltest has a read model in memory that behaves as the one in
// MongoDB does, and the suite that both pass.
package readmodeltest

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/delivery"
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
	// FollowedBy is what is noted with parked messages. It is set before the
	// first use.
	FollowedBy []string

	mu        sync.Mutex
	documents map[string]map[any]*document // guarded by mu; by collection and key
	halts     map[string]delivery.Halt     // guarded by mu
	// haltIDs are those of halts, halted how many there ever were. Guarded by mu.
	haltIDs map[string]delivery.HaltID
	// haltedAt are the times of the halts that count for the brake. Guarded by mu.
	haltedAt map[string]time.Time
	halted   int
	parked   []delivery.Parked // guarded by mu
	// discarded are the events that an operator has discarded. Guarded by mu.
	discarded []contract.Event
	// kept and behind are those of the store. Guarded by mu.
	kept map[string]int64
	// skips are the records of skipped events, stop what stops the projectors. Guarded by mu.
	skips map[skip]Skip
	stop  *delivery.Stop
	// noted are the events that aggregates are halted at. Guarded by mu.
	noted  map[string]contract.Event
	behind map[string]bool // by event id
	taken  map[string]contract.Sequence
	// open and mostOpen count pages of parked messages. Guarded by mu.
	open, mostOpen int
	// positions are those of the ledger. Guarded by mu.
	positions map[[2]string]*contract.Event
	// firsts are the sequences that they begin with. Guarded by mu.
	firsts map[[2]string]contract.Sequence
	// versions are those that the aggregates have reached. Guarded by mu.
	versions map[string]contract.Version
}

type document struct {
	fields   map[string]any
	sequence contract.Sequence
	// first is that of the event that made it; "" behind a deletion.
	first   contract.Sequence
	eventID string
	deleted bool
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
	_ delivery.ParkedMessages   = (*Fake)(nil)
	_ delivery.Versions         = (*Fake)(nil)
	_ delivery.Unhalted         = (*Fake)(nil)
)

// NewFake returns an empty read model.
func NewFake() *Fake {
	return &Fake{documents: map[string]map[any]*document{}, halts: map[string]delivery.Halt{}, haltIDs: map[string]delivery.HaltID{}, haltedAt: map[string]time.Time{}, positions: map[[2]string]*contract.Event{}, firsts: map[[2]string]contract.Sequence{}, versions: map[string]contract.Version{}, kept: map[string]int64{}, noted: map[string]contract.Event{}, behind: map[string]bool{}, taken: map[string]contract.Sequence{}}
}

func (f *Fake) fail(operation string) error {
	if f.Fail == nil {
		return nil
	}
	return f.Fail(operation)
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
