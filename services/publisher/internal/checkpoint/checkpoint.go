// Package checkpoint keeps how far a stream has been published, so that it can
// be moved by one term only.
//
// A leader first claims the checkpoint: that raises the term and returns the
// document, both in one atomic step, and only that document says where to go
// on. Every later save names the term, and the store refuses it when the term
// was raised since. So a leader that lost its lease without knowing can not
// move the checkpoint, however late its write arrives.
//
// The term lives here and not in the lease, because lease records may vanish.
package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"time"

	"changerelay/pkg/contract"
)

// ErrSuperseded is returned when a later term has claimed the checkpoint. It is
// final: the same save can never succeed.
var ErrSuperseded = errors.New("superseded by a later term")

// ClusterTime is a moment of the source cluster's operation log.
type ClusterTime struct{ Seconds, Increment uint32 }

// IsZero reports whether the time is unset.
func (t ClusterTime) IsZero() bool { return t == ClusterTime{} }

// Checkpoint is how far a stream has been published.
type Checkpoint struct {
	Stream string
	// Term is the term that may move the checkpoint.
	Term int64
	// Token is the resume token, a BSON document, of the last change up to which
	// everything is published; nil before the first save.
	Token []byte
	// Position is where that change stands; empty before the first save.
	Position contract.Position
	// Start is where the stream begins while there is no token; zero until pinned.
	Start ClusterTime
	// UpdatedAt is when the checkpoint was last saved, by the server's clock.
	UpdatedAt time.Time
}

// Progress is what a save writes.
type Progress struct {
	// Number counts the saves of one term from 1. The store takes a save only
	// over a lower number, so one that arrives late never moves the checkpoint
	// back within its own term.
	Number   int64
	Token    []byte
	Position contract.Position
}

// Store keeps checkpoints. Every call is one atomic step, acknowledged by a
// majority. An error that is not ErrSuperseded leaves the outcome unknown.
type Store interface {
	// Claim raises the stream's term by one and returns the checkpoint. It
	// creates the checkpoint, with term 1, where there is none.
	Claim(ctx context.Context, stream, owner string) (Checkpoint, error)
	// Pin sets where the stream starts, unless that or a token is there already,
	// and returns the checkpoint. ErrSuperseded when term is not the stream's.
	Pin(ctx context.Context, stream string, term int64, start ClusterTime) (Checkpoint, error)
	// Save moves the checkpoint. ErrSuperseded when term is not the stream's.
	Save(ctx context.Context, stream string, term int64, progress Progress) error
}

// Claimed is a checkpoint that this process may move, until it is superseded.
// It is for one goroutine.
type Claimed struct {
	Checkpoint
	store Store
	saves int64
}

// Claim claims the stream's checkpoint for owner.
func Claim(ctx context.Context, store Store, stream, owner string) (*Claimed, error) {
	found, err := store.Claim(ctx, stream, owner)
	if err != nil {
		return nil, fmt.Errorf("claim checkpoint %q: %w", stream, err)
	}
	return &Claimed{Checkpoint: found, store: store}, nil
}

// Pinned reports whether the stream's starting point is decided.
func (c *Claimed) Pinned() bool { return c.Token != nil || !c.Start.IsZero() }

// Pin decides where the stream starts, unless that is decided already.
func (c *Claimed) Pin(ctx context.Context, start ClusterTime) error {
	found, err := c.store.Pin(ctx, c.Stream, c.Term, start)
	if err != nil {
		return fmt.Errorf("pin the start of checkpoint %q in term %d: %w", c.Stream, c.Term, err)
	}
	c.Checkpoint = found
	return nil
}

// Save moves the checkpoint. After an error that is not ErrSuperseded it may be
// called again, with this progress or a later one.
func (c *Claimed) Save(ctx context.Context, token []byte, position contract.Position) error {
	c.saves++
	err := c.store.Save(ctx, c.Stream, c.Term, Progress{Number: c.saves, Token: token, Position: position})
	if err != nil {
		return fmt.Errorf("save checkpoint %q in term %d: %w", c.Stream, c.Term, err)
	}
	c.Token, c.Position = token, position
	return nil
}
