package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/publisher/internal/changestream"
	"changerelay/services/publisher/internal/checkpoint"
	"changerelay/services/publisher/internal/cli"
	"changerelay/services/publisher/internal/config"
	"changerelay/services/publisher/internal/mongostate"
)

const (
	// usualQuiet is how long nothing must move where no lease says how long it lasts.
	usualQuiet = 15 * time.Second
	// longestQuiet bounds what a lease says.
	longestQuiet = time.Minute
)

// adoptFlags are the arguments of adopt.
type adoptFlags struct {
	why, who        string
	database, token string
	quiet           time.Duration
	atTime, dry     bool
}

func (l loader) adopt() *cobra.Command {
	var a adoptFlags
	c := &cobra.Command{
		Use: "adopt", Short: "go on with a stream from the resume token of a program that published it before",
		Long: `Go on with a stream from the resume token of a program that published it before.

It looks in the state database for leases {leaderId, heartbeatAt, expiresAt} and tokens {_id, token}, {_data}, of a
program that is not this one. Stop that program first: adopt is refused while a lease of it is live, or anything of it
moves. It takes those leases for good, so that a process that was forgotten does not lead again, makes the record and
the checkpoint of the stream, and keeps in checkpoint_log who did it.`,
	}
	flags := c.Flags()
	flags.StringVar(&a.database, "from", "", "`database` of the other program's lease and token; that of STATE_DATABASE if it is not given")
	flags.StringVar(&a.token, "token", "", "`_id` of the document with the token, where there are several")
	flags.DurationVar(&a.quiet, "quiet", 0, "how long nothing of it must move; what its lease lasts if it is not given")
	flags.BoolVar(&a.atTime, "at-time", false, "go on from the time of the token and not behind it: what is of that second is sent again")
	flags.StringVar(&a.why, "why", "", "the reason, which is kept")
	flags.StringVar(&a.who, "who", cli.Operator(), "who decides")
	flags.BoolVar(&a.dry, "dry-run", false, "say what was found and what it would do, wait for nothing, change nothing")
	c.RunE = l.run(func(ctx context.Context, call Call, _ []string) error {
		return adopt(ctx, call, a)
	})
	return c
}

// AdoptView is what was found of another program.
type AdoptView struct {
	Stream   string         `json:"stream"`
	Database string         `json:"database"`
	DryRun   bool           `json:"dry_run,omitempty"`
	Leases   []HomeMadeView `json:"leases"`
	Tokens   []HomeMadeView `json:"tokens"`
	// Takes is the token from which the stream goes on.
	Takes *HomeMadeView `json:"takes,omitempty"`
	// Unseen are the collections that are too large to be looked through.
	Unseen []string `json:"not_looked_at,omitempty"`
	// Refused is why nothing would be done now.
	Refused string `json:"refused,omitempty"`
}

// HomeMadeView is a lease or a token of another program.
type HomeMadeView struct {
	Collection  string     `json:"collection"`
	ID          string     `json:"id"`
	Leader      string     `json:"leader,omitempty"`
	Live        bool       `json:"live,omitempty"`
	Fenced      bool       `json:"taken_before,omitempty"`
	HeartbeatAt *time.Time `json:"heartbeat_at,omitempty"`
	ExpiresAt   *time.Time `json:"expires_at,omitempty"`
	Position    string     `json:"position,omitempty"`
	At          *time.Time `json:"at,omitempty"`
}

// adopting is one call of adopt.
type adopting struct {
	adoptFlags
	call  Call
	state *mongostate.Database
	home  *mongostate.Database // where the other program keeps its own
}

func adopt(ctx context.Context, call Call, flags adoptFlags) error {
	return withState(ctx, call.Config, func(state *mongostate.Database) error {
		a := &adopting{adoptFlags: flags, call: call, state: state, home: state}
		if a.database == "" {
			a.database = call.Config.StateDatabase
		}
		a.home = state.Beside(a.database)
		return a.run(ctx)
	})
}

