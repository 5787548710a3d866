// Package checkpoint keeps how far a stream has been published. Only one term
// can move it.
//
// A leader first claims the checkpoint: that raises the term and returns the
// document, both in one atomic step, and only that document says where to go
// on. Every later save names the term, and the store refuses it when the term
// was raised since. So a leader that lost its lease without knowing cannot
// move the checkpoint, however late its write arrives.
//
// The term lives here and not in the lease, because lease records may vanish. A
// checkpoint may vanish, too, or be restored from a backup. So each stream has a
// separate Record, which says that there was a checkpoint and how high its terms
// were, and a checkpoint that does not match its record is not used.
//
// Two more things guard a save. Each claim has a name of its own beside the term:
// should a term be given out twice after all, the saves of one claim cannot pass for
// those of the other. And each save says how many saves of its claim are known to be
// stored: a checkpoint with fewer was restored from a backup, and the save is refused.
package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"slices"
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

// MaxNames is how many of the changes that are counted have their names kept, too.
const MaxNames = 1000

// Names are the ids of the last changes that were counted and not purged. A number alone
// could not tell which are lost, once others were put back.
type Names struct {
	IDs []string
	// Purged is how many had been purged when that was so. Where it is another number
	// by now, somebody has purged who knows nothing of names, and they say nothing.
	Purged int64
}

// Naming is how a mark changes names: All replaces them, where that is not nil; otherwise
// Drop is removed and Add appended. A name that is added again stays there once.
type Naming struct {
	All       *Names
	Add, Drop []string
}

// Of are the names after it.
func (n Naming) Of(before *Names) *Names {
	if n.All != nil || before == nil {
		return n.All
	}
	ids := slices.DeleteFunc(slices.Clone(before.IDs), func(id string) bool {
		return slices.Contains(n.Drop, id) || slices.Contains(n.Add, id)
	})
	ids = append(ids, n.Add...)
	return &Names{IDs: ids[max(0, len(ids)-MaxNames):], Purged: before.Purged}
}

// None reports whether it leaves names as they are.
func (n Naming) None() bool { return n.All == nil && len(n.Add)+len(n.Drop) == 0 }

// Aside is what a stream has kept aside because it could not be sent, from the time on
// since which such changes are counted.
type Aside struct {
	// Count is how many changes there are, with those that were removed in order.
	Count int64
	// From is the position of the first; empty where there is none.
	From contract.Position
	// Coming are changes that are about to be kept aside: whether they were is not
	// known, and none of them is counted.
	Coming []Expected
}

// Expected is a change that is about to be kept aside: its id, and where it stands.
type Expected struct {
	ID string
	At contract.Position
}

// Expects reports whether a change is named as coming.
func (a *Aside) Expects(id string) bool { return a.expects(id) >= 0 }

// expects is where an id is among those that are coming, or -1.
func (a *Aside) expects(id string) int {
	return slices.IndexFunc(a.Coming, func(one Expected) bool { return one.ID == id })
}

// Checkpoint is how far a stream has been published.
type Checkpoint struct {
	Stream string
	// Term is the term that may move the checkpoint.
	Term int64
	// Claim names the claim that began the term, and ClaimedAt is when it did, by the
	// server's clock.
	Claim     string
	ClaimedAt time.Time
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
	// Aside is what was kept aside; nil while that is not counted.
	Aside *Aside
	// Names are those of what was counted last; nil while there are none.
	Names *Names
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
	// Aside is what is kept aside, as a mark says; nil leaves it as it is.
	Aside *Aside
	// Naming is what a mark does with the names of what is counted.
	Naming Naming
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
	// returns the checkpoint. Where there is none it creates it, or returns
	// ErrMissing, as the claimant says; a retired one it leaves so, with ErrMissing
	// or ErrSuperseded.
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
// It is for one goroutine, but for Keep and Acknowledged.
type Claimed struct {
	Checkpoint
	store Store

	mu    sync.Mutex
	saves int64    // guarded by mu: the number of the last save
	kept  int64    // guarded by mu: the highest number that was acknowledged
	aside Aside    // guarded by mu: what was counted
	named []string // guarded by mu: what was counted, and is not known to be named yet
}

// Claim claims the stream's checkpoint.
func Claim(ctx context.Context, store Store, stream string, by Claimant) (*Claimed, error) {
	found, err := store.Claim(ctx, stream, by)
	if err != nil {
		return nil, fmt.Errorf("claim checkpoint %q: %w", stream, err)
	}
	return &Claimed{Checkpoint: found, store: store}, nil
}

// Adopt sets the options under which the stream is read from here on. Under other
// options a server may refuse a token, or skip changes in silence, and the rest of a copy
// would come from another source. So where the checkpoint has other options, Adopt
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

// Move moves the checkpoint to a place, as behind a change. After an error that is
// not ErrSuperseded it may be called again, with this place or a later one.
func (c *Claimed) Move(ctx context.Context, to Place) error {
	return c.MoveAs(ctx, "", to)
}

// MoveAs is a Move with a name, which stays in the checkpoint. From it the next claimant
// knows whether a move that was announced was made.
func (c *Claimed) MoveAs(ctx context.Context, name string, to Place) error {
	if err := c.save(ctx, Progress{Place: to, Options: c.Options, Moved: name}); err != nil {
		return err
	}
	c.Place = to
	return nil
}

// Count says what is kept aside, and how it is named. It is to be called before the
// first Keep.
func (c *Claimed) Count(ctx context.Context, aside Aside, naming Naming) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.aside = aside
	if was := c.Aside; was != nil && naming.None() && was.Count == aside.Count && was.From == aside.From && slices.Equal(was.Coming, aside.Coming) {
		return nil
	}
	return c.mark(ctx, naming)
}

