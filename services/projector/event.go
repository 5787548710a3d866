package projector

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/projector/internal/projection"
)

// Event is one change of one aggregate, as Decide is given it. It is Decide's own.
type Event struct {
	// ID is the event's own, the same however often it is delivered.
	ID string
	// Type is the event's type, such as OrderPlaced.
	Type string
	// AggregateID is the aggregate that it belongs to.
	AggregateID string
	// Version is the aggregate's version after the event, where its source numbers them:
	// otherwise Numbered is false.
	Version  int64
	Numbered bool
	// Time is when the event happened, by its source; zero where that is not known.
	Time time.Time
	// Operation is what happened to the source document: insert, update, replace, delete
	// or snapshot.
	Operation string
	// Sequence orders the events of an aggregate bytewise.
	Sequence string
	// Data is what the event says; the zero value where it says nothing, as of a delete.
	// Of a change of a document it is the document after the change.
	Data bson.RawValue
	// State is what the events before this one have made of the aggregate's document,
	// without _id and _relay; nil where there is none, and for a projection without State.
	State bson.Raw
}

// ErrNoData means that an event has no data.
var ErrNoData = errors.New("the event has no data")

// Unmarshal reads the event's data into v, a pointer, as bson.Unmarshal does: fields of a
// struct are found by their bson tags, or else by their names in lower case, and one that
// is not in the data is left as it is.
func (e *Event) Unmarshal(v any) error {
	if e.Data.IsZero() {
		return ErrNoData
	}
	if err := e.Data.Unmarshal(v); err != nil {
		return fmt.Errorf("read the data: %w", err)
	}
	return nil
}

// UnmarshalState reads State into v, as Unmarshal does; without a State it leaves v as it
// is.
func (e *Event) UnmarshalState(v any) error {
	if e.State == nil {
		return nil
	}
	if err := bson.Unmarshal(e.State, v); err != nil {
		return fmt.Errorf("read the state: %w", err)
	}
	return nil
}

func eventOf(c *projection.Change, state []byte) *Event {
	e := &Event{
		ID: c.ID, Type: c.Type, AggregateID: c.AggregateID, Version: c.Version.Number, Numbered: c.Version.Known,
		Time: c.Time, Operation: string(c.Operation), Sequence: string(c.Sequence),
		Data: c.Data, State: bytes.Clone(state),
	}
	e.Data.Value = bytes.Clone(c.Data.Value)
	return e
}
