package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"changerelay/pkg/contract"
	"changerelay/services/publisher/internal/checkpoint"
	"changerelay/services/publisher/internal/config"
	"changerelay/services/publisher/internal/mongostate"
	"changerelay/services/publisher/internal/resend"
)

// ResendView is what publisher resend prints of a resend. What others read of it is that of
// contract.ResendStatus.
type ResendView struct {
	ID     string `json:"id"`
	Number int64  `json:"number,omitempty"`
	// Stream is the name of its stream, Source that of the events, Mode that of the stream.
	Stream string       `json:"stream"`
	Source string       `json:"source,omitempty"`
	Mode   string       `json:"mode"`
	DryRun bool         `json:"dry_run,omitempty"`
	State  resend.State `json:"state"`
	// Group is whom it is for; absent where that is everybody.
	Group     string           `json:"group,omitempty"`
	Selection resend.Selection `json:"selection,omitzero"`
	Rate      int              `json:"rate"`
	Who       string           `json:"who"`
	Why       string           `json:"why,omitempty"`
	BeganAt   time.Time        `json:"began_at"`
	EndedAt   time.Time        `json:"ended_at,omitzero"`
	// ReportedAt is when it was looked at.
	ReportedAt time.Time `json:"reported_at"`
	// Documents is how many were selected when it began; absent where that is not known.
	Documents *int64 `json:"documents,omitempty"`
	// Sent and Failed count messages; Sent those, too, that were sent once more since
	// they had come while others were read.
	Sent     int64            `json:"sent"`
	Failed   int64            `json:"failed"`
	Failures []resend.Failure `json:"failures,omitempty"`
	// Removed is how many documents fewer than were selected there were to read of one that
	// is done: the stream tells of their deletion.
	Removed int64 `json:"removed,omitempty"`
	// SecondsLeft is an estimate by the documents read so far.
	SecondsLeft *float64     `json:"seconds_left,omitempty"`
	Partitions  []ResendPart `json:"partitions"`
	// Short is why it has ended without all that was selected, once for each reason;
	// absent where it has not.
	Short []string `json:"short,omitempty"`
	// Again is the command that sends it all again; only where that is asked for.
	Again string `json:"again,omitempty"`
	// Warnings are why it does not go on.
	Warnings []string `json:"warnings,omitempty"`
}

// ResendPart is how far one partition is with a resend.
type ResendPart struct {
	Read   int64 `json:"read"`
	Sent   int64 `json:"sent"`
	Passed int64 `json:"passed"`
	Failed int64 `json:"failed"`
	Done   bool  `json:"done"`
	// Awaits is the time that the stream has to pass before more is sent; absent where it
	// has.
	Awaits time.Time `json:"awaits,omitzero"`
	// Term is that of the leader who does it, 0 before the first.
	Term      int64     `json:"term"`
	UpdatedAt time.Time `json:"updated_at,omitzero"`
}

