package readmodel

import (
	"context"
	"errors"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/delivery"
	"changerelay/services/projector/internal/projection"
)

// haltNote is a document of applied_positions: an aggregate is halted. It is stored and
// removed in the transactions that store and lift the halt, and tells of a halt that was
// deleted with all that was parked under it.
type haltNote struct {
	Key       haltNoteKey       `bson:"_id"`
	Sequence  contract.Sequence `bson:"sequence"`
	Position  contract.Position `bson:"position"`
	EventID   string            `bson:"eventId"`
	EventType string            `bson:"eventType"`
}

// haltNoteKey is the key of a haltNote, in a range of its own.
type haltNoteKey struct {
	Note        string `bson:"note"` // notedHalt
	AggregateID string `bson:"aggregateId"`
}

const notedHalt = "halt"

// event is the one that the aggregate was halted at.
func (n *haltNote) event() contract.Event {
	return contract.Event{ID: n.EventID, Type: n.EventType, AggregateID: n.Key.AggregateID, Sequence: n.Sequence, Position: n.Position}
}

// noteHalt notes a halt, in its transaction.
func (s *Halts) noteHalt(ctx context.Context, h *haltedAggregate) error {
	n := haltNote{haltNoteKey{notedHalt, h.AggregateID}, h.Sequence, h.Position, h.EventID, h.EventType}
	if _, err := s.own(projection.Positions).ReplaceOne(ctx, bson.D{{Key: "_id", Value: n.Key}}, n, options.Replace().SetUpsert(true)); err != nil {
		return fmt.Errorf("note in %q that aggregate %q is halted: %w", projection.Positions, h.AggregateID, err)
	}
	return nil
}

// forgetHalt removes the note of a halt, in the transaction that lifts it.
func (s *Halts) forgetHalt(ctx context.Context, aggregate string) error {
	if _, err := s.own(projection.Positions).DeleteOne(ctx, bson.D{{Key: "_id", Value: haltNoteKey{notedHalt, aggregate}}}); err != nil {
		return fmt.Errorf("forget in %q that aggregate %q is halted: %w", projection.Positions, aggregate, err)
	}
	return nil
}

// notedHalts are the aggregates whose halts are noted.
func (s *Halts) notedHalts(ctx context.Context) ([]string, error) {
	cursor, err := s.own(projection.Positions).Find(ctx, bson.D{{Key: "_id", Value: bson.D{
		{Key: "$gte", Value: bson.D{{Key: "note", Value: notedHalt}, {Key: "aggregateId", Value: ""}}},
		{Key: "$lt", Value: bson.D{{Key: "note", Value: notedHalt}, {Key: "aggregateId", Value: bson.MaxKey{}}}},
	}}}, options.Find().SetProjection(bson.D{{Key: "_id", Value: 1}}))
	var notes []haltNote
	if err == nil {
		err = cursor.All(ctx, &notes)
	}
	if err != nil {
		return nil, fmt.Errorf("list the halts noted in %q: %w", projection.Positions, err)
	}
	aggregates := make([]string, len(notes))
	for i := range notes {
		aggregates[i] = notes[i].Key.AggregateID
	}
	return aggregates, nil
}

// deleted is the halt of an aggregate that is noted and not there, where no message of
// it is parked either; nil where there is none.
func (s *Parked) deleted(ctx context.Context, aggregate string) (found *delivery.LostHalt, err error) {
	err = s.together(ctx, func(ctx context.Context) error {
		found = nil
		if halt, err := s.halts.Halted(ctx, aggregate); err != nil || halt != "" {
			return err
		}
		if parked, err := s.there(ctx, s.own(projection.ParkedMessages).Name(), ofAggregate(aggregate)); err != nil || parked {
			return err
		}
		var n haltNote
		err := s.own(projection.Positions).FindOne(ctx, bson.D{{Key: "_id", Value: haltNoteKey{notedHalt, aggregate}}}).Decode(&n)
		if errors.Is(err, mongo.ErrNoDocuments) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("look up in %q whether aggregate %q is halted: %w", projection.Positions, aggregate, err)
		}
		found = &delivery.LostHalt{Event: n.event(), Deleted: true}
		return nil
	})
	return found, err
}

// NoteHalts notes the halts that are not noted: those of an older release, and those
// whose notes are lost.
func (s *Halts) NoteHalts(ctx context.Context) error {
	halts, err := s.List(ctx, 0)
	if err != nil || len(halts) == 0 {
		return err
	}
	noted, err := s.notedHalts(ctx)
	if err != nil {
		return err
	}
	for _, aggregate := range noted {
		delete(halts, aggregate)
	}
	for aggregate := range halts {
		if err := s.noteStanding(ctx, aggregate); err != nil {
			return err
		}
	}
	return nil
}

// noteStanding notes the halt of an aggregate that is halted. The halt is changed for
// it, which keeps it from being lifted meanwhile.
func (s *Halts) noteStanding(ctx context.Context, aggregate string) error {
	return s.together(ctx, func(ctx context.Context) error {
		var halt haltedAggregate
		err := s.own(projection.HaltedAggregates).FindOneAndUpdate(ctx, bson.D{{Key: "_id", Value: aggregate}},
			bson.D{{Key: "$set", Value: bson.D{{Key: "noted", Value: bson.NewObjectID()}}}}).Decode(&halt)
		if errors.Is(err, mongo.ErrNoDocuments) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("write to %q: %w", projection.HaltedAggregates, err)
		}
		return s.noteHalt(ctx, &halt)
	})
}
