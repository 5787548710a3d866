package projection

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/pkg/contract"
)

// Change is an event with its data read.
type Change struct {
	contract.Event
	// Data is the event's data as BSON; the zero RawValue when it has none.
	// Event.Data is not looked at any more.
	// Of a document change it is the document after the change.
	Data bson.RawValue
	// Edit is what an update changed, where Data does not show its document; nil
	// otherwise.
	Edit *Edit
	// Fills is the name of the version that it is resent for, which alone decides about
	// it; "" where all projections do.
	Fills string

	ctx  context.Context // ends what is decided about the change; nil for never
	view map[string]any  // what expressions see of the event, made at the first need
}

// Within bounds decisions about the change by ctx: once that ends, they end with
// ErrInterrupted.
func (c *Change) Within(ctx context.Context) { c.ctx = ctx }

// Read reads an event's data. It takes hostile input, and its errors say what
// is wrong with the body. Data of a schema that it does not know is refused: a
// later release may, and what it means is not to be guessed.
func Read(event contract.Event) (*Change, error) {
	if event.DataSchema != "" && event.DataSchema != contract.DocumentChange {
		return nil, &contract.FieldError{Field: "dataschema", Problem: fmt.Sprintf(
			"is %.100q; this projector knows %s alone: upgrade the projectors, then run projector parked redrive", event.DataSchema, contract.DocumentChange)}
	}
	c := &Change{Event: event}
	var err error
	switch {
	case len(event.Data) == 0:
	case event.ContentType == contract.ContentTypeBSON:
		document := bson.Raw(event.Data)
		if err = bounded(document, maxDepth); err == nil {
			err = document.Validate()
		}
		c.Data = bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: document}
	default:
		c.Data, err = readJSON(event.Data)
	}
	if err == nil {
		err = c.unwrap()
	}
	if err != nil {
		return nil, &contract.FieldError{Field: "body", Problem: "is not " + event.ContentType + ": " + err.Error()}
	}
	return c, nil
}

// maxDepth is how deep BSON may be nested. The server's own limit is lower.
const maxDepth = 1000

var (
	errNotJSON = errors.New("not one JSON value")
	errTooDeep = fmt.Errorf("nested deeper than %d levels", maxDepth)
)

// readJSON reads one value in Extended JSON. The driver reads documents only,
// so a value that may be of any kind is read as the one field of a document.
func readJSON(data []byte) (bson.RawValue, error) {
	if value, ok := plainJSON(data); ok {
		return value, nil
	}
	return extendedJSON(data)
}

// extendedJSON is readJSON by the driver.
func extendedJSON(data []byte) (bson.RawValue, error) {
	// The driver stops after the first document and follows any nesting; this
	// check does neither.
	if !json.Valid(data) {
		return bson.RawValue{}, errNotJSON
	}
	const head, tail = `{"data":`, "\n}"
	wrapped := make([]byte, 0, len(head)+len(data)+len(tail))
	wrapped = append(append(append(wrapped, head...), data...), tail...)
	var document bson.Raw
	if err := bson.UnmarshalExtJSON(wrapped, false, &document); err != nil {
		return bson.RawValue{}, err
	}
	return document.LookupErr("data")
}

// bounded checks that a document is not nested deeper than levels, so that
// whoever follows its nesting has stack enough.
func bounded(document bson.Raw, levels int) error {
	if levels == 0 {
		return errTooDeep
	}
	elements, err := document.Elements()
	if err != nil {
		return err
	}
	for _, element := range elements {
		value := element.Value()
		if value.Type != bson.TypeEmbeddedDocument && value.Type != bson.TypeArray {
			continue
		}
		if err := bounded(bson.Raw(value.Value), levels-1); err != nil {
			return err
		}
	}
	return nil
}

// Write is one change of one read document.
type Write struct {
	// Projection is the name of the projection that asks for it.
	Projection string
	Collection string
	// ID is the document's _id.
	ID any
	// Update holds update operators; the bookkeeping is not among them. Empty
	// when Delete is set.
	Update bson.D
	// Delete removes the document.
	Delete bool
	// Keyed: the document is not the aggregate's own, and others change it too.
	// Then what was applied is not told by the document but by a position kept
	// for the projection and the aggregate.
	Keyed bool
	// Passed: the projection does not follow the event, and no document changes.
	// Only that the event was dealt with is kept, with the positions of Keyed.
	Passed bool
	// Kept: the document stays as it is, and none is made. Where there is one that is
	// not deleted, its position moves on.
	Kept bool
	// Whole: the update leaves nothing of what earlier events have made of the document.
	Whole bool
	// Complete, where it is not nil, makes the write that this one stands for, of the
	// document as it is before the event: without the bookkeeping, and nil where
	// there is none. Whoever calls it sees that the document stays so until the write
	// is made. Its error means what one of Decide does.
	Complete func(document bson.Raw) (Write, error)
	// Event is the event that the write comes from, without its data.
	Event *contract.Event
	// Lacks is the sequence of the event before, where a version that is filled takes the
	// event without having had that one; "" where it has, or nobody knows.
	Lacks contract.Sequence
	// By names the hold of a session under which the write is made, where it is
	// made under one. It decides nothing, and is kept for whoever asks later.
	By string
	// Halted marks the document, where the aggregate is halted and a redrive
	// makes the write.
	Halted *Halted
	// Skipped is recorded in the transaction of the write, which changes no document; nil
	// where the event is applied.
	Skipped *Skipped
	// Mends: the event may have been skipped before. That it was is forgotten in the
	// transaction of the write.
	Mends bool
}