func viewResend(r *resend.Record, c *config.Config) ResendView {
	view := ResendView{
		Stream: c.StreamName, Mode: c.Mode, ReportedAt: time.Now().UTC().Truncate(time.Millisecond),
		ID: r.ID, Number: r.Number, State: r.State, Group: r.Group, Selection: r.Selection, Rate: r.Rate, Who: r.Who, Why: r.Why,
		BeganAt: r.BeganAt, EndedAt: r.EndedAt, Partitions: make([]ResendPart, len(r.Parts)),
	}
	if of := c.Collections(); len(of) == 1 {
		view.Source = contract.Source(c.SourceDatabase, of[0])
	}
	if r.Total >= 0 {
		view.Documents = &r.Total
	}
	var read, left int64
	var latest time.Time
	for i, p := range r.Parts {
		view.Partitions[i] = ResendPart{Read: p.Read, Sent: p.Sent, Passed: p.Passed, Failed: p.Failed, Done: p.Done, Term: p.Term, UpdatedAt: p.UpdatedAt}
		if !p.Awaits.IsZero() {
			view.Partitions[i].Awaits = p.Awaits.Time()
		}
		view.Sent, view.Failed, read = view.Sent+p.Sent, view.Failed+p.Failed, read+p.Read
		view.Failures = append(view.Failures, p.Failures...)
		if p.Short != "" && !slices.Contains(view.Short, p.Short) {
			view.Short = append(view.Short, p.Short)
		}
		if r.State == resend.Done {
			view.Removed = max(view.Removed, r.Total-p.Read)
		}
		if !p.Done {
			left += max(r.Total-p.Read, 0)
		}
		if p.UpdatedAt.After(latest) {
			latest = p.UpdatedAt
		}
	}
	if took := latest.Sub(r.BeganAt).Seconds(); took > 0 && read > 0 && r.State == resend.Running && r.Total >= 0 {
		seconds := took / float64(read) * float64(left)
		view.SecondsLeft = &seconds
	}
	return view
}

// overrunSaid is how many times in a row documents are read in vain before that is said.
const overrunSaid = 2

// waits says why a resend that is not ended does not go on.
func (v *ResendView) waits(r *resend.Record, c config.Config, scope mongostate.Scope) {
	if r.State == resend.Beginning && time.Since(r.BeganAt) > commandTimeout {
		v.Warnings = append(v.Warnings, "the command that began it has ended before that: cancel it, and begin another")
	}
	if r.State != resend.Running {
		return
	}
	if len(r.Parts) != c.Partitions {
		v.Warnings = append(v.Warnings, fmt.Sprintf("it is of a stream of %d partitions, and PARTITIONS is %d: cancel it, and begin another", len(r.Parts), c.Partitions))
		return
	}
	for i, name := range mongostate.PartitionNames(c.StreamName, c.Partitions) {
		led, kept := false, scope.Checkpoints[name]
		for _, holder := range scope.Holders {
			if holder.Stream != name {
				continue
			}
			if led = true; holder.Halt != "" {
				v.Warnings = append(v.Warnings, fmt.Sprintf("the leader of %q is halted, and goes on with it afterwards: %s", name, holder.Halt))
			}
		}
		switch {
		case r.Parts[i].Done:
		case !led:
			v.Warnings = append(v.Warnings, fmt.Sprintf("nobody leads %q: it goes on once a publisher does", name))
		case kept.Copying():
			v.Warnings = append(v.Warnings, fmt.Sprintf("%q is being copied: it goes on behind the copy", name))
		case r.Parts[i].Stuck != "":
			v.Warnings = append(v.Warnings, fmt.Sprintf("the leader of %q cannot go on with it: %s", name, r.Parts[i].Stuck))
		case r.Parts[i].Overrun >= overrunSaid:
			v.Warnings = append(v.Warnings, fmt.Sprintf("%q has read its next documents %d times in vain, as too many changes passed meanwhile: "+
				"create the index that publisher doctor names, or raise MAX_IN_FLIGHT_BYTES or the memory limit that it comes from; or it goes on once less is written", name, r.Parts[i].Overrun))
		case !r.Parts[i].Awaits.IsZero():
			v.Warnings = append(v.Warnings, fmt.Sprintf("%q is behind what is to be sent next: it goes on once the stream has passed %s; its checkpoint is at %s",
				name, r.Parts[i].Awaits.Time().Format(time.RFC3339), placed(kept)))
		}
	}
}

// placed is the time that a checkpoint is at, for a text.
func placed(kept checkpoint.Checkpoint) string {
	seconds, increment, err := kept.Position.ClusterTime()
	if err != nil {
		return "no time yet"
	}
	return checkpoint.ClusterTime{Seconds: seconds, Increment: increment}.Time().Format(time.RFC3339)
}

