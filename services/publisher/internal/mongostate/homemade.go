package mongostate

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// mostHomeMade is how many documents a collection may have in which leases and tokens
// of another program are looked for: one with more holds something else.
const mostHomeMade = 1000

// fence is the field that says who took a lease of another program for good.
const fence = "adoptedBy"

// HomeMade is what another program keeps of a change stream that it publishes: who
// leads, and how far it has come.
type HomeMade struct {
	Leases []HomeLease
	Tokens []HomeToken
	// Unseen are the collections that have too many documents to be looked through.
	Unseen []string
}

// HomeLease is a lease of another program: a document with leaderId and expiresAt.
type HomeLease struct {
	Collection  string
	ID          bson.RawValue
	Leader      string
	HeartbeatAt time.Time
	ExpiresAt   time.Time
	// Remaining is what is left of it by the server's clock.
	Remaining time.Duration
	// Fenced says that it was taken from the other program before.
	Fenced bool
}

// Live reports whether the other program may lead by it.
func (l HomeLease) Live() bool { return !l.Fenced && l.Remaining > 0 }

// HomeToken is a resume token of another program: {_data: …} as a document of its own,
// or in one of the fields of one, or its text in a field of which the name says so.
type HomeToken struct {
	Collection string
	ID         bson.RawValue
	Token      bson.Raw
}

// Beside is another database of the same server.
func (d *Database) Beside(name string) *Database { return New(d.db.Client(), name) }

// HomeMade looks for leases and tokens of another program. What this one has made is
// not among them.
func (d *Database) HomeMade(ctx context.Context) (HomeMade, error) {
	var found HomeMade
	names, err := d.db.ListCollectionNames(ctx, bson.D{})
	if err != nil {
		return found, fmt.Errorf("list the collections of %s: %w", d.db.Name(), err)
	}
	slices.Sort(names)
	for _, name := range names {
		if slices.Contains([]string{parked, instances, replaced, gaps, moves, streams}, name) || strings.HasPrefix(name, "system.") {
			continue
		}
		in := d.db.Collection(name)
		count, err := in.EstimatedDocumentCount(ctx)
		if err == nil && count > mostHomeMade {
			found.Unseen = append(found.Unseen, name)
			continue
		}
		if err == nil {
			err = found.look(ctx, in)
		}
		if err != nil {
			return found, fmt.Errorf("look for leases and tokens in %s.%s: %w", d.db.Name(), name, err)
		}
	}
	return found, nil
}

func (h *HomeMade) look(ctx context.Context, in *mongo.Collection) error {
	cursor, err := in.Aggregate(ctx, mongo.Pipeline{
		{{Key: "$match", Value: bson.D{
			{Key: "leaderId", Value: bson.D{{Key: "$type", Value: "string"}}},
			{Key: "expiresAt", Value: bson.D{{Key: "$type", Value: "date"}}},
			{Key: "incarnation", Value: nil}, // ours have one
		}}},
		{{Key: "$addFields", Value: bson.D{{Key: "remaining", Value: bson.D{{Key: "$subtract", Value: bson.A{"$expiresAt", "$$NOW"}}}}}}},
	})
	if err != nil {
		return err
	}
	var leases []struct {
		ID          bson.RawValue `bson:"_id"`
		Leader      string        `bson:"leaderId"`
		HeartbeatAt time.Time     `bson:"heartbeatAt"`
		ExpiresAt   time.Time     `bson:"expiresAt"`
		Remaining   int64         `bson:"remaining"`
		Fence       string        `bson:"adoptedBy"`
	}
	if err := cursor.All(ctx, &leases); err != nil {
		return err
	}
	for _, l := range leases {
		h.Leases = append(h.Leases, HomeLease{
			Collection: in.Name(), ID: l.ID, Leader: l.Leader, HeartbeatAt: l.HeartbeatAt.UTC(), ExpiresAt: l.ExpiresAt.UTC(),
			Remaining: time.Duration(l.Remaining) * time.Millisecond, Fenced: l.Fence != "",
		})
	}
	if cursor, err = in.Find(ctx, bson.D{{Key: "term", Value: nil}}, options.Find().SetLimit(mostHomeMade)); err != nil {
		return err
	}
	var documents []bson.Raw
	if err := cursor.All(ctx, &documents); err != nil {
		return err
	}
	for _, document := range documents {
		if token := tokenIn(document); token != nil {
			h.Tokens = append(h.Tokens, HomeToken{Collection: in.Name(), ID: document.Lookup("_id"), Token: token})
		}
	}
	return nil
}

// tokenIn is the resume token that a document has; nil where it has none.
func tokenIn(document bson.Raw) bson.Raw {
	elements, err := document.Elements()
	if err != nil {
		return nil
	}
	for _, e := range elements {
		text, isText := e.Value().StringValueOK()
		inner, isDocument := e.Value().DocumentOK()
		switch {
		case e.Key() == "_id": // of a change that was kept, not of a place
		case e.Key() == "_data" && isText:
			return tokenOf(text)
		case isText && strings.Contains(strings.ToLower(e.Key()), "token"):
			if _, err := hex.DecodeString(text); err == nil && text != "" {
				return tokenOf(text)
			}
		case isDocument:
			if text, ok := inner.Lookup("_data").StringValueOK(); ok {
				return tokenOf(text)
			}
		}
	}
	return nil
}

func tokenOf(data string) bson.Raw {
	token, err := bson.Marshal(bson.D{{Key: "_data", Value: data}})
	if err != nil {
		return nil // a string is always taken
	}
	return token
}

// ErrMoving is returned where another program has changed a lease since it was read.
var ErrMoving = errors.New("another program holds it still, and has renewed it")

// farOff is when a lease ends that was taken for good.
var farOff = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

// Fence takes a lease from the other program for good, unless that has changed it since
// it was read: whoever asks the lease before it leads does so no more. Deleting the
// document gives it back.
func (d *Database) Fence(ctx context.Context, l HomeLease, by string) error {
	result, err := d.db.Collection(l.Collection).UpdateOne(ctx,
		bson.D{{Key: "_id", Value: l.ID}, {Key: "leaderId", Value: l.Leader}, {Key: "expiresAt", Value: l.ExpiresAt}},
		bson.D{{Key: "$set", Value: bson.D{{Key: "leaderId", Value: by}, {Key: "expiresAt", Value: farOff}, {Key: fence, Value: by}}}})
	switch {
	case err != nil:
		return fmt.Errorf("take the lease %s of %s: %w", l.ID, l.Collection, err)
	case result.MatchedCount == 0:
		return fmt.Errorf("take the lease %s of %s: %w", l.ID, l.Collection, ErrMoving)
	}
	return nil
}