// Changes tells whether the write is of a document's fields, as far as it is known.
func (w *Write) Changes() bool { return !w.Passed && !w.Kept }

// Makes tells whether the write makes a document where there is none, or fails at that. The
// error is ErrInterrupted.
func (w *Write) Makes() (bool, error) {
	if w.Complete == nil || !w.Changes() {
		return w.Changes() && !w.Delete, nil
	}
	done, err := w.Complete(nil)
	if errors.Is(err, ErrInterrupted) {
		return false, err
	}
	return err != nil || done.Changes() && !done.Delete, nil
}

// Halted is what the read documents of a halted aggregate say: that they are
// older than its events.
type Halted struct {
	Since time.Time
	// Reason is why the event EventID could not be projected.
	Reason  string
	EventID string
}

// Projection turns changes into writes.
type Projection interface {
	// Name is unique among the projections of a process.
	Name() string
	// Collections are those that the projection writes to. No other writes there.
	Collections() []string
	// Decide returns what the change asks for: nothing when the projection does
	// not follow it. An error means that the change cannot be projected, now
	// or later. Decide must depend on the change alone, and Complete of a write on
	// the change and the document.
	Decide(c *Change) ([]Write, error)
}

// Projections are those of a process.
type Projections []Projection

// Check reports names and collections that two projections share. Two
// projections that write one collection would take each other's writes for
// repeats of their own.
func (ps Projections) Check() error {
	var errs []error
	names, owners := map[string]bool{}, map[string]string{}
	for _, p := range ps {
		if names[p.Name()] {
			errs = append(errs, fmt.Errorf("projection %q is there twice", p.Name()))
		}
		names[p.Name()] = true
		claimed := p.Collections()
		for _, view := range Views(p) {
			claimed = append(claimed, view.Name)
		}
		for _, collection := range claimed {
			if owner, taken := owners[collection]; taken && owner != p.Name() {
				errs = append(errs, fmt.Errorf("projection %q writes collection %q, which belongs to projection %q", p.Name(), collection, owner))
			}
			owners[collection] = p.Name()
		}
	}
	return errors.Join(errs...)
}

// Decide gathers the writes of all projections that decide about a change. The error is a
// *Failure.
func (ps Projections) Decide(c *Change) ([]Write, error) {
	var writes []Write
	for _, p := range ps.deciders(c) {
		decided, err := decide(p, c)
		if err != nil {
			return nil, err
		}
		writes = append(writes, decided...)
	}
	return writes, nil
}

// deciders are the projections that decide about a change: all, or the version alone that it
// fills. The others have had the event, and their failures say nothing of that version.
func (ps Projections) deciders(c *Change) Projections {
	if c.Fills == "" {
		return ps
	}
	if i := slices.IndexFunc(ps, func(p Projection) bool { return p.Name() == c.Fills }); i >= 0 {
		return ps[i : i+1]
	}
	return nil
}

// decide are the writes of one projection.
func decide(p Projection, c *Change) ([]Write, error) {
	writes, err := p.Decide(c)
	if err == nil {
		err = distinct(writes)
	}
	if err != nil {
		return nil, about(p, c, err)
	}
	return writes, nil
}

// about says of which projection and event an error is. Where no policy is asked it halts.
func about(p Projection, c *Change, err error) error {
	return &Failure{p.Name(), Evaluate, Halt, fmt.Errorf("projection %q, event type %q: %w", p.Name(), c.Type, err)}
}

// distinct refuses two writes of one document in one event: the position of the
// first would make the second look like a repeat. Documents with the ledger's
// guard may be written more than once.
func distinct(writes []Write) error {
	if len(writes) < 2 {
		return nil
	}
	seen := map[string]bool{}
	for i := range writes {
		w := &writes[i]
		if w.Keyed {
			continue
		}
		id, err := bson.MarshalExtJSON(bson.D{{Key: "c", Value: w.Collection}, {Key: "_id", Value: sameNumber(w.ID)}}, true, false)
		if err != nil {
			return fmt.Errorf("the _id of a document in %q: %w", w.Collection, err)
		}
		if seen[string(id)] {
			return fmt.Errorf("two writes of one document in %q: join them into one", w.Collection)
		}
		seen[string(id)] = true
	}
	return nil
}

// sameNumber is a key as the server compares it: numbers by their value.
func sameNumber(id any) any {
	switch n := id.(type) {
	case int:
		return float64(n)
	case int32:
		return float64(n)
	case int64:
		if int64(float64(n)) == n {
			return float64(n)
		}
	}
	return id
}

// OwnDocuments are the collections in which a document is one aggregate's own.
func (ps Projections) OwnDocuments() []string {
	var own []string
	for _, p := range ps {
		if !Keyed(p) {
			own = append(own, p.Collections()...)
		}
	}
	return own
}

// Keyed tells whether a projection's documents have another key than the
// aggregate's id, so that many aggregates change one.
func Keyed(p Projection) bool {
	k, ok := p.(interface{ Keyed() bool })
	return ok && k.Keyed()
}

// Collections are the collections of all projections.
func (ps Projections) Collections() []string {
	var all []string
	for _, p := range ps {
		all = append(all, p.Collections()...)
	}
	return all
}
