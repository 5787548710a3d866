package readmodel

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"changerelay/services/projector/internal/projection"
)

// mostNamed bounds the names in a line of the ledger; Count goes on.
const mostNamed = 200

// Decision is a line of the ledger: somebody has left events out, or accepted something
// unproven. It is written before that is done, and closed afterwards. A decision that is
// not closed may have been carried out in part.
type Decision struct {
	ID      string    `bson:"_id" json:"id"`
	At      time.Time `bson:"at" json:"at"`
	By      string    `bson:"by" json:"by"`
	Group   string    `bson:"group" json:"group"`
	Feed    Feed      `bson:"feed" json:"feed"`
	Command string    `bson:"command" json:"command"`
	// Why is what spoke against it.
	Why []string `bson:"why,omitempty" json:"why,omitempty"`
	// About are those that it is about, and Count how many there are, of which only
	// the first are named.
	About []Named `bson:"about,omitempty" json:"about,omitempty"`
	Count int     `bson:"count" json:"count"`
	// ClosedAt is nil until the command has ended, Error why it has failed.
	ClosedAt *time.Time `bson:"closedAt" json:"closed_at"`
	Error    string     `bson:"error,omitempty" json:"error,omitempty"`
	// Counted tells that the command counts at a halt what it takes away, which those
	// of older releases do not.
	Counted bool `bson:"counted,omitempty" json:"-"`
}

// Named is an event, an aggregate or a dead letter that a decision is about.
type Named struct {
	Aggregate string `bson:"aggregate,omitempty" json:"aggregate,omitempty"`
	Event     string `bson:"event,omitempty" json:"event,omitempty"`
	// Version is the aggregate's, nil where the event has none.
	Version *int64 `bson:"version,omitempty" json:"version,omitempty"`
	Reason  string `bson:"reason,omitempty" json:"reason,omitempty"`
}

// Add counts what the decision is about, and names it if there is room.
func (d *Decision) Add(n Named) {
	d.Count++
	if len(d.About) < mostNamed {
		d.About = append(d.About, n)
	}
}

// Open writes a line of the ledger, and fills in what the store knows.
func (s *Store) Open(ctx context.Context, d *Decision) error {
	d.ID, d.At, d.Group, d.Feed, d.Counted = rand.Text(), time.Now(), s.group, s.feed, true
	if _, err := s.db.Collection(projection.Decisions).InsertOne(ctx, d); err != nil {
		return fmt.Errorf("write to %q: %w", projection.Decisions, err)
	}
	return nil
}

// Close notes what became of a decision, and what it was about as that is known now.
func (s *Store) Close(ctx context.Context, d *Decision) error {
	now := time.Now()
	d.ClosedAt = &now
	if _, err := s.db.Collection(projection.Decisions).ReplaceOne(ctx, bson.D{{Key: "_id", Value: d.ID}}, d); err != nil {
		return fmt.Errorf("close decision %q in %q: %w", d.ID, projection.Decisions, err)
	}
	return nil
}

// Decisions calls each for the ledger's lines about the store's group, in the
// order of their times.
func (s *Store) Decisions(ctx context.Context, each func(Decision) error) error {
	cursor, err := s.db.Collection(projection.Decisions).Find(ctx, bson.D{{Key: "group", Value: s.group}}, options.Find().SetSort(bson.D{{Key: "at", Value: 1}}))
	if err != nil {
		return fmt.Errorf("read %q: %w", projection.Decisions, err)
	}
	defer func() { _ = cursor.Close(context.WithoutCancel(ctx)) }()
	for cursor.Next(ctx) {
		var d Decision
		if err := cursor.Decode(&d); err != nil {
			return fmt.Errorf("read %q: %w", projection.Decisions, err)
		}
		if err := each(d); err != nil {
			return err
		}
	}
	if err := cursor.Err(); err != nil {
		return fmt.Errorf("read %q: %w", projection.Decisions, err)
	}
	return nil
}

// LatestDecision is the ledger's last line about the store's group, and how many
// there are; nil where there is none.
func (s *Store) LatestDecision(ctx context.Context) (*Decision, int64, error) {
	mine := bson.D{{Key: "group", Value: s.group}}
	n, err := s.db.Collection(projection.Decisions).CountDocuments(ctx, mine)
	if err != nil || n == 0 {
		return nil, n, withOperation(err)
	}
	var last Decision
	err = s.db.Collection(projection.Decisions).FindOne(ctx, mine, options.FindOne().SetSort(bson.D{{Key: "at", Value: -1}})).Decode(&last)
	return &last, n, withOperation(err)
}

// withOperation says what an error was about.
func withOperation(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("read %q: %w", projection.Decisions, err)
}
