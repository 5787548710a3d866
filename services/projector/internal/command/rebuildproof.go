package command

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/shell"
)

const (
	// clocksApart is how far the clocks of the publisher and of this command may be apart.
	clocksApart = 5 * time.Minute
	// reportAge is how old a report of the resends may be.
	reportAge = 10 * time.Minute
)

// sentFor are the resends for the next version, of everything or of a part, whoever has asked
// for them; the last one first.
type sentFor struct {
	// own are those from the first one on that this rebuild has asked for, and before those
	// before it that have not ended before the rebuild began.
	own, before []contract.ResendStatus
}

// meant are those of resends, the last one first, that are for the next version.
func (r *rebuilding) meant(all []contract.ResendStatus) sentFor {
	all = slices.DeleteFunc(slices.Clone(all), func(s contract.ResendStatus) bool { return s.Group != r.address() })
	first := len(all)
	for first > 0 && all[first-1].Why != r.record.Purpose() {
		first--
	}
	before := all[first:]
	if past := slices.IndexFunc(before, r.past); past >= 0 {
		before = before[:past]
	}
	return sentFor{all[:first], before}
}

// past tells whether a resend had ended before the rebuild began.
func (r *rebuilding) past(s contract.ResendStatus) bool {
	return s.Ended() && !s.EndedAt.IsZero() && s.EndedAt.Before(r.record.BeganAt.Add(-clocksApart))
}

// lastWhole is the last resend of everything; nil where there is none.
func lastWhole(own []contract.ResendStatus) *contract.ResendStatus {
	for i := range own {
		if len(own[i].Selection) == 0 {
			return &own[i]
		}
	}
	return nil
}

// partial tells whether a resend may have had events of an aggregate, and not those before
// them.
func partial(s *contract.ResendStatus) bool {
	var of map[string]json.RawMessage
	if len(s.Selection) == 0 || s.Sent == 0 {
		return false
	}
	if err := json.Unmarshal(s.Selection, &of); err != nil {
		return true
	}
	delete(of, "aggregates")
	return len(of) > 0
}

// leftOut says what resends for the next version have left out. Of events, the version takes
// what comes after that, and then has it from no later resend. What it lacks of the state of
// documents it has from the next resend of everything.
func (r *rebuilding) leftOut(sent sentFor) (holes []string) {
	again := fmt.Sprintf("version %d may be past what is missing, and then takes it from no later resend: correct what publisher resend status says, end the rebuild with --cancel, and begin again", r.record.Next)
	if last := lastWhole(sent.own); last != nil && last.Mode == contract.ResendOfDocuments {
		sent = sentFor{own: []contract.ResendStatus{*last}}
		again = "correct what publisher resend status says, have everything resent once more, and run this again: " + r.asked()
	}
	var failed int64
	var short []string
	some, whole := false, false
	for _, s := range slices.Backward(sent.own) { // the first one first
		failed += s.Failed
		if s.State == contract.ResendIncomplete {
			short = append(short, fmt.Sprintf("a resend has ended without all that was selected (%s): %s", strings.Join(s.Short, "; "), again))
		}
		some = some || !whole && partial(&s)
		whole = whole || len(s.Selection) == 0 && s.State == contract.ResendDone
	}
	holes = append(holes, slices.Compact(short)...)
	if some {
		holes = append(holes, "a resend for the version had some events of an aggregate and not others, before one had them all: "+again)
	}
	for _, s := range sent.before {
		if s.Sent > 0 {
			holes = append(holes, fmt.Sprintf("resend %s was for the version before this rebuild had asked for one, and the projectors may have taken some of its events and not others: %s", s.ID, again))
		}
	}
	if failed > 0 {
		holes = append(holes, fmt.Sprintf("%d events could not be resent: %s", failed, again))
	}
	return holes
}

// reports is the line that hands on what the publisher says of its resends.
func (r *rebuilding) reports() string { return reportLine(r.o.name) }

func reportLine(projection string) string {
	return "publisher resend status --all --json | projector rebuild --projection " + shell.Word(projection) + " --resent -"
}

// readReport reads what the publisher's command line has printed into a file, or - for stdin.
func readReport(file string, stdin io.Reader) ([]contract.ResendStatus, error) {
	from := stdin
	if file != "-" {
		opened, err := os.Open(file)
		if err != nil {
			return nil, fmt.Errorf("rebuild --resent: %w", err)
		}
		defer func() { _ = opened.Close() }() // it was only read
		from = opened
	}
	report, err := contract.ReadResendStatus(from)
	if err != nil {
		return nil, fmt.Errorf("rebuild --resent %s: %w", file, err)
	}
	return report, nil
}

