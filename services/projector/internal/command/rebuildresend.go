package command

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/config"
	"changerelay/services/projector/internal/projection"
	"changerelay/services/projector/internal/rebuild"
	"changerelay/services/projector/internal/servicebus"
	"changerelay/services/projector/internal/shell"
)

const (
	// publisherTime is how long the publisher's command line may take to answer.
	publisherTime = 2 * time.Minute
	// mostSessions bounds the sessions that are looked at.
	mostSessions = 20_000
)

// address is whom the resend is for.
func (r *rebuilding) address() string { return rebuild.Address(r.cfg.Group, r.next()) }

// ask are the arguments that ask the publisher for the resend.
func (r *rebuilding) ask() []string {
	return []string{"resend", "--all", "--group", r.address(), "--rate", strconv.Itoa(r.o.rate), "--why", r.record.Purpose(), "--json"}
}

// asked is the command that asks for the resend, to be run in the publisher's environment.
func (r *rebuilding) asked() string { return publisherLine(r.ask()) }

// cancel are the arguments that end the resend with the rebuild.
func (r *rebuilding) cancel() []string {
	return []string{"resend", "cancel", "--why", "the rebuild of projection " + r.o.name + " is cancelled"}
}

// cancelled is the command that ends the resend, to be run in the publisher's environment.
func (r *rebuilding) cancelled() string { return publisherLine(r.cancel()) }

// publisherLine is a command of the publisher's as a shell reads it.
func publisherLine(args []string) string {
	words := []string{"publisher"}
	for _, arg := range args {
		words = append(words, shell.Word(arg))
	}
	return strings.Join(words, " ")
}

// resend waits until the publisher has resent everything for the next version, and asks
// it to where nobody has. What an operator has cancelled it does not ask for again. It returns
// what was not sent.
func (r *rebuilding) resend(ctx context.Context) (refused []string, err error) {
	switch {
	case r.o.resent != "":
		return r.reported(ctx)
	case r.o.publisher == "":
		if err := r.say(&rebuildStep{Step: "resend", Command: r.asked(), Waiting: []string{
			"the publisher: run the command in its environment, and once publisher resend status says that it has ended, hand on what it prints of all resends: " + r.reports(),
		}}); err != nil {
			return nil, err
		}
		return nil, errUnfinished
	}
	answered := false
	err = r.while(ctx, func(rebuild.Records) (bool, *rebuildStep, error) {
		all, err := r.resends(ctx)
		r.report = all
		sent, lacking := r.meant(all), r.lacking(all)
		if len(lacking) > 0 && !r.o.force {
			err = errors.New(strings.Join(lacking, "; "))
		}
		var status *contract.ResendStatus
		if err == nil {
			status, err = r.carriedOut(ctx, lastWhole(sent.own))
		}
		switch {
		case err != nil && answered: // a resend may take days, and outlasts an answer that fails
			return false, &rebuildStep{Step: "resend", Waiting: []string{"the publisher's command line: " + err.Error()}}, nil
		case err != nil:
			return false, nil, err
		}
		answered = true
		cancelled := status != nil && status.State == contract.ResendCancelled
		if status == nil || cancelled {
			if _, err := r.stored(ctx); err != nil {
				return false, nil, err // it was cancelled with the rebuild
			}
		}
		if cancelled {
			return false, nil, cmp.Or(r.say(&rebuildStep{Step: "resend", Resend: status, Command: r.asked(), Refused: []string{
				"the resend was cancelled, and nobody asks for it again: run the command to have everything resent once more, and then this one again; or end the rebuild with --cancel",
			}}), errUnfinished)
		}
		if status == nil {
			if status, err = r.askFor(ctx); err != nil {
				return false, nil, err
			}
		}
		refused, r.whole = slices.Concat(lacking, r.leftOut(sent)), status
		status.ReportedAt = time.Time{} // the line is new only where the resend has gone on
		return status.Ended(), &rebuildStep{Step: "resend", Resend: status}, nil
	})
	if err != nil {
		return nil, err
	}
	other, err := r.otherSource(ctx)
	return append(refused, other...), err
}

// lacking says why what the publisher's command line has printed of its resends may not show all
// that count: by a clock that is behind, one that has ended since seems to have ended before.
func (r *rebuilding) lacking(all []contract.ResendStatus) (lacking []string) {
	if r.cut(all) {
		lacking = append(lacking, fmt.Sprintf("what %s resend status prints %s: --force goes on without those that are lost", r.o.publisher, lacksResends))
	}
	if len(all) > 0 && !all[0].ReportedAt.IsZero() && time.Since(all[0].ReportedAt) > clocksApart {
		lacking = append(lacking, fmt.Sprintf("%s resend status says that it is %s, more than %s behind the clock here, so nobody knows what has ended before the rebuild began: set the clocks right, or use --force",
			r.o.publisher, all[0].ReportedAt.UTC().Format(time.RFC3339), clocksApart))
	}
	return lacking
}

// carriedOut is a resend, but nil where the command is gone that began it: nobody else goes
// on with that, so it is cancelled.
func (r *rebuilding) carriedOut(ctx context.Context, status *contract.ResendStatus) (*contract.ResendStatus, error) {
	if status == nil || status.State != contract.ResendBeginning || time.Since(status.BeganAt) < publisherTime {
		return status, nil
	}
	_, err := r.publisher(ctx, "resend", "cancel", "--why", "the command that began it has ended before it had")
	return nil, err
}