// shortResend warns of a last resend that has ended without all that was selected.
func shortResend(ctx context.Context, state *mongostate.Database, c config.Config) ([]string, error) {
	last, err := state.Resends(c.StreamName, c.Partitions).Latest(ctx)
	if errors.Is(err, resend.ErrNone) || mongostate.Forbidden(err) {
		return nil, nil
	}
	if err != nil || last.State != resend.Incomplete {
		return nil, err
	}
	return []string{fmt.Sprintf("resend %s has ended without all that was selected: %s; begin another once that is seen to",
		last.ID, strings.Join(viewResend(&last, &c).Short, "; "))}, nil
}

// showResends prints the last resend, or all of them.
func showResends(ctx context.Context, call Call, all bool) error {
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	return withState(ctx, call.Config, func(state *mongostate.Database) error {
		c := call.Config
		scope, err := state.Scope(ctx, c.StreamName, c.LeaseName)
		if err != nil {
			return err
		}
		if err := scope.Known(); err != nil {
			return err
		}
		most := int64(1)
		if all {
			most = 0
		}
		found, err := state.Resends(c.StreamName, c.Partitions).List(ctx, most)
		if err != nil {
			return err
		}
		if len(found) == 0 {
			return errors.New("nothing of the stream was sent again yet")
		}
		for i := range found {
			view := viewResend(&found[i], &c)
			view.waits(&found[i], c, scope)
			if err := printView(call.Stdout, call.JSON, view); err != nil {
				return err
			}
		}
		return nil
	})
}

// showResendsSince prints the resends that may have sent something since a time, and how
// to send it again. There may be none.
func showResendsSince(ctx context.Context, call Call, since time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	return withState(ctx, call.Config, func(state *mongostate.Database) error {
		found, err := state.Resends(call.Config.StreamName, call.Config.Partitions).List(ctx, 0)
		if err != nil && !mongostate.Forbidden(err) { // a role that may not see them has begun none
			return err
		}
		if len(found) == 0 {
			return call.Config.Known(ctx, state)
		}
		for i := range found {
			if found[i].State.Ended() && found[i].EndedAt.Before(since) {
				continue
			}
			view := viewResend(&found[i], &call.Config)
			view.Again = found[i].Command()
			if err := printView(call.Stdout, call.JSON, view); err != nil {
				return err
			}
		}
		return nil
	})
}

// manyDocuments is how many a collection may have that is gone through without an index.
const manyDocuments = 50_000

// beginResend keeps what is to be sent again where the leaders find it.
func beginResend(ctx context.Context, call Call, f resendFlags) error {
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	c := call.Config
	if err := c.MayResend(); err != nil {
		return err
	}
	return withState(ctx, c, func(state *mongostate.Database) error {
		if err := c.Sends(ctx, state); err != nil {
			return err
		}
		scope, err := state.Scope(ctx, c.StreamName, c.LeaseName)
		if err != nil {
			return err
		}
		resends := state.Resends(c.StreamName, c.Partitions)
		if last, err := resends.Latest(ctx); err == nil && !last.State.Ended() {
			return fmt.Errorf("%w: %s, which %q began: wait for its end, or cancel it", mongostate.ErrResending, last.ID, last.Who)
		}
		record := resend.Record{
			ID: newResendID(), Group: f.group, Selection: f.selection, Rate: f.rate, Who: f.who, Why: f.why,
			BeganAt: time.Now().UTC().Truncate(time.Millisecond), State: resend.Running, Parts: make([]resend.Part, c.Partitions),
		}
		of, err := selected(ctx, c, f.selection)
		if err != nil {
			return err
		}
		record.Total, record.Collection = of.total, of.collection
		if !f.dry {
			if record, err = resends.Begin(ctx, record); err != nil {
				return err
			}
		}
		view := viewResend(&record, &c)
		view.DryRun, view.Warnings = f.dry, of.warnings
		view.waits(&record, c, scope)
		return printView(call.Stdout, call.JSON, view)
	})
}