// Expects reports whether a change is about to be kept aside, or may have been by a
// call that failed, or by an earlier claim.
func (c *Claimed) Expects(id string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.aside.Expects(id)
}

// Expect notes changes that are about to be kept aside, and are not yet. After it
// they are told from those that were counted, whatever becomes of them.
func (c *Claimed) Expect(ctx context.Context, changes ...Expected) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.aside.Coming
	fresh := slices.DeleteFunc(slices.Clone(changes), func(one Expected) bool { return c.aside.Expects(one.ID) })
	c.aside.Coming = slices.Concat(before, fresh)
	err := c.mark(ctx, Naming{})
	if err != nil {
		c.aside.Coming = before
	}
	return err
}

// Keep counts a save, and leaves the place as it is. A checkpoint that is restored from
// before it then refuses every save of this claim: so what was kept aside elsewhere, and
// is not in the backup, is not passed over. The change that was kept aside is counted if
// it was expected; any other was counted before. After an error the next call counts it.
func (c *Claimed) Keep(ctx context.Context, id string, at contract.Position) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := c.aside.expects(id); i >= 0 {
		c.aside.Coming = slices.Concat(c.aside.Coming[:i], c.aside.Coming[i+1:])
		c.aside.Count++
		c.named = append(c.named, id)
		if c.aside.From == "" || at < c.aside.From {
			c.aside.From = at
		}
	}
	return c.mark(ctx, Naming{})
}

// Leave counts a save, as Keep does, for a change that another partition has kept.
func (c *Claimed) Leave(ctx context.Context, id string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.aside.Coming = slices.DeleteFunc(slices.Clone(c.aside.Coming), func(one Expected) bool { return one.ID == id })
	return c.mark(ctx, Naming{})
}

// Miss counts out what was kept aside and is gone, of which some are known by name.
func (c *Claimed) Miss(ctx context.Context, n int64, names []string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.aside.Count -= n
	err := c.mark(ctx, Naming{Drop: names})
	if err != nil {
		c.aside.Count += n
	}
	return err
}

// Recount counts what has come back of what was counted out: found says how many are
// kept aside but for those that are coming, the position of the first, and how they are
// named. None is counted meanwhile.
func (c *Claimed) Recount(ctx context.Context, found func(coming []Expected) (Aside, Naming, error)) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	there, naming, err := found(c.aside.Coming)
	if err != nil || there.Count <= c.aside.Count && naming.None() {
		return err
	}
	before := c.aside
	if there.Count > before.Count {
		c.aside.Count = there.Count
		if before.From == "" || there.From < before.From {
			c.aside.From = there.From
		}
	}
	err = c.mark(ctx, naming)
	if err != nil {
		c.aside = before
	}
	return err
}

// mark is called with mu held. What it cannot name the next one does.
func (c *Claimed) mark(ctx context.Context, naming Naming) error {
	aside := c.aside
	if naming.All == nil {
		naming.Add = c.named
	}
	err := c.next(ctx, Progress{Mark: true, Aside: &aside, Naming: naming})
	if err == nil {
		c.named = nil
	}
	return err
}

func (c *Claimed) save(ctx context.Context, progress Progress) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.next(ctx, progress)
}

// next makes the next save. It is called with mu held.
func (c *Claimed) next(ctx context.Context, progress Progress) error {
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
