package command

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"changerelay/services/projector/internal/delivery"
	"changerelay/services/projector/internal/readmodel"
	"changerelay/services/projector/internal/watch"
)

// GroupView is what projector status prints: what the read database knows of the
// group of the environment.
type GroupView struct {
	Database string `json:"read_database"`
	Group    string `json:"group,omitempty"`
	// Feed is what feeds the group; absent where no projector has started.
	Feed *readmodel.Feed `json:"feed,omitempty"`
	// Projectors are those that live, or fell silent within the last day.
	Projectors []readmodel.Member `json:"projectors"`
	// Projections is how far each is, as the projectors that live have last said, within
	// about ten seconds.
	Projections      []readmodel.Progress `json:"projections"`
	HaltedAggregates int64                `json:"halted_aggregates"`
	ParkedMessages   int64                `json:"parked_messages"`
	// ParkedGone counts messages that were parked and are gone, though nobody has
	// redriven or discarded them.
	ParkedGone int64 `json:"parked_gone,omitempty"`
	// SkippedEvents are those that projections lack because they have skipped them, and
	// Stopped is the event that stops the projectors; absent where none does.
	SkippedEvents int64  `json:"skipped_events"`
	Stopped       string `json:"stopped_by_event,omitempty"`
	// Emptied are read collections that were emptied or dropped, though no event did.
	Emptied []string `json:"emptied_collections,omitempty"`
	// Incomplete counts aggregates, by projection, that lack what was resent of them.
	Incomplete int64        `json:"incomplete_aggregates,omitempty"`
	Ledger     watch.Ledger `json:"ledger"`
	// Warnings are what is not as it should be, each with what to do.
	Warnings []string `json:"warnings,omitempty"`
}

// status prints what the read database knows of the group, from any machine. It
// fails where nothing is known: that is most likely the wrong place.
func (s *scope) status(ctx context.Context, stdout io.Writer, asJSON bool) error {
	if err := s.inhabited(ctx); err != nil {
		return err
	}
	view := GroupView{Database: s.cfg.Database, Group: s.cfg.Group}
	feeds, err := s.store.Feeds(ctx)
	if err != nil {
		return err
	}
	if len(feeds) > 0 {
		view.Feed = &feeds[0]
	}
	if view.Projectors, err = s.store.Members(ctx); err != nil {
		return err
	}
	if view.Projections, err = s.progress(ctx, view.Projectors); err != nil {
		return err
	}
	if view.HaltedAggregates, err = s.store.Halts.CountHalted(ctx); err != nil {
		return err
	}
	if view.ParkedMessages, err = s.store.Parked.CountParked(ctx); err != nil {
		return err
	}
	gone, err := s.store.Parked.Gone(ctx)
	if err != nil {
		return err
	}
	view.ParkedGone = gone.Messages()
	if view.SkippedEvents, err = s.store.Skipped.Count(ctx); err != nil {
		return err
	}
	stop, err := s.store.Halts.Stopped(ctx)
	if err != nil {
		return err
	}
	if stop != nil {
		view.Stopped = stop.Event.ID
		view.Warnings = append(view.Warnings, (&delivery.BrakeError{Stop: stop}).Error())
	}
	if view.Ledger.Latest, view.Ledger.Lines, err = s.store.LatestDecision(ctx); err != nil {
		return err
	}
	emptied, err := s.store.Emptied(ctx)
	if err != nil {
		return err
	}
	for _, e := range emptied {
		view.Emptied, view.Warnings = append(view.Emptied, e.Collection), append(view.Warnings, e.String())
	}
	apart, err := s.store.Halts.HaltedFor(ctx, readmodel.OtherSource)
	if err != nil {
		return err
	}
	if len(apart) > 0 {
		view.Warnings = append(view.Warnings, fmt.Sprintf("%d of the halted aggregates have events of two sources, such as %q: see projector sources list", len(apart), apart[0]))
	}
	begun, err := s.store.Halts.HaltedFor(ctx, readmodel.NotFromTheBeginning)
	if err != nil {
		return err
	}
	if len(begun) > 0 {
		view.Warnings = append(view.Warnings, fmt.Sprintf("%d of the halted aggregates, such as %q, have events from before those that they began with here, which no redrive applies: "+
			`docs/operations.md, "Aggregates that began in the middle"`, len(begun), begun[0]))
	}
	err = s.store.Lacks(ctx, "", func(readmodel.Lack) error {
		view.Incomplete++
		return nil
	})
	if err != nil {
		return err
	}
	view.warn()
	encoder := json.NewEncoder(stdout)
	if !asJSON {
		encoder.SetIndent("", "  ")
	}
	return encoder.Encode(view)
}

// progress is how far each projection is, with the aggregates that are halted because of
// it.
func (s *scope) progress(ctx context.Context, members []readmodel.Member) ([]readmodel.Progress, error) {
	halted, err := s.store.Halts.CountBy(ctx)
	if err != nil {
		return nil, err
	}
	all := readmodel.Summed(members)
	for i := range all {
		n := halted[all[i].Projection]
		all[i].HaltedAggregates = &n
	}
	return all, nil
}

func (v *GroupView) warn() {
	lives := false
	for _, m := range v.Projectors {
		lives = lives || m.Lives
		if !m.Lives {
			v.Warnings = append(v.Warnings, fmt.Sprintf("%s has said nothing since %s: it was killed, or cannot reach the read database", m.Instance, m.HeardOf.UTC().Format("2006-01-02T15:04:05Z")))
		}
	}
	if !lives {
		v.Warnings = append(v.Warnings, "no projector of the group lives, so nothing is applied: start one")
	}
	if v.ParkedGone > 0 {
		v.Warnings = append(v.Warnings, fmt.Sprintf("%d messages that were parked are gone, and nobody has redriven or discarded them: see projector parked list", v.ParkedGone))
	}
	if v.SkippedEvents > 0 {
		v.Warnings = append(v.Warnings, fmt.Sprintf("%d events were skipped, and documents lack them: see projector skipped list", v.SkippedEvents))
	}
	if v.Incomplete > 0 {
		v.Warnings = append(v.Warnings, fmt.Sprintf("%d aggregates lack what was resent of them, since they had begun here later or it was lost on its way: see projector incomplete list", v.Incomplete))
	}
	switch {
	case v.HaltedAggregates > 0:
		v.Warnings = append(v.Warnings, fmt.Sprintf("%d aggregates are halted, with %d messages parked: see projector parked list", v.HaltedAggregates, v.ParkedMessages))
	case v.ParkedMessages > 0:
		v.Warnings = append(v.Warnings, fmt.Sprintf("%d messages are parked, and no aggregate is halted: see projector parked list", v.ParkedMessages))
	}
	if latest := v.Ledger.Latest; latest != nil && latest.ClosedAt == nil {
		v.Warnings = append(v.Warnings, fmt.Sprintf("%s of %s is not finished, or was killed and may be done in part: see projector ledger", latest.Command, latest.By))
	}
}