func (a *adopting) run(ctx context.Context) error {
	found, err := a.look(ctx)
	if err != nil {
		return err
	}
	refused := a.refuse(ctx, found)
	token, chosen := a.choose(found)
	if refused == nil {
		refused = chosen
	}
	view := a.view(found, token)
	if refused != nil {
		view.Refused = refused.Error()
	}
	if a.dry || refused != nil {
		if err := printView(a.call.Stdout, a.call.JSON, view); err != nil || token == nil {
			return errors.Join(err, refused)
		}
		if refused != nil {
			return refused
		}
		return a.move(ctx, *token)
	}
	if err := a.rehearse(ctx, *token); err != nil {
		return err
	}
	if err := a.awaitQuiet(ctx, found); err != nil {
		return err
	}
	if err := a.fence(ctx, found); err != nil {
		return err
	}
	if err := a.unmoved(ctx, found); err != nil { // by one that does not ask its lease
		return err
	}
	if err := printView(a.call.Stdout, a.call.JSON, view); err != nil {
		return err
	}
	return a.move(ctx, *token)
}

func (a *adopting) look(ctx context.Context) (mongostate.HomeMade, error) {
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	return a.home.HomeMade(ctx)
}

// refuse says why nothing must be adopted now.
func (a *adopting) refuse(ctx context.Context, found mongostate.HomeMade) error {
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	c := a.call.Config
	scope, err := a.state.Scope(ctx, c.StreamName, c.LeaseName)
	if err != nil {
		return err
	}
	if len(scope.Records) > 0 {
		return fmt.Errorf("stream %q is this program's already: publisher status shows it, and publisher checkpoint set moves it", c.StreamName)
	}
	for _, l := range found.Leases {
		if l.Live() {
			return fmt.Errorf("lease %s in %s is held by %q for another %s: stop every process of that program, wait until it is over, and try again",
				idText(l.ID), l.Collection, l.Leader, l.Remaining.Round(time.Second))
		}
	}
	return nil
}

// choose is the token to go on from: the one that was named, or the only one.
func (a *adopting) choose(found mongostate.HomeMade) (*mongostate.HomeToken, error) {
	var tokens []mongostate.HomeToken
	for _, t := range found.Tokens {
		if a.token == "" || idText(t.ID) == a.token {
			tokens = append(tokens, t)
		}
	}
	switch {
	case len(tokens) == 0:
		return nil, fmt.Errorf("there is no resume token of another program in the database %q: name the database with --from, "+
			"or give the token itself to publisher checkpoint set --new", a.database)
	case len(tokens) > 1:
		return nil, fmt.Errorf("there are %d resume tokens of other programs in the database %q: choose one with --token ID", len(tokens), a.database)
	case changestream.PositionOf(tokens[0].Token) == "":
		return nil, fmt.Errorf("the resume token %s in %s is none that a change stream gives out", idText(tokens[0].ID), tokens[0].Collection)
	}
	return &tokens[0], nil
}

// awaitQuiet waits as long as a lease of the other program lasts, by whose clock it
// may be over and held still, and looks whether anything of it has moved.
func (a *adopting) awaitQuiet(ctx context.Context, found mongostate.HomeMade) error {
	quiet := a.quiet
	if quiet == 0 {
		for _, l := range found.Leases {
			quiet = max(quiet, min(l.ExpiresAt.Sub(l.HeartbeatAt), longestQuiet))
		}
		if len(found.Leases) == 0 || quiet <= 0 {
			quiet = usualQuiet
		}
	}
	fmt.Fprintf(a.call.Stderr, "looking for %s whether anything of the other program moves\n", quiet)
	timer := time.NewTimer(quiet)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
	}
	return a.unmoved(ctx, found)
}

// unmoved returns an error where a token, or a lease that is not taken, is not as it
// was found.
func (a *adopting) unmoved(ctx context.Context, before mongostate.HomeMade) error {
	now, err := a.look(ctx)
	if err != nil {
		return err
	}
	among := func(tokens []mongostate.HomeToken, t mongostate.HomeToken) bool {
		return slices.ContainsFunc(tokens, func(o mongostate.HomeToken) bool {
			return o.Collection == t.Collection && o.ID.Equal(t.ID) && bytes.Equal(o.Token, t.Token)
		})
	}
	for _, t := range now.Tokens {
		if !among(before.Tokens, t) {
			return fmt.Errorf("the resume token %s in %s has moved: a process of the other program publishes still; stop it, and try again", idText(t.ID), t.Collection)
		}
	}
	for _, t := range before.Tokens {
		if !among(now.Tokens, t) {
			return fmt.Errorf("the resume token %s in %s was there and is gone: find out what has removed it, and try again", idText(t.ID), t.Collection)
		}
	}
	for _, l := range now.Leases {
		same := func(o mongostate.HomeLease) bool {
			return o.Collection == l.Collection && o.ID.Equal(l.ID) && o.ExpiresAt.Equal(l.ExpiresAt)
		}
		if !l.Fenced && !slices.ContainsFunc(before.Leases, same) {
			return fmt.Errorf("the lease %s in %s was renewed by %q: stop that process, and try again", idText(l.ID), l.Collection, l.Leader)
		}
	}
	return nil
}

