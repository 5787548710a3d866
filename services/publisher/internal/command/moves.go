package command

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/pkg/contract"
	"changerelay/services/publisher/internal/changestream"
	"changerelay/services/publisher/internal/checkpoint"
	"changerelay/services/publisher/internal/cli"
	"changerelay/services/publisher/internal/config"
	"changerelay/services/publisher/internal/mongostate"
)

// moveSet moves a stream's checkpoints, beside mongostate.Reset and Accept.
const moveSet = "set"

// moveFlags are the arguments of a command that decides where a stream goes on.
type moveFlags struct {
	why, who   string
	force, dry bool
	// fresh says that nothing may be known of the stream.
	fresh bool
	// giveUp says that a copy under way is not to be finished.
	giveUp bool
	// partition is which of them it is about: a number, all, or empty.
	partition string
}

// setCheckpoint moves the stream's checkpoints to a time or a position.
func setCheckpoint(ctx context.Context, call Call, m moveFlags, to string) error {
	place, err := parsePlace(to)
	if err != nil {
		return cli.Usagef("checkpoint set: %q is neither an RFC 3339 time nor a position of a change nor a resume token: %w", to, err)
	}
	return moveCheckpoints(ctx, call, moveSet, m, &place)
}

// resetCheckpoint forgets where the stream's checkpoints are: START_AT decides.
func resetCheckpoint(ctx context.Context, call Call, m moveFlags) error {
	return moveCheckpoints(ctx, call, mongostate.Reset, m, &checkpoint.Place{Anew: true})
}

var (
	errCopied = errors.New("it is the position of a copied document, which no change stream can go on from")
	errCutOff = errors.New("its token is not complete: take the whole position")
)

func parsePlace(text string) (checkpoint.Place, error) {
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		seconds, err := config.ClusterSeconds(at)
		return checkpoint.Place{Start: checkpoint.ClusterTime{Seconds: seconds}}, err
	}
	if token := parseToken(text); token != nil {
		return checkToken(token, changestream.PositionOf(token))
	}
	position := contract.Position(text)
	if _, _, err := position.ClusterTime(); err != nil {
		return checkpoint.Place{}, err
	}
	_, data, _ := strings.Cut(text, ".")
	token, err := bson.Marshal(bson.D{{Key: "_data", Value: data}})
	if err != nil {
		return checkpoint.Place{}, err
	}
	return checkToken(token, position)
}

// parseToken reads a resume token as drivers print it: {"_data": "82…"}, or what is in
// there alone; nil where it is none.
func parseToken(text string) bson.Raw {
	var token struct {
		Data string `bson:"_data"`
	}
	if err := bson.UnmarshalExtJSON([]byte(text), false, &token); err != nil {
		token.Data = text
	}
	raw, err := bson.Marshal(bson.D{{Key: "_data", Value: token.Data}})
	if err != nil || changestream.PositionOf(raw) == "" {
		return nil
	}
	return raw
}

// checkToken is the place behind a token of that position.
func checkToken(token bson.Raw, position contract.Position) (place checkpoint.Place, err error) {
	switch {
	case changestream.PositionOf(token) != changestream.Unsplit(position):
		err = errCopied
	case !changestream.Whole(position):
		err = errCutOff
	}
	return checkpoint.Place{Token: token, Position: changestream.PositionOf(token)}, err
}

// deciding is one call of a command that decides where a stream goes on.
type deciding struct {
	moveFlags
	call   Call
	action string
	to     *checkpoint.Place
	state  *mongostate.Database
	scope  mongostate.Scope
	origin checkpoint.Origin
	// options stand for those of the stream by the settings, and now is the
	// source's time.
	options string
	now     checkpoint.ClusterTime
	// together is the place from which all partitions go on where they come to carry
	// other aggregates than they did: nil where they do not.
	together *checkpoint.Place
}

// moveCheckpoints decides for the checkpoints that are chosen. It refuses while a
// publisher leads that does not wait for an operator, unless it is told to go
// on by the term alone.
func moveCheckpoints(ctx context.Context, call Call, action string, m moveFlags, to *checkpoint.Place) error {
	d := &deciding{moveFlags: m, call: call, action: action, to: to}
	if err := d.askSource(ctx); err != nil {
		return redacted(call.Config, fmt.Errorf("checkpoint %s: %w", action, err))
	}
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	return withState(ctx, call.Config, func(state *mongostate.Database) (err error) {
		c := call.Config
		d.state = state
		if d.scope, err = state.Scope(ctx, c.StreamName, c.LeaseName); err != nil {
			return err
		}
		if err := d.scope.Check(d.said()); err != nil && (!m.fresh || len(d.scope.Partitions()) > 0) {
			return err
		}
		if err := d.reroute(); err != nil {
			return err
		}
		names, leftAlone, err := d.chosen()
		if err != nil {
			return err
		}
		if err := d.scope.Held(leftAlone); err != nil && !m.force {
			return fmt.Errorf("%w; or give --force, and the leader goes on from the new place", err)
		}
		for _, name := range names { // all are looked at before the first is changed
			if err := d.check(name); err != nil {
				return err
			}
		}
		if err := d.open(ctx, names); err != nil {
			return err
		}
		for _, name := range names {
			if err := d.decide(ctx, name); err != nil {
				return err
			}
		}
		return nil
	})
}

