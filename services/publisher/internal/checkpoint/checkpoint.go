// Package checkpoint keeps how far a stream has been published, so that it can
// be moved by one term only.
//
// A leader first claims the checkpoint: that raises the term and returns the
// document, both in one atomic step, and only that document says where to go
// on. Every later save names the term, and the store refuses it when the term
// was raised since. So a leader that lost its lease without knowing cannot
// move the checkpoint, however late its write arrives.
//
// The term lives here and not in the lease, because lease records may vanish. A
// checkpoint may vanish, too, or be restored from a backup; so each stream has a
// Record apart from it, which says that there was a checkpoint and how high its
// terms were, and a checkpoint that does not go with its record is not used.
// Beside the term, a claim has a name of its own: should a term ever be given
// out twice all the same, a save of the one is no save of the other. And each
// save says how many of its claim are known to be kept: over a checkpoint that
// has fewer, one restored from a backup, nothing is saved.
package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"changerelay/pkg/contract"
)

// ErrSuperseded is returned when a later term has claimed the checkpoint. It is
// final: the same save can never succeed.
var ErrSuperseded = errors.New("superseded by a later term")

// ErrMissing is returned by a claim that may not make a checkpoint where there
// is none.
var ErrMissing = errors.New("there is no checkpoint")

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
	// Anew says that an operator gave the place up: the stream begins where its
	// configuration says, as a new one does.
	Anew bool
}

// Time is the place on the source's clock; zero where there is none.
func (p Place) Time() ClusterTime {
	if seconds, increment, err := p.Position.ClusterTime(); err == nil {
		return ClusterTime{Seconds: seconds, Increment: increment}
	}
	return p.Start
}

