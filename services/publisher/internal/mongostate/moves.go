package mongostate

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"changerelay/services/publisher/internal/checkpoint"
)

// Reset as an action gives a checkpoint's place up. As a decision it is that of
// the ledger's entry for what the stream passes over then.
const Reset = "reset"

// Accept as an action takes over what halts the stream.
const Accept = "accept"

// Adopt as an action begins where another program has come to: nothing is passed over.
const Adopt = "adopt"

// HighestTerm is the highest term of a whole stream that the ledger or the log of
// moves tells of; 0 where none does.
func (d *Database) HighestTerm(ctx context.Context, whole string) (int64, error) {
	highest := int64(0)
	last := options.FindOne().SetSort(bson.D{{Key: "term", Value: -1}})
	for _, in := range []string{gaps, moves} {
		var found struct {
			Term int64 `bson:"term"`
		}
		err := d.db.Collection(in).FindOne(ctx, bson.D{anyPartition("stream", whole)}, last).Decode(&found)
		if err != nil && !errors.Is(err, mongo.ErrNoDocuments) {
			return 0, fmt.Errorf("look for terms of stream %q in %s: %w", whole, in, err)
		}
		highest = max(highest, found.Term)
	}
	return highest, nil
}

// Move is a change of a checkpoint by an operator.
type Move struct {
	Stream string `bson:"stream"`
	// Action is what was asked for: accept, adopt, set or reset.
	Action string `bson:"action"`
	Who    string `bson:"who"`
	Why    string `bson:"why"`
	// Forced says that it was made beside a live lease.
	Forced bool      `bson:"forced"`
	At     time.Time `bson:"at"`
	// To is the place; nil leaves it as it is.
	To *checkpoint.Place `bson:"-"`
	// AtTime begins at the time of the place that is there, and not behind its
	// token, which is of other options: what is of that time is sent again.
	AtTime bool `bson:"-"`
	// GiveUpCopy lets the place be set in the middle of a copy, whose rest is not
	// made then.
	GiveUpCopy bool `bson:"-"`
	// KeepOptions says that the place is one of the stream's options as they were
	// recorded.
	KeepOptions bool `bson:"-"`
	// Source and Settings are those of the stream from now on (checkpoint.Record.Accepting),
	// and Accepted the time up to which changes to its collections are accepted.
	Source   checkpoint.Origin      `bson:"-"`
	Settings checkpoint.Settings    `bson:"-"`
	Accepted checkpoint.ClusterTime `bson:"-"`
}

// moveAttempts is how often a move is made that a leader comes between. Each
// time the leader has lost its term, and waits longer before it claims the next.
const moveAttempts = 5

// Refuse returns an error where a checkpoint must not be moved from a place.
func (m Move) Refuse(from checkpoint.Place) error {
	if m.To == nil || m.To.Anew || m.GiveUpCopy || !from.Copying() {
		return nil
	}
	return fmt.Errorf("checkpoint %q is in the middle of a copy, %d of about %d documents: what is not copied would not be sent; "+
		"let it end, or give it up with --give-up-copy", m.Stream, from.Copy.Copied, from.Copy.Total)
}

// Place is where a move leads from a place.
func (m Move) Place(from checkpoint.Place) checkpoint.Place {
	switch {
	case m.To != nil:
		return *m.To
	case m.AtTime && !from.Time().IsZero():
		return checkpoint.Place{Start: from.Time()}
	default:
		return from
	}
}

// MoveCheckpoint decides where a stream goes on that has a record. It does so in
// a term of its own, above all that were given out: a leader that runs meanwhile
// is refused its next save, and goes on from that place in a later term. What
// was there before and what comes is in the log before it is done, and what is
// passed over in the ledger, which says so, too, where it was not done.
func (d *Database) MoveCheckpoint(ctx context.Context, move Move) (before checkpoint.Checkpoint, err error) {
	id := bson.NewObjectID()
	for range moveAttempts {
		if before, err = d.moveOnce(ctx, id, move); !errors.Is(err, checkpoint.ErrSuperseded) {
			break
		}
	}
	if err != nil {
		return before, err
	}
	if err := d.Settle(ctx, move.Stream, nameOf(id, before.Term), before.Term); err != nil {
		return before, fmt.Errorf("checkpoint %q is changed, but its log does not say so: %w", move.Stream, err)
	}
	return before, nil
}

// nameOf names one attempt to make a move.
func nameOf(id bson.ObjectID, term int64) string { return fmt.Sprint(id.Hex(), term) }

// Settle closes what was announced for a stream and is not known to be done: the
// move whose name is in the checkpoint was made, and every other of an earlier term
// was not. It is to be called by who has claimed the checkpoint in that term, since
// when no earlier move can be made, with what is in there; or by who has made the
// move. What a later term has announced may still be made, and stays open.
func (d *Database) Settle(ctx context.Context, stream, moved string, term int64) error {
	open := func(field string, value any, which ...bson.E) bson.D {
		return append(bson.D{{Key: "stream", Value: stream}, {Key: field, Value: value}}, which...)
	}
	this := bson.E{Key: "move", Value: moved}
	others := []bson.E{{Key: "move", Value: bson.D{{Key: "$ne", Value: moved}}}, {Key: "term", Value: bson.D{{Key: "$lt", Value: term}}}}
	never := "not done: who was to do it ended before that"
	for _, one := range []struct {
		in     string
		which  bson.D
		update any
	}{
		{gaps, open("unfinished", true, this), bson.D{{Key: "$unset", Value: bson.D{{Key: "unfinished", Value: ""}}}}},
		{gaps, open("unfinished", true, others...), mongo.Pipeline{
			{{Key: "$set", Value: bson.D{{Key: "decision", Value: Void}, {Key: "toTime", Value: "$fromTime"}, {Key: "error", Value: never}}}},
			{{Key: "$unset", Value: "unfinished"}},
		}},
		{moves, open("done", false, this), bson.D{
			{Key: "$set", Value: bson.D{{Key: "done", Value: true}}}, {Key: "$unset", Value: bson.D{{Key: "ended", Value: ""}}},
		}},
		{moves, append(open("done", false, others...), bson.E{Key: "ended", Value: nil}), bson.D{{Key: "$set", Value: bson.D{{Key: "ended", Value: never}}}}},
	} {
		if _, err := d.db.Collection(one.in).UpdateMany(ctx, one.which, one.update); err != nil {
			return fmt.Errorf("settle what was announced for stream %q: %w", stream, err)
		}
	}
	return nil
}