// resends are all resends of the publisher's stream, the last one first.
func (r *rebuilding) resends(ctx context.Context) ([]contract.ResendStatus, error) {
	// Without a time, that there are none would be an error among others.
	output, err := r.publisher(ctx, "resend", "status", "--since", time.Time{}.Format(time.RFC3339), "--json")
	if err != nil {
		return nil, err
	}
	return contract.ReadResendStatus(bytes.NewReader(output))
}

// askFor asks for the resend.
func (r *rebuilding) askFor(ctx context.Context) (*contract.ResendStatus, error) {
	output, err := r.publisher(ctx, r.ask()...)
	if err != nil {
		return nil, r.busy(ctx, err)
	}
	all, err := contract.ReadResendStatus(bytes.NewReader(output))
	if err == nil && len(all) != 1 {
		err = fmt.Errorf("the publisher's command line has printed %d resends, not one", len(all))
	}
	if err != nil {
		return nil, err
	}
	return &all[0], nil
}

// busy is why the publisher does not resend for the next version: another command has asked
// for that at the same time, or it resends for another rebuild. refusal is what it says
// itself.
func (r *rebuilding) busy(ctx context.Context, refusal error) error {
	all, err := r.resends(ctx)
	if err != nil {
		return refusal
	}
	at := slices.IndexFunc(all, func(s contract.ResendStatus) bool { return !s.Ended() })
	if at < 0 {
		return refusal
	}
	if all[at].Why == r.record.Purpose() {
		return underWay(&r.record)
	}
	records, err := r.store.Rebuilds(ctx)
	if err != nil {
		return refusal
	}
	for _, p := range r.scope.declared {
		v, is := projection.VersionOf(p)
		if record := records.Of(&v); is && record.Next != 0 && all[at].Group == rebuild.Address(r.cfg.Group, v.Other(record.Next)) {
			return fmt.Errorf("the publisher makes one resend at a time, and %w", underWay(&record))
		}
	}
	return refusal
}

// cancelResend cancels the resend for the next version where it is under way.
func (r *rebuilding) cancelResend(ctx context.Context) error {
	if r.o.publisher == "" {
		return nil
	}
	all, err := r.resends(ctx)
	if status := lastWhole(r.meant(all).own); err != nil || status == nil || status.Ended() {
		return err
	}
	_, err = r.publisher(ctx, r.cancel()...)
	return err
}

// publisher runs the publisher's command line.
func (r *rebuilding) publisher(ctx context.Context, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, publisherTime)
	defer cancel()
	words := append(strings.Fields(r.o.publisher), args...)
	var stdout, stderr bytes.Buffer
	run := exec.CommandContext(ctx, words[0], words[1:]...)
	run.Stdout, run.Stderr = &stdout, &stderr
	run.WaitDelay = outliving
	if err := run.Run(); err != nil && !leftBehind(err) {
		return stdout.Bytes(), fmt.Errorf("run %s: %w: %s", strings.Join(words, " "), err, strings.TrimSpace(stderr.String()))
	}
	return stdout.Bytes(), nil
}

// leftBehind tells that a command line has succeeded, and has begun something that outlives
// it and keeps its output open.
func leftBehind(err error) bool { return errors.Is(err, exec.ErrWaitDelay) }

// arrived waits until nothing of what was resent is left in the subscription: each
// session that has messages when it begins has been seen without any, or the next
// version has what the current one has of its aggregate.
func (r *rebuilding) arrived(ctx context.Context) error {
	sessions, end, err := openSessions(ctx)
	if err != nil {
		return err
	}
	defer end()
	left, err := sessions(ctx)
	if err != nil {
		return err
	}
	return r.while(ctx, func(rebuild.Records) (bool, *rebuildStep, error) {
		still, err := sessions(ctx)
		if err != nil {
			return false, nil, err
		}
		if len(left) >= mostSessions {
			left = still // the list had no end
		}
		if left, err = r.behind(ctx, left, still); err != nil {
			return false, nil, err
		}
		return len(left) == 0, &rebuildStep{Step: "arriving", Waiting: []string{fmt.Sprintf("%d sessions with messages", len(left))}}, nil
	})
}

// behind are those of sessions that still have messages, and of which the next version
// lacks what the current one has.
func (r *rebuilding) behind(ctx context.Context, sessions, still []string) (left []string, err error) {
	keyed := projection.Keyed(r.rules)
	with := make(map[string]bool, len(still))
	for _, session := range still {
		with[session] = true
	}
	for _, session := range sessions {
		if !with[session] {
			continue
		}
		level, err := rebuild.Level(ctx, r.store.Writes, r.next(), r.declared.Other(r.record.Current), keyed, session)
		if err != nil {
			return nil, err
		}
		if !level {
			left = append(left, session)
		}
	}
	return left, nil
}

// openSessions opens what lists the sessions with messages of the environment's
// subscription.
func openSessions(ctx context.Context) (list func(context.Context) ([]string, error), end func(), err error) {
	cfg, err := config.LoadBus()
	if err != nil {
		return nil, nil, err
	}
	bus, err := cfg.Reach()
	if err != nil {
		return nil, nil, err
	}
	subscription, err := servicebus.New(bus, zerolog.Nop())
	if err != nil {
		return nil, nil, err
	}
	list = func(ctx context.Context) ([]string, error) { return subscription.Sessions(ctx, mostSessions) }
	end = func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		_ = subscription.Close(closing) // the process ends anyway
	}
	return list, end, nil
}