// said is what the settings must say of the stream. To accept, or to begin anew,
// takes over what makes it another.
func (d *deciding) said() mongostate.Said {
	said := d.call.Config.Said()
	if d.action != moveSet {
		said.Settings = nil
	}
	return said
}

// reroute finds out whether what is accepted lets other partitions carry the
// stream's aggregates than did. Then all go on from where the one stands that is
// least far: a change between two of their places, which the one has left to the
// other, would be sent by neither. It is so, too, where nothing says what they
// carried.
func (d *deciding) reroute() error {
	if d.action != mongostate.Accept || !d.call.Config.Partitioned() {
		return nil
	}
	known, rerouted := false, false
	for _, record := range d.scope.Records {
		known = known || len(record.Settings) > 0
		rerouted = rerouted || len(record.Rerouted(d.call.Config.Identity())) > 0
	}
	if known && !rerouted {
		return nil
	}
	least, err := d.scope.LeastFar(d.call.Config.Partitions)
	if err != nil {
		return fmt.Errorf("all partitions go on together, as they come to carry other aggregates: %w", err)
	}
	d.together = &least.Place
	if at := least.Time(); !at.IsZero() { // tokens may be of other options
		d.together = &checkpoint.Place{Start: at}
	}
	return nil
}

// askSource asks what the source is, and refuses a place after its clock, and a
// token that it does not take. Only that may take longer than a command does: as long as
// the source needs to find the token's place.
func (d *deciding) askSource(ctx context.Context) error {
	client, disconnect, err := connectSource(ctx, d.call.Config)
	if err != nil {
		return err
	}
	defer disconnect()
	source := d.call.Config.Stream(client)
	asking, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	if d.origin, err = source.Identify(asking); err != nil {
		return err
	}
	if d.options, err = source.Fingerprint(); err != nil {
		return err
	}
	if d.now, err = changestream.Latest(asking, client); err != nil || d.to == nil {
		return err
	}
	if err := d.refuseFuture(*d.to); err != nil {
		return err
	}
	if d.to.Token == nil {
		return nil
	}
	return tryPosition(ctx, d.call, source, *d.to)
}

// refuseFuture refuses a place after the source's clock.
func (d *deciding) refuseFuture(place checkpoint.Place) error {
	if at := place.Time(); d.now.Before(at) {
		return fmt.Errorf("the place, %s, is after the source's clock, %s: a stream that waits there passes over all that is written until then",
			at.Time().Format(time.RFC3339), d.now.Time().Format(time.RFC3339))
	}
	return nil
}

// check refuses what must not be decided about one checkpoint.
func (d *deciding) check(name string) error {
	record, kept := d.scope.Records[name], d.scope.Checkpoints[name]
	if len(d.acceptable([]string{name})) == 0 {
		return fmt.Errorf("checkpoint %q has no place to accept: use publisher checkpoint set PLACE --why TEXT or publisher checkpoint reset --why TEXT", name)
	}
	if d.action == mongostate.Accept {
		if err := d.refuseFuture(kept.Place); err != nil {
			return fmt.Errorf("checkpoint %q: %w; move it back with publisher checkpoint set PLACE", name, err)
		}
	}
	if d.action == mongostate.Accept && kept.Copying() {
		others := record.Changed(d.call.Config.Identity(), checkpoint.Another)
		if kept.Copy.Order != "" && kept.Copy.Order != d.call.Config.CopyOrder(kept.Copy.Since) || kept.Options != "" && kept.Options != d.options || len(others) > 0 {
			return fmt.Errorf("checkpoint %q is in the middle of a copy under other settings, whose rest cannot be made with these: "+
				"restore them until it is complete, or begin anew with publisher checkpoint reset", name)
		}
	}
	if other := record.Source.OtherCluster(d.origin); other != "" && d.action == moveSet {
		return fmt.Errorf("%s, where places are others: check MONGODB_URI, or use publisher checkpoint reset", other)
	}
	return d.move(name).Refuse(kept.Place)
}