// moveOnce makes a move, unless a leader comes between.
func (d *Database) moveOnce(ctx context.Context, id bson.ObjectID, move Move) (before checkpoint.Checkpoint, err error) {
	record, err := d.Streams().Raise(ctx, move.Stream, 0)
	if err != nil {
		return before, err
	}
	claimed, err := checkpoint.Claim(ctx, d.Checkpoints(), move.Stream, checkpoint.Claimant{
		Owner: move.Who, Above: record.Term - 1, Create: move.To != nil,
	})
	if err != nil {
		return before, err
	}
	before = claimed.Checkpoint
	if err := d.Settle(ctx, move.Stream, before.Moved, before.Term); err != nil {
		return before, err
	}
	if err := move.Refuse(before.Place); err != nil {
		return before, err
	}
	to, name := move.Place(before.Place), nameOf(id, before.Term)
	_, err = d.db.Collection(moves).ReplaceOne(ctx, bson.D{{Key: "_id", Value: id}}, struct {
		Move   `bson:",inline"`
		Term   int64  `bson:"term"`
		Before bson.D `bson:"before"`
		After  bson.D `bson:"after"`
		Name   string `bson:"move"`
		Done   bool   `bson:"done"`
	}{Move: move, Name: name, Term: before.Term, Before: fields(before.Place), After: fields(to)}, options.Replace().SetUpsert(true))
	if err != nil {
		return before, fmt.Errorf("log the change of checkpoint %q: %w", move.Stream, err)
	}
	gap := move.passesOver(before, to, record)
	ledger := d.Gaps(move.Stream)
	if gap != nil {
		gap.What = name // an attempt that was not made stays void
		if err := ledger.Announce(ctx, *gap, name); err != nil {
			return before, err
		}
	}
	switch {
	case !move.KeepOptions:
		claimed.Options = ""
	case claimed.Options == "":
		claimed.Options = record.Options // the checkpoint was lost, and with it what it said
	}
	if before.Anew && !to.Anew {
		if err := ledger.GoOn(ctx, Reset, to.Time().Time()); err != nil {
			return before, err
		}
	}
	if err := claimed.MoveAs(ctx, name, to); err != nil {
		if gap != nil && errors.Is(err, checkpoint.ErrSuperseded) { // after any other error it may be done
			err = errors.Join(err, ledger.Void(context.WithoutCancel(ctx), *gap, err))
		}
		return before, err
	}
	if gap != nil {
		if err := ledger.Made(ctx, *gap); err != nil {
			return before, err
		}
	}
	kept, err := d.Streams().Decide(ctx, move.Stream, Decision{
		Term: claimed.Term, Source: move.Source, Settings: move.Settings, Accepted: move.Accepted,
	})
	if err == nil && !kept && move.Action == Accept { // what is accepted is in the record alone
		err = fmt.Errorf("keep what is accepted of stream %q: %w", move.Stream, checkpoint.ErrSuperseded)
	}
	return before, err
}

// passesOver is the ledger's entry for what a move leaves out: all from where the
// checkpoint stood, or where the stream began if that is not known, to where it
// goes on. After a reset that is known when the stream begins anew. Where a
// stream becomes another in its place, the entry says so. Nil is for nothing.
func (m Move) passesOver(before checkpoint.Checkpoint, to checkpoint.Place, record checkpoint.Record) *Gap {
	from := before.Place
	if !from.Pinned() {
		from = record.Began.Place
	}
	gap := &Gap{
		From: string(from.Position), FromTime: from.Time().Time(), ToTime: to.Time().Time(), Cause: "checkpoint " + m.Action, Error: m.Why,
		Decision: m.Action, At: m.At, Instance: m.Who, Term: before.Term,
	}
	if to.Anew {
		gap.ToTime = time.Time{}
	}
	changed := record.Changed(m.Settings, checkpoint.Another)
	switch {
	case m.Action == Adopt:
		return nil
	case before.Anew:
		return nil // the entry of the reset says where it goes on
	case from.Copying() && m.To != nil:
		gap.FromTime = from.Copy.Reaches()
		gap.Error = fmt.Sprintf("%s (the copy is given up: %d of about %d documents are copied)", m.Why, from.Copy.Copied, from.Copy.Total)
	case to.Anew:
	case from.Before(to):
		if from.Time() == to.Time() {
			gap.Error = fmt.Sprintf("%s (at one time, of a transaction: up to %s)", m.Why, to.Position)
		}
	case len(changed) > 0:
		gap.Error = m.Why + " (" + strings.Join(changed, ", ") + ")"
	default:
		return nil
	}
	return gap
}

// fields are the fields of a place as they are stored.
func fields(place checkpoint.Place) bson.D {
	for _, part := range setPlace(place) {
		if set, ok := part.Value.(bson.D); ok && part.Key == "$set" {
			return set
		}
	}
	return bson.D{}
}