// fence takes the leases of the other program. One that is the stream's own is taken by
// whoever leads the stream.
func (a *adopting) fence(ctx context.Context, found mongostate.HomeMade) error {
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	c := a.call.Config
	for _, l := range found.Leases {
		name, _ := l.ID.StringValueOK()
		own := a.database == c.StateDatabase && slices.Contains(mongostate.PartitionNames(c.LeaseName, c.Partitions), name)
		if l.Fenced || own {
			continue
		}
		if err := a.home.Fence(ctx, l, "publisher adopt by "+a.who); err != nil {
			return err
		}
	}
	return nil
}

// rehearse asks whether the stream can go on from the token, before anything is taken.
func (a *adopting) rehearse(ctx context.Context, from mongostate.HomeToken) error {
	silent := *a
	silent.dry, silent.call.Stdout = true, io.Discard
	return silent.move(ctx, from)
}

// move makes the record and the checkpoint.
func (a *adopting) move(ctx context.Context, from mongostate.HomeToken) error {
	why := fmt.Sprintf("adopted from %s of %s.%s", idText(from.ID), a.database, from.Collection)
	if a.why != "" {
		why += ": " + a.why
	}
	to := placeOf(from.Token)
	if a.atTime {
		to = checkpoint.Place{Start: to.Time()}
	}
	return moveCheckpoints(ctx, a.call, mongostate.Adopt, moveFlags{why: why, who: a.who, fresh: true, dry: a.dry, partition: allPartitions}, &to)
}

func placeOf(token bson.Raw) checkpoint.Place {
	return checkpoint.Place{Token: token, Position: changestream.PositionOf(token)}
}

func (a *adopting) view(found mongostate.HomeMade, takes *mongostate.HomeToken) AdoptView {
	view := AdoptView{
		Stream: a.call.Config.StreamName, Database: a.database, DryRun: a.dry, Unseen: found.Unseen,
		Leases: []HomeMadeView{}, Tokens: []HomeMadeView{},
	}
	for _, l := range found.Leases {
		one := HomeMadeView{Collection: l.Collection, ID: idText(l.ID), Leader: l.Leader, Live: l.Live(), Fenced: l.Fenced, ExpiresAt: &l.ExpiresAt}
		if !l.HeartbeatAt.IsZero() {
			one.HeartbeatAt = &l.HeartbeatAt
		}
		view.Leases = append(view.Leases, one)
	}
	for _, t := range found.Tokens {
		view.Tokens = append(view.Tokens, viewOfToken(t))
	}
	if takes != nil {
		one := viewOfToken(*takes)
		view.Takes = &one
	}
	return view
}

func viewOfToken(t mongostate.HomeToken) HomeMadeView {
	place := placeOf(t.Token)
	view := HomeMadeView{Collection: t.Collection, ID: idText(t.ID), Position: string(place.Position)}
	if at := place.Time(); !at.IsZero() {
		view.At = new(at.Time())
	}
	return view
}

// idText is an id as people write it: a text as it is.
func idText(id bson.RawValue) string {
	if text, ok := id.StringValueOK(); ok {
		return text
	}
	return id.String()
}

// homeMade warns of what another program keeps in the state database of a stream of
// which this one knows nothing.
func homeMade(ctx context.Context, state *mongostate.Database, scope mongostate.Scope, c config.Config) []string {
	if len(scope.Records) > 0 {
		return nil
	}
	found, err := state.HomeMade(ctx)
	if err != nil { // it takes rights that nothing else needs
		return []string{"leases and resume tokens of other programs were not looked for: " + redacted(c, err).Error()}
	}
	var all []string
	for _, l := range found.Leases {
		if l.Live() {
			all = append(all, fmt.Sprintf("the lease %s in %s is held by %q, which is another program: start no publisher of this stream beside it",
				idText(l.ID), l.Collection, l.Leader))
		}
	}
	for _, t := range found.Tokens {
		all = append(all, fmt.Sprintf("%s in %s is a resume token of another program, at %s: publisher adopt --dry-run says how stream %q goes on from there",
			idText(t.ID), t.Collection, placeOf(t.Token).Time().Time().Format(time.RFC3339), c.StreamName))
	}
	return all
}