// move is what is done to one checkpoint.
func (d *deciding) move(name string) mongostate.Move {
	record, kept := d.scope.Records[name], d.scope.Checkpoints[name]
	move := mongostate.Move{
		Stream: name, Action: d.action, Who: d.who, Why: d.why, Forced: d.force, At: time.Now(),
		To: d.to, GiveUpCopy: d.giveUp, KeepOptions: d.to == nil || d.to.Token != nil,
		Source: record.Source.With(d.origin), Settings: record.Accepting(d.call.Config.Identity()),
	}
	switch d.action {
	case mongostate.Reset: // those of the publisher that begins anew
		move.Source, move.Settings = checkpoint.Origin{}, nil
	case mongostate.Accept:
		move.AtTime = kept.Token != nil && kept.Options != "" && kept.Options != d.options
		move.KeepOptions = kept.Token != nil && !move.AtTime
		move.Accepted = d.accepted(record)
		if kept.Copying() { // of a collection that is gone, no rest is waited for
			maps.DeleteFunc(move.Source.Collections, func(name, _ string) bool { return d.origin.Collections[name] == "" })
		}
		if d.together != nil {
			move.To, move.AtTime, move.KeepOptions = d.together, false, false
		}
	}
	return move
}

// accepted is the time up to which changes to collections are accepted: that of
// the one that the stream stands before; or where a collection was found to be
// another one, the present, as the change that made it so is yet to be read.
func (d *deciding) accepted(record checkpoint.Record) checkpoint.ClusterTime {
	if record.Source.OtherCollections(d.origin) != "" {
		return d.now
	}
	var stopped checkpoint.ClusterTime
	for _, record := range d.scope.Records {
		if stopped.Before(record.Stopped) {
			stopped = record.Stopped
		}
	}
	return stopped
}

// decide decides about one checkpoint, and prints what it does.
func (d *deciding) decide(ctx context.Context, name string) error {
	before, exists := d.scope.Checkpoints[name]
	before.Stream = name
	move, after := d.move(name), before
	if after.Place = move.Place(before.Place); !move.KeepOptions {
		after.Options = ""
	}
	view := MoveView{Action: d.action, DryRun: d.dry, Before: viewOf(before, exists), After: viewOf(after, true)}
	view.Accepts = d.accepts(name)
	if d.dry {
		return printView(d.call.Stdout, d.call.JSON, view)
	}
	moved, err := d.state.MoveCheckpoint(ctx, move)
	if err != nil {
		return err
	}
	view.Before.Term, view.After.Term = before.Term, moved.Term
	return printView(d.call.Stdout, d.call.JSON, view)
}

// accepts says what is accepted with a decision, for people.
func (d *deciding) accepts(name string) []string {
	if d.action != mongostate.Accept {
		return nil
	}
	record := d.scope.Records[name]
	var all []string
	changed := strings.Join(record.Changed(d.call.Config.Identity(), checkpoint.Another), ", ")
	for _, what := range []string{record.Halt, record.Source.OtherCluster(d.origin), record.Source.OtherCollections(d.origin), changed} {
		if what != "" {
			all = append(all, what)
		}
	}
	return all
}

// open makes the records that are not there: of a stream that is older than
// records, or of one of which nothing is left. Their terms are above all that are
// known, and all are there before the first is decided about. A record without a
// place lets no publisher begin until that is decided.
func (d *deciding) open(ctx context.Context, names []string) error {
	if d.dry {
		return nil
	}
	c := d.call.Config
	given, err := d.state.HighestTerm(ctx, c.StreamName)
	if err != nil {
		return err
	}
	confirmed := max(given, d.scope.Highest)
	// Of terms that were given out since, nothing may be left: there were fewer of
	// them than seconds since 1970.
	term := max(confirmed, time.Now().Unix())
	for _, name := range names {
		if _, known := d.scope.Records[name]; known {
			continue
		}
		_, err := d.state.Streams().Open(ctx, checkpoint.Record{
			Stream: name, Whole: c.StreamName, Lease: c.LeaseName, Partitions: c.Partitions, Term: term, Confirmed: confirmed, Undecided: true,
			Began: checkpoint.Beginning{How: checkpoint.Adopted, Place: d.scope.Checkpoints[name].Place, Present: -1, At: time.Now().UTC(), By: d.who},
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// MoveView is what a command says that decides where a stream goes on.
type MoveView struct {
	Action string `json:"action"`
	// DryRun says that nothing was changed.
	DryRun bool           `json:"dry_run,omitempty"`
	Before CheckpointView `json:"before"`
	After  CheckpointView `json:"after"`
	// Accepts is what accept lets the stream go on over.
	Accepts []string `json:"accepts,omitempty"`
}
