package mongostate

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// What Claim, Get and Resolve refuse.
var (
	ErrNotParked = errors.New("no such change of the stream is parked, or it was replayed or discarded")
	ErrClaimed   = errors.New("somebody else deals with the change at this moment")
)

// Resolution is what was done with a parked change in the end.
type Resolution string

// The resolutions.
const (
	Replayed  Resolution = "replayed"
	Discarded Resolution = "discarded"
)

// ParkedAgain as an action says that the change was dealt with, and is parked again.
const ParkedAgain = "parked"

// ParkedAction is one thing that was done with a parked change.
type ParkedAction struct {
	// Action is a resolution, or failed, or ParkedAgain.
	Action string    `bson:"action" json:"action"`
	By     string    `bson:"by" json:"by"`
	At     time.Time `bson:"at" json:"at"`
	// Note is the message's id, or what went wrong.
	Note string `bson:"note,omitempty" json:"note,omitempty"`
}

func (p *Parked) unresolved() bson.D {
	return bson.D{{Key: "stream", Value: p.stream}, {Key: "resolved", Value: nil}} // null or absent
}

// Get returns a change of the stream, whatever was done with it.
func (p *Parked) Get(ctx context.Context, id string) (ParkedChange, error) {
	return p.get(ctx, id, options.FindOne())
}

// summary is Get without the change itself.
func (p *Parked) summary(ctx context.Context, id string) (ParkedChange, error) {
	return p.get(ctx, id, options.FindOne().SetProjection(withoutChange))
}

func (p *Parked) get(ctx context.Context, id string, o *options.FindOneOptionsBuilder) (ParkedChange, error) {
	var found ParkedChange
	err := p.changes.FindOne(ctx, bson.D{{Key: "_id", Value: id}, {Key: "stream", Value: p.stream}}, o).Decode(&found)
	if errors.Is(err, mongo.ErrNoDocuments) {
		return ParkedChange{}, ErrNotParked
	}
	if err != nil {
		return ParkedChange{}, fmt.Errorf("read parked change %s: %w", id, err)
	}
	return found, nil
}

// Claim gives the caller a parked change for a while, by the server's clock, so
// that two operators do not both deal with it. It returns it without the change itself.
func (p *Parked) Claim(ctx context.Context, id, by string, during time.Duration) (ParkedChange, error) {
	claim := rand.Text()
	free := append(p.unresolved(),
		bson.E{Key: "_id", Value: id},
		bson.E{Key: "$expr", Value: bson.D{{Key: "$not", Value: bson.A{
			bson.D{{Key: "$gt", Value: bson.A{"$claimedUntil", "$$NOW"}}}, // absent sorts below any date
		}}}})
	var found ParkedChange
	err := p.changes.FindOneAndUpdate(ctx, free, mongo.Pipeline{{{Key: "$set", Value: bson.D{
		{Key: "claim", Value: literal(claim)},
		{Key: "claimedBy", Value: literal(by)},
		{Key: "claimedUntil", Value: fromNow(during)},
	}}}}, options.FindOneAndUpdate().SetReturnDocument(options.After).SetProjection(withoutChange)).Decode(&found)
	if errors.Is(err, mongo.ErrNoDocuments) {
		if held, err := p.summary(ctx, id); err == nil && held.Resolved == "" {
			return ParkedChange{}, ErrClaimed
		}
		return ParkedChange{}, ErrNotParked
	}
	if err != nil {
		return ParkedChange{}, fmt.Errorf("claim parked change %s: %w", id, err)
	}
	found.claimed, found.claimant = claim, by
	return found, nil
}

// Resolve records what was done with a claimed change. It stays, marked so: a
// leader that reads the change again must not park it anew.
func (p *Parked) Resolve(ctx context.Context, claimed ParkedChange, as Resolution, note string) error {
	return p.record(ctx, claimed, string(as), note, bson.E{Key: "resolved", Value: literal(string(as))})
}

// Unclaim records that an attempt failed, and gives the change back.
func (p *Parked) Unclaim(ctx context.Context, claimed ParkedChange, note string) error {
	return p.record(ctx, claimed, "failed", note)
}

func (p *Parked) record(ctx context.Context, claimed ParkedChange, action, note string, more ...bson.E) error {
	set := append(bson.D{{Key: "actions", Value: withAction(action, claimed.claimant, note)}}, more...)
	result, err := p.changes.UpdateOne(ctx, bson.D{{Key: "_id", Value: claimed.ID}, {Key: "claim", Value: claimed.claimed}}, mongo.Pipeline{
		{{Key: "$set", Value: set}},
		{{Key: "$unset", Value: bson.A{"claim", "claimedBy", "claimedUntil"}}},
	})
	if err != nil {
		return fmt.Errorf("record %s of parked change %s: %w", action, claimed.ID, err)
	}
	if result.MatchedCount == 0 {
		return fmt.Errorf("record %s of parked change %s: %w", action, claimed.ID, ErrClaimed)
	}
	return nil
}

// Reopen parks changes again that were replayed at a time or later, by the server's
// clock, and calls visit for each: what they were sent to is gone.
func (p *Parked) Reopen(ctx context.Context, since time.Time, by string, visit func(ParkedChange)) error {
	sent := bson.D{
		{Key: "stream", Value: p.stream},
		{Key: "resolved", Value: Replayed},
		{Key: "actions", Value: bson.D{{Key: "$elemMatch", Value: bson.D{{Key: "action", Value: Replayed}, {Key: "at", Value: bson.D{{Key: "$gte", Value: since}}}}}}},
	}
	again := mongo.Pipeline{
		{{Key: "$set", Value: bson.D{{Key: "actions", Value: withAction(ParkedAgain, by, "what it was replayed to is gone")}}}},
		{{Key: "$unset", Value: bson.A{"resolved"}}},
	}
	for {
		page, err := p.page(ctx, sent)
		if err == nil && len(page) == 0 {
			return nil
		}
		for i := 0; err == nil && i < len(page); i++ {
			if _, err = p.changes.UpdateOne(ctx, append(slices.Clip(sent), bson.E{Key: "_id", Value: page[i].ID}), again); err == nil {
				visit(page[i])
			}
		}
		if err != nil {
			return fmt.Errorf("park again what of %q was replayed since %s: %w", p.stream, since.Format(time.RFC3339), err)
		}
	}
}

// withAction is the expression of a change's actions with another one, done now.
func withAction(action, by, note string) bson.D {
	entry := bson.D{
		{Key: "action", Value: literal(action)},
		{Key: "by", Value: literal(by)},
		{Key: "at", Value: "$$NOW"},
		{Key: "note", Value: literal(note)},
	}
	return bson.D{{Key: "$concatArrays", Value: bson.A{bson.D{{Key: "$ifNull", Value: bson.A{"$actions", bson.A{}}}}, bson.A{entry}}}}
}