// reported judges by the report whether everything was resent. It returns what --force goes on
// without.
func (r *rebuilding) reported(ctx context.Context) (refused []string, err error) {
	sent := r.meant(r.report)
	last := lastWhole(sent.own)
	missing := r.unproven(last)
	other, err := r.otherSource(ctx)
	if err != nil {
		return nil, err
	}
	refused = slices.Concat(r.doubts(), other, r.leftOut(sent))
	if missing == "" && (len(refused) == 0 || r.o.force) {
		r.whole = last
		return refused, nil
	}
	step := &rebuildStep{Step: "resend", Resend: last, Refused: refused}
	if missing != "" {
		step.Refused = append([]string{missing}, refused...)
	}
	if last == nil || last.State == contract.ResendCancelled {
		step.Command = r.asked()
	}
	if err := r.say(step); err != nil {
		return nil, err
	}
	return nil, errUnfinished
}

// unproven says why the report does not show that a resend of everything has ended; empty
// where it does.
func (r *rebuilding) unproven(last *contract.ResendStatus) string {
	switch {
	case len(r.report) == 0:
		return "the report is empty: hand on what the publisher prints, with kubectl exec -i where that is between: " + r.reports()
	case last == nil:
		return fmt.Sprintf("the report of stream %q (%s) has no resend of everything that this rebuild has asked for: run the command as it is printed, with its --why, in the environment of the publisher of topic %q, and then %s",
			r.report[0].Stream, r.report[0].Source, r.cfg.Topic, r.reports())
	case last.State == contract.ResendCancelled:
		return "the resend was cancelled: run the command once more, and then " + r.reports()
	case !last.Ended():
		return fmt.Sprintf("the resend is %s: once it has ended, %s", last.State, r.reports())
	}
	return ""
}

// doubts are why the report may not show all resends for the version.
func (r *rebuilding) doubts() (doubts []string) {
	if len(r.report) == 0 {
		return nil
	}
	first := &r.report[0]
	if at := first.ReportedAt; !at.IsZero() && (time.Since(at) > reportAge || at.Before(r.record.BeganAt.Add(-clocksApart))) {
		doubts = append(doubts, fmt.Sprintf("the report is of %s, by the publisher's clock, and there may have been resends since: %s; where it is new, the clocks of both command lines differ by too much: set them right, or use --force", at.UTC().Format(time.RFC3339), r.reports()))
	}
	if slices.ContainsFunc(r.report, func(s contract.ResendStatus) bool { return s.Stream != first.Stream || s.Source != first.Source }) {
		doubts = append(doubts, "the report is of several streams: hand on that of the one whose publisher has resent for the version")
	}
	if r.cut(r.report) {
		doubts = append(doubts, "the report "+lacksResends+": "+r.reports()+"; where that has a gap, too, a record was lost, and --force goes on without it")
	}
	return doubts
}

// lacksResends is said of a list of resends that is cut.
const lacksResends = "does not have all resends since the rebuild began, of which one may have left something out"

// cut tells whether resends, the last one first, lack some since the rebuild began: their
// numbers have no gaps.
func (r *rebuilding) cut(all []contract.ResendStatus) bool {
	for i, s := range all {
		switch {
		case r.past(s) || s.Number == 1:
			return false
		case i+1 == len(all) || all[i+1].Number != s.Number-1:
			return true
		}
	}
	return false
}

// otherSource says that what was resent is of another source than the documents that readers
// see.
func (r *rebuilding) otherSource(ctx context.Context) ([]string, error) {
	if len(r.report) == 0 || r.report[0].Source == "" {
		return nil, nil
	}
	other, err := r.store.OtherSource(ctx, r.declared.Other(r.record.Current), r.report[0].Source)
	if err != nil || other == "" {
		return nil, err
	}
	return []string{fmt.Sprintf("what was resent is of the source %s, and the documents of version %d are of %s: it takes the publisher of %s", r.report[0].Source, r.record.Current, other, other)}, nil
}

// nothingArrived says that the next version has nothing at all of what was resent for it. Where
// the current one has nothing either, no comparison shows that.
func (r *rebuilding) nothingArrived(ctx context.Context) ([]string, error) {
	if r.whole == nil || r.whole.Sent == 0 {
		return nil, nil
	}
	begun, err := r.store.Begun(ctx, r.next())
	if err != nil || begun {
		return nil, err
	}
	return []string{fmt.Sprintf("version %d has nothing of the %d messages that the publisher has sent for it: it may send to another topic than %q, a rule of subscription %q may keep out what is for the group %q, "+
		"or the subscription was made anew since. Correct that, have everything resent once more, and run this again: %s",
		r.record.Next, r.whole.Sent, r.cfg.Topic, r.cfg.Subscription, r.address(), r.asked())}, nil
}