// Before reports whether a stream that goes on at the other place passes over
// something that it would not from this one. Changes of one transaction have one
// time: there positions decide, and a place without one is before all of them.
func (p Place) Before(other Place) bool {
	if from, to := p.Time(), other.Time(); from != to {
		return from.Before(to)
	}
	return p.Position < other.Position
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
	// Order names what the copy goes along, so that After is a place in it; empty
	// where a release before this one began the copy.
	Order string
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

// Reaches is the time back to which the copy goes. What it copies whole may be of
// any time: then it is the beginning of time, 1970.
func (c Copy) Reaches() time.Time {
	if c.Since.IsZero() {
		return time.Unix(0, 0).UTC()
	}
	return c.Since
}

// Checkpoint is how far a stream has been published.
type Checkpoint struct {
	Stream string
	// Term is the term that may move the checkpoint.
	Term int64
	// Claim names the claim that began the term.
	Claim string
	// Retired says that the stream has other checkpoints now; its term is above
	// every claim.
	Retired bool
	Place
	// Options stands for the options of the stream that the token is of; empty
	// where none were recorded.
	Options string
	// UpdatedAt is when the checkpoint was last saved, by the server's clock.
	UpdatedAt time.Time
	// Saves is the number of the claim's last save.
	Saves int64
	// Moved names the last move that was announced before it was made; empty where
	// none was.
	Moved string
}

// Under returns ErrOptionsChanged where the checkpoint is of other options of the
// stream than these.
func (c *Checkpoint) Under(options string) error {
	if (c.Token != nil || c.Copying()) && c.Options != "" && c.Options != options {
		return fmt.Errorf("checkpoint %q in term %d has options %s, the configuration %s: %w",
			c.Stream, c.Term, c.Options, options, ErrOptionsChanged)
	}
	return nil
}

// Progress is what a save writes.
type Progress struct {
	// Number counts the saves of one term from 1. The store takes a save only
	// over a lower number, so one that arrives late never moves the checkpoint
	// back within its own term.
	Number int64
	// Claim is that of the checkpoint as it was claimed; empty is any.
	Claim string
	// Behind is the highest number that is known to be kept: a checkpoint that has
	// a lower one is not the one that was saved.
	Behind int64
	// Mark says that the place stays as it is, and the save is counted alone.
	Mark bool
	// Moved names the move, where it was announced; empty leaves the name as it is.
	Moved string
	Place
	Options string
}

// Claimant is who claims a checkpoint.
type Claimant struct {
	Owner string
	// Above is a term that the new one must be above.
	Above int64
	// Create says that there may be no checkpoint yet.
	Create bool
}

// Store keeps checkpoints. Every call is one atomic step, acknowledged by a
// majority. An error that is not ErrSuperseded leaves the outcome unknown.
type Store interface {
	// Claim raises the stream's term by one, or to one above the claimant's, and
	// returns the checkpoint. Where there is none, or a retired one, it creates
	// it, or returns ErrMissing, as the claimant says.
	Claim(ctx context.Context, stream string, by Claimant) (Checkpoint, error)
	// Pin sets where the stream starts, unless that or a token is there already,
	// and returns the checkpoint. ErrSuperseded when term is not the stream's, or
	// the checkpoint is retired.
	Pin(ctx context.Context, stream string, term int64, start Place) (Checkpoint, error)
	// Save moves the checkpoint to a place, and leaves nothing of the place before.
	// ErrSuperseded when term is not the stream's, or its claim another, or the
	// checkpoint is retired, or has fewer saves than are known to be kept.
	Save(ctx context.Context, stream string, term int64, progress Progress) error
}

// ErrOptionsChanged is returned when the stream's options are not those under
// which the checkpoint's token was given out.
var ErrOptionsChanged = errors.New("the options of the stream have changed since its checkpoint was saved")

// Claimed is a checkpoint that this process may move, until it is superseded.
// It is for one goroutine, but for Mark and Acknowledged.
type Claimed struct {
	Checkpoint
	store Store

	mu    sync.Mutex
	saves int64 // guarded by mu: the number of the last save
	kept  int64 // guarded by mu: the highest number that was acknowledged
}

// Claim claims the stream's checkpoint.
func Claim(ctx context.Context, store Store, stream string, by Claimant) (*Claimed, error) {
	found, err := store.Claim(ctx, stream, by)
	if err != nil {
		return nil, fmt.Errorf("claim checkpoint %q: %w", stream, err)
	}
	return &Claimed{Checkpoint: found, store: store}, nil
}

// Adopt says under which options the stream is read from here on. A server may
// refuse a token under other options, or skip changes in silence, and the rest of
// a copy would be that of another source; so where the checkpoint has others it
// changes nothing and returns ErrOptionsChanged.
func (c *Claimed) Adopt(options string) error {
	if err := c.Under(options); err != nil {
		return err
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
	return c.MoveAs(ctx, "", to)
}

// MoveAs is a Move of a name, which stays in the checkpoint: whoever claims it next
// knows from there whether a move that was announced was made.
func (c *Claimed) MoveAs(ctx context.Context, name string, to Place) error {
	if err := c.save(ctx, Progress{Place: to, Options: c.Options, Moved: name}); err != nil {
		return err
	}
	c.Place = to
	return nil
}

// Mark counts a save, and leaves the place as it is. After it, a checkpoint that
// is restored from before takes no save of this claim: what was kept elsewhere
// before the mark, and is not in the backup, is not passed over.
func (c *Claimed) Mark(ctx context.Context) error {
	return c.save(ctx, Progress{Mark: true})
}

func (c *Claimed) save(ctx context.Context, progress Progress) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.saves++
	progress.Number, progress.Claim, progress.Behind = c.saves, c.Claim, c.kept
	if err := c.store.Save(ctx, c.Stream, c.Term, progress); err != nil {
		return fmt.Errorf("save checkpoint %q in term %d: %w", c.Stream, c.Term, err)
	}
	c.kept = progress.Number
	return nil
}

// Acknowledged is the number of the last save that is known to be kept.
func (c *Claimed) Acknowledged() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.kept
}

// WentBack reports whether a checkpoint is this one as it was before a save that
// was acknowledged before the checkpoint was read.
func (c *Claimed) WentBack(read Checkpoint, acknowledged int64) bool {
	return read.Term == c.Term && read.Claim == c.Claim && read.Saves < acknowledged
}
