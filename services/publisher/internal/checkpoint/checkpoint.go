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

// Before reports whether the time is earlier than another.
func (t ClusterTime) Before(other ClusterTime) bool {
	return t.Seconds < other.Seconds || t.Seconds == other.Seconds && t.Increment < other.Increment
}

// Time is the time to the second.
func (t ClusterTime) Time() time.Time { return time.Unix(int64(t.Seconds), 0).UTC() }

// Place is where a stream goes on: after a token; or, where there is none, at a
// cluster time; or with a copy, and after it at that time.
type Place struct {
	// Token is the resume token, a BSON document, of the last change up to which
	// everything is published; nil before the first save.
	Token []byte
	// Position is where that change stands; empty before the first save.
	Position contract.Position
	// Start is where the stream begins while there is no token; zero until pinned.
	Start ClusterTime
	// Copy is the copy that comes, or came, before Start; nil where there is none.
	Copy *Copy
}

// Pinned reports whether it is decided where the stream goes on.
func (p Place) Pinned() bool { return p.Token != nil || !p.Start.IsZero() }

// Copying reports whether a copy has to be made before the stream is read.
func (p Place) Copying() bool { return p.Token == nil && p.Copy != nil && !p.Copy.Done }

// Copy is a copy of what the source holds, and how far it has come.
type Copy struct {
	// Cause is why it is made, for people.
	Cause string
	// Since leaves out what was written before; zero copies everything.
	Since time.Time
	// After is the key of the last document copied, as package backfill writes it;
	// nil before the first.
	After []byte
	// Copied counts the documents up to there.
	Copied int64
	// Total is how many there were at the beginning, an estimate; 0 is unknown.
	Total int64
	// BeganAt is when it began, by the clock of whoever began it.
	BeganAt time.Time
	// Done says that it is complete, and the stream not yet read past Start.
	Done bool
}

// Checkpoint is how far a stream has been published.
type Checkpoint struct {
	Stream string
	// Term is the term that may move the checkpoint.
	Term int64
	Place
	// Options stands for the options of the stream that the token is of; empty
	// where none were recorded.
	Options string
	// UpdatedAt is when the checkpoint was last saved, by the server's clock.
	UpdatedAt time.Time
}

// Progress is what a save writes.
type Progress struct {
	// Number counts the saves of one term from 1. The store takes a save only
	// over a lower number, so one that arrives late never moves the checkpoint
	// back within its own term.
	Number int64
	Place
	Options string
}

// Store keeps checkpoints. Every call is one atomic step, acknowledged by a
// majority. An error that is not ErrSuperseded leaves the outcome unknown.
type Store interface {
	// Claim raises the stream's term by one and returns the checkpoint. It
	// creates the checkpoint, with term 1, where there is none.
	Claim(ctx context.Context, stream, owner string) (Checkpoint, error)
	// Pin sets where the stream starts, unless that or a token is there already,
	// and returns the checkpoint. ErrSuperseded when term is not the stream's.
	Pin(ctx context.Context, stream string, term int64, start Place) (Checkpoint, error)
	// Save moves the checkpoint to a place, and leaves nothing of the place before.
	// ErrSuperseded when term is not the stream's.
	Save(ctx context.Context, stream string, term int64, progress Progress) error
}

// ErrOptionsChanged is returned when the stream's options are not those under
// which the checkpoint's token was given out.
var ErrOptionsChanged = errors.New("the options of the stream have changed since its checkpoint was saved")

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

// Adopt says under which options the stream is read from here on. A server may
// refuse a token under other options, or skip changes in silence; so where the
// checkpoint has others it changes nothing and returns ErrOptionsChanged.
func (c *Claimed) Adopt(options string) error {
	if c.Token != nil && c.Options != "" && c.Options != options {
		return fmt.Errorf("checkpoint %q in term %d has options %s, the configuration %s: %w",
			c.Stream, c.Term, c.Options, options, ErrOptionsChanged)
	}
	c.Options = options
	return nil
}

// Pin decides where the stream starts, unless that is decided already.
func (c *Claimed) Pin(ctx context.Context, start Place) error {
	found, err := c.store.Pin(ctx, c.Stream, c.Term, start)
	if err != nil {
		return fmt.Errorf("pin the start of checkpoint %q in term %d: %w", c.Stream, c.Term, err)
	}
	c.Place = found.Place
	return nil
}

// Save moves the checkpoint behind a change. After an error that is not
// ErrSuperseded it may be called again, with this progress or a later one.
func (c *Claimed) Save(ctx context.Context, token []byte, position contract.Position) error {
	return c.Move(ctx, Place{Token: token, Position: position})
}

// Move moves the checkpoint to any place, under the same rules.
func (c *Claimed) Move(ctx context.Context, to Place) error {
	c.saves++
	err := c.store.Save(ctx, c.Stream, c.Term, Progress{Number: c.saves, Place: to, Options: c.Options})
	if err != nil {
		return fmt.Errorf("save checkpoint %q in term %d: %w", c.Stream, c.Term, err)
	}
	c.Place = to
	return nil
}
