package command

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"changerelay/services/projector/internal/config"
	"changerelay/services/projector/internal/projection"
	"changerelay/services/projector/internal/rebuild"
	"changerelay/services/projector/internal/servicebus"
)

const (
	// publisherTime is how long the publisher's command line may take to answer.
	publisherTime = 2 * time.Minute
	// mostSessions bounds the sessions that are looked at.
	mostSessions = 20_000
)

// resendStatus is what is read of what publisher resend prints.
type resendStatus struct {
	ID          string   `json:"id"`
	State       string   `json:"state"`
	Group       string   `json:"group,omitempty"`
	Why         string   `json:"why,omitempty"`
	Documents   *int64   `json:"documents,omitempty"`
	Sent        int64    `json:"sent"`
	Failed      int64    `json:"failed"`
	SecondsLeft *float64 `json:"seconds_left,omitempty"`
	Warnings    []string `json:"warnings,omitempty"`
	// BeganAt is by the clock of the publisher's command line.
	BeganAt time.Time `json:"began_at,omitzero"`
	// Selection is what it is of; absent where that is everything.
	Selection json.RawMessage `json:"selection,omitempty"`
}

// partial tells whether the resend may have had events of an aggregate, and not those before
// them.
func (s *resendStatus) partial() bool {
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

// States of a resend: one that its command has not yet left to the publisher, and those
// that the publisher has ended.
const (
	resendBeginning  = "beginning"
	resendDone       = "done"
	resendIncomplete = "incomplete"
	resendCancelled  = "cancelled"
)

// ended tells whether there is nothing more to come of it.
func (s *resendStatus) ended() bool {
	return s.State == resendDone || s.State == resendIncomplete || s.State == resendCancelled
}

// address is whom the resend is for.
func (r *rebuilding) address() string { return rebuild.Address(r.cfg.Group, r.next()) }

// ask are the arguments that ask the publisher for the resend.
func (r *rebuilding) ask() []string {
	return []string{"resend", "--all", "--group", r.address(), "--rate", strconv.Itoa(r.o.rate), "--why", r.record.Purpose(), "--json"}
}

// asked is the command to be run in the publisher's environment.
func (r *rebuilding) asked() string {
	words := r.ask()
	for i := range words {
		words[i] = quoted(words[i])
	}
	return "publisher " + strings.Join(words, " ")
}

// quoted is a word as a shell reads it.
func quoted(word string) string {
	if word != "" && !strings.ContainsAny(word, " \t\n\"'$\\`;&|<>()*?[]#~!{}") {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// resend waits until the publisher has resent everything for the next version, and asks
// it to where nobody has. It returns what was not sent.
func (r *rebuilding) resend(ctx context.Context) (refused []string, err error) {
	switch {
	case r.o.resent:
		return nil, nil
	case r.o.publisher == "":
		if err := r.say(&rebuildStep{Step: "resend", Command: r.asked(), Waiting: []string{
			"the publisher: run the command in its environment, and once publisher resend status says that it is done, and that none has failed, this one again with --resent; " +
				"where a resend for the version has failed events or has ended incomplete, end the rebuild with --cancel and begin again, also where a later resend has neither: publisher resend status --all says it of each",
		}}); err != nil {
			return nil, err
		}
		return nil, errUnfinished
	}
	answered := false
	err = r.while(ctx, func(rebuild.Records) (bool, *rebuildStep, error) {
		own, err := r.resent(ctx)
		var status *resendStatus
		if err == nil {
			status, err = r.carriedOut(ctx, lastWhole(own))
		}
		switch {
		case err != nil && answered: // a resend may take days, and outlasts an answer that fails
			return false, &rebuildStep{Step: "resend", Waiting: []string{"the publisher's command line: " + err.Error()}}, nil
		case err != nil:
			return false, nil, err
		}
		answered = true
		if status == nil || status.State == resendCancelled {
			if _, err := r.stored(ctx); err != nil {
				return false, nil, err // it was cancelled with the rebuild
			}
			if status, err = r.askFor(ctx); err != nil {
				return false, nil, err
			}
		}
		refused = r.leftOut(own)
		return status.ended(), &rebuildStep{Step: "resend", Resend: status}, nil
	})
	return refused, err
}

// resent are the resends for the next version, of everything or of a part, from the first
// one on that this rebuild has asked for, whoever has asked for them; the last one first.
func (r *rebuilding) resent(ctx context.Context) ([]resendStatus, error) {
	all, err := r.resends(ctx)
	if err != nil {
		return nil, err
	}
	own := slices.DeleteFunc(all, func(s resendStatus) bool { return s.Group != r.address() })
	for len(own) > 0 && own[len(own)-1].Why != r.record.Purpose() {
		own = own[:len(own)-1]
	}
	return own, nil
}

// lastWhole is the last resend of everything; nil where there is none.
func lastWhole(own []resendStatus) *resendStatus {
	for i := range own {
		if len(own[i].Selection) == 0 {
			return &own[i]
		}
	}
	return nil
}

// leftOut says what resends for the next version have left out. The version takes what comes
// after that, and then has it from no later resend.
func (r *rebuilding) leftOut(own []resendStatus) (holes []string) {
	var failed int64
	short, some, whole := false, false, false
	for i := len(own) - 1; i >= 0; i-- { // the first one first
		failed += own[i].Failed
		short = short || own[i].State == resendIncomplete
		some = some || !whole && own[i].partial()
		whole = whole || len(own[i].Selection) == 0 && own[i].State == resendDone
	}
	again := fmt.Sprintf("version %d may be past what is missing, and then takes it from no later resend: correct what publisher resend status says, end the rebuild with --cancel, and begin again", r.record.Next)
	if short {
		holes = append(holes, "a resend has ended without all that was selected: "+again)
	}
	if some {
		holes = append(holes, "a resend for the version had some events of an aggregate and not others, before one had them all: "+again)
	}
	if failed > 0 {
		holes = append(holes, fmt.Sprintf("%d events could not be resent: %s", failed, again))
	}
	return holes
}

// carriedOut is a resend, but nil where the command is gone that began it: nobody else goes
// on with that, so it is cancelled.
func (r *rebuilding) carriedOut(ctx context.Context, status *resendStatus) (*resendStatus, error) {
	if status == nil || status.State != resendBeginning || time.Since(status.BeganAt) < publisherTime {
		return status, nil
	}
	_, err := r.publisher(ctx, "resend", "cancel", "--why", "the command that began it has ended before it had")
	return nil, err
}

// resends are all resends of the publisher's stream, the last one first.
func (r *rebuilding) resends(ctx context.Context) ([]resendStatus, error) {
	// Without a time, that there are none would be an error among others.
	output, err := r.publisher(ctx, "resend", "status", "--since", time.Time{}.Format(time.RFC3339), "--json")
	if err != nil {
		return nil, err
	}
	return readStatus(output)
}

// askFor asks for the resend.
func (r *rebuilding) askFor(ctx context.Context) (*resendStatus, error) {
	output, err := r.publisher(ctx, r.ask()...)
	if err != nil {
		return nil, r.busy(ctx, err)
	}
	all, err := readStatus(output)
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
	at := slices.IndexFunc(all, func(s resendStatus) bool { return !s.ended() })
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
	own, err := r.resent(ctx)
	if status := lastWhole(own); err != nil || status == nil || status.ended() {
		return err
	}
	_, err = r.publisher(ctx, "resend", "cancel", "--why", "the rebuild of projection "+r.o.name+" is cancelled")
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
	run.WaitDelay = time.Second // what it has begun may keep them open
	if err := run.Run(); err != nil {
		return stdout.Bytes(), fmt.Errorf("run %s: %w: %s", strings.Join(words, " "), err, strings.TrimSpace(stderr.String()))
	}
	return stdout.Bytes(), nil
}

func readStatus(output []byte) (all []resendStatus, err error) {
	for line := range bytes.Lines(output) {
		var status resendStatus
		if err := json.Unmarshal(line, &status); err != nil {
			return nil, fmt.Errorf("the publisher's command line has not printed the state of a resend: %w", err)
		}
		all = append(all, status)
	}
	return all, nil
}

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
