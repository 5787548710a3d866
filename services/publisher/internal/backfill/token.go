package backfill

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"changerelay/services/publisher/internal/checkpoint"
)

// tokenDocument is the token of a copied document: where the copy goes on.
type tokenDocument struct {
	After  bson.Raw `bson:"after"`
	Copied int64    `bson:"copied"`
}

// Behind is the place behind the document whose change has that token; of the first
// one where there is none.
func Behind(token []byte) (checkpoint.Place, error) {
	var found tokenDocument
	if token != nil {
		if err := bson.Unmarshal(token, &found); err != nil {
			return checkpoint.Place{}, fmt.Errorf("read the token of a copy: %w", err)
		}
	}
	return checkpoint.Place{Copy: &checkpoint.Copy{After: found.After, Copied: found.Copied}}, nil
}

// Mover moves a checkpoint: see checkpoint.Claimed.
type Mover interface {
	Move(ctx context.Context, to checkpoint.Place) error
}

// Progress keeps how far a copy has come in a checkpoint. It implements
// relay.Checkpointer.
type Progress struct {
	mover  Mover
	place  checkpoint.Place
	copied atomic.Int64
}

// NewProgress returns the progress of the copy that place holds.
func NewProgress(mover Mover, place checkpoint.Place) *Progress {
	p := &Progress{mover: mover, place: place}
	p.copied.Store(place.Copy.Copied)
	return p
}

// Copy is the copy as it is kept. It may be called from any goroutine.
func (p *Progress) Copy() checkpoint.Copy {
	kept := *p.place.Copy
	kept.Copied = p.copied.Load()
	return kept
}

// Move implements relay.Checkpointer.
func (p *Progress) Move(ctx context.Context, to checkpoint.Place) error {
	var found tokenDocument
	if err := bson.Unmarshal(to.Token, &found); err != nil {
		return fmt.Errorf("read the token of a copy: %w", err)
	}
	copied := *p.place.Copy
	copied.After, copied.Copied = found.After, found.Copied
	if err := p.mover.Move(ctx, checkpoint.Place{Position: to.Position, Start: p.place.Start, Copy: &copied}); err != nil {
		return err
	}
	p.copied.Store(found.Copied)
	return nil
}

var errUnplaced = errors.New("it has no place in the order")

// keyOf is the document's key in an order of fields, missing ones as null.
func keyOf(document bson.Raw, order []string) (bson.Raw, error) {
	key := bsoncore.NewDocumentBuilder()
	for i, field := range order {
		value, err := valueAt(document, field)
		if err != nil {
			return nil, fmt.Errorf("make a key of document %s by its field %q: %w", document.Lookup("_id"), field, err)
		}
		key.AppendValue(strconv.Itoa(i), core(value))
	}
	return bson.Raw(key.Build()), nil
}

// valueAt returns the value at a path, null where there is none, and an error
// where something that has no place in an order is on the way.
func valueAt(document bson.Raw, path string) (bson.RawValue, error) {
	null := bson.RawValue{Type: bson.TypeNull}
	names := strings.Split(path, ".")
	for i, name := range names {
		value, err := document.LookupErr(name)
		switch {
		case err != nil:
			return null, nil
		case slices.Contains(keyless, value.Type):
			return null, errUnplaced
		case i == len(names)-1:
			return value, nil
		case value.Type != bson.TypeEmbeddedDocument:
			return null, nil
		}
		document = value.Document()
	}
	return null, nil
}

// pace hands out documents at a rate.
type pace struct {
	rate  int       // a second; 0 is no bound
	ready time.Time // when the next may go
}

// take waits until at least one of n documents may go, and returns how many may.
func (p *pace) take(ctx context.Context, n int) (int, error) {
	if p.rate == 0 {
		return n, nil
	}
	if pause := time.Until(p.ready); pause > 0 {
		timer := time.NewTimer(pause)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
	}
	// A tenth of a second's worth at a time, however late it is.
	n = min(n, max(p.rate/10, 1))
	p.ready = time.Now().Add(time.Duration(n) * time.Second / time.Duration(p.rate))
	return n, nil
}
