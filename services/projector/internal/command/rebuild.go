package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/cli"
	"changerelay/services/projector/internal/projection"
	"changerelay/services/projector/internal/readmodel"
	"changerelay/services/projector/internal/rebuild"
)

const (
	// lookAtRebuild is the time between two looks of a command that waits.
	lookAtRebuild = 500 * time.Millisecond
	// defaultGrace is how long the old documents are kept after the switch.
	defaultGrace = 10 * time.Minute
	// defaultResendRate is how many events a second are resent for a rebuild.
	defaultResendRate = 500
)

// errUnfinished makes a rebuild's exit status tell that there is more to do.
var errUnfinished = errors.New("the rebuild is not at its end")

// rebuildOptions are the arguments of projector rebuild.
type rebuildOptions struct {
	name, why, publisher string
	aggregates           []string
	rate                 int
	grace, wait          time.Duration
	cancel, force        bool
	// resent is the file of what the publisher says of its resends, - for stdin.
	resent string
	stdin  io.Reader
}

// rebuildStep is a line that a rebuild prints.
type rebuildStep struct {
	Projection string `json:"projection"`
	Step       string `json:"step"`
	// From is the version that readers had, To the one that is built; 0 before it has a
	// number.
	From   int  `json:"from"`
	To     int  `json:"to,omitempty"`
	DryRun bool `json:"dry_run,omitempty"`
	// Waiting are what is waited for.
	Waiting []string `json:"waiting_for,omitempty"`
	// Resend is what the publisher says of the resend.
	Resend *contract.ResendStatus `json:"resend,omitempty"`
	// Command is what is to be run in the publisher's environment.
	Command string `json:"command,omitempty"`
	// GoesOn says what goes on although the rebuild has ended.
	GoesOn string `json:"goes_on,omitempty"`
	// Refused says what speaks against the step.
	Refused []string `json:"refused,omitempty"`
	// Until is when the old documents are dropped.
	Until time.Time `json:"until,omitzero"`
}

func rebuildCommand() *cobra.Command {
	var o rebuildOptions
	var c *cobra.Command
	c = admitted(&cobra.Command{
		Use: "rebuild --projection NAME | --aggregate ID...", Short: "build the documents of a projection, or of aggregates, anew beside those that readers see",
		Long: `Build a projection's documents anew beside those that readers see, from events that
the publisher resends for that, and have readers see them once they are complete. The
old ones are dropped after --grace. Live events flow into both meanwhile.

It may be stopped at any time, and goes on when it is run again. --cancel ends it, and
until the old documents are dropped readers see those again. With --publisher, the
publisher's command line in the publisher's environment, it asks for the resend itself
and follows it; without, it says which command to run. Once that has resent everything,
--resent takes what publisher resend status --all --json prints there.

With --aggregate, as often as needed, the documents of these aggregates alone are
recomputed from the events that the publisher prints, and each that differs is
replaced in one step, at the position at which it is. It takes --publisher and --why,
and --projection for one projection alone. Nothing is resent, and nothing waits.`,
	}, (*scope).admitSoon, func(ctx context.Context, s *scope, _ []string) error {
		if len(o.aggregates) > 0 {
			return s.rebuildAggregates(ctx, o)
		}
		o.stdin = c.InOrStdin()
		return s.rebuild(ctx, o)
	})
	flags := c.Flags()
	flags.StringVar(&o.name, "projection", "", "the name of the projection, which has a version")
	flags.StringArrayVar(&o.aggregates, "aggregate", nil, "the id of an aggregate whose documents alone are built anew; may be given several times")
	flags.StringVar(&o.why, "why", "", "the reason, which is kept; needed to begin one")
	flags.StringVar(&o.publisher, "publisher", "", `what runs the publisher's command line: "publisher", or "kubectl exec statefulset/publisher -- publisher"`)
	flags.IntVar(&o.rate, "rate", defaultResendRate, "most events a second that the publisher resends, of each partition; 0 is as fast as it goes")
	flags.DurationVar(&o.grace, "grace", defaultGrace, "how long the old documents are kept after the switch")
	flags.DurationVar(&o.wait, "wait", defaultLook, "how long the new documents may take to catch up with the old ones before the switch")
	flags.StringVar(&o.resent, "resent", "", "the file of what publisher resend status --all --json has printed, - for stdin; instead of --publisher")
	flags.BoolVar(&o.force, "force", false, "whatever speaks against the switch; with --aggregate, also where the source does not have all of it")
	flags.BoolVar(&o.cancel, "cancel", false, "end it, with the old documents")
	c.Args = func(c *cobra.Command, args []string) error {
		switch {
		case o.name == "" && len(o.aggregates) == 0:
			return cli.Usagef("rebuild needs --projection NAME, or --aggregate ID")
		case slices.Contains(o.aggregates, ""):
			return cli.Usagef("rebuild: --aggregate is empty")
		case c.Flags().Changed("resent") && !reportNamed(o.resent):
			return resentUsage(o.name)
		case o.resent != "" && o.publisher != "":
			return cli.Usagef("rebuild takes one of --publisher and --resent")
		case len(o.aggregates) > 0 && (o.cancel || o.resent != ""):
			return cli.Usagef("rebuild --aggregate takes neither --cancel nor --resent")
		case len(o.aggregates) > 0 && o.publisher == "":
			return cli.Usagef("rebuild --aggregate needs --publisher COMMAND: it recomputes documents from the events that publisher events prints")
		case o.rate < 0 || o.grace < 0 || o.wait < 0:
			return cli.Usagef("rebuild: --rate, --grace and --wait are not below 0")
		}
		return cli.Takes(0, 0)(c, args)
	}
	c.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		if missing := new(pflag.ValueRequiredError); errors.As(err, &missing) && missing.GetSpecifiedName() == "resent" {
			return resentUsage(o.name)
		}
		return c.Root().FlagErrorFunc()(c, err)
	})
	return c
}

// reportNamed tells whether the value of --resent is a file, and no word of an operator's nor
// the next flag.
func reportNamed(file string) bool {
	return file == "-" || file != "" && file != "true" && file != "false" && !strings.HasPrefix(file, "-")
}

// resentUsage says what --resent takes.
func resentUsage(projection string) error {
	return cli.Usagef("rebuild --resent takes what the publisher says of its resends, as a file or from stdin: %s", reportLine(cmp.Or(projection, "NAME")))
}

// beginsAnew is how long projectors may take to begin anew once a rebuild has gone on.
const beginsAnew = time.Minute

// admitSoon is admit for a command that may have been killed when it had just changed
// what the projectors write: it waits for that, and for nothing else.
func (s *scope) admitSoon(ctx context.Context) error {
	end := time.Now().Add(beginsAnew)
	ticker := time.NewTicker(lookAtRebuild)
	defer ticker.Stop()
	for {
		err := s.admit(ctx)
		if !errors.Is(err, errOtherVersions) || time.Now().After(end) {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ticker.C:
		}
	}
}

// rebuilding is a rebuild that a command carries on with.
type rebuilding struct {
	*scope
	o        rebuildOptions
	declared projection.Version
	rules    projection.Projection // what the environment says of it
	record   rebuild.Record
	said     string // the last line, which is not printed twice
	// report is what the publisher says of its resends, the last one first, and whole the last
	// one of everything, once that has ended.
	report []contract.ResendStatus
	whole  *contract.ResendStatus
}

// rebuild begins a rebuild of a projection, or goes on with the one under way, until its
// end.
func (s *scope) rebuild(ctx context.Context, o rebuildOptions) error {
	at := slices.IndexFunc(s.declared, func(p projection.Projection) bool {
		v, is := projection.VersionOf(p)
		return is && v.Projection == o.name
	})
	if at < 0 {
		return fmt.Errorf("PROJECTIONS declares no version of projection %q: only one that has a version can be rebuilt beside itself", o.name)
	}
	v, _ := projection.VersionOf(s.declared[at])
	r := &rebuilding{scope: s, o: o, declared: v, rules: s.declared[at], record: s.records.Of(&v)}
	if s.flags.DryRun {
		return r.rehearse(ctx)
	}
	if len(r.record.Retired) > 0 {
		// What a command that was killed has left may be all that this one is for.
		if o.cancel || r.ended() {
			return r.done(ctx)
		}
		if err := r.clear(ctx); err != nil {
			return err
		}
	}
	if o.cancel {
		return r.abandon(ctx)
	}
	if err := r.same(ctx); err != nil {
		return err
	}
	if o.resent != "" {
		var err error
		if r.report, err = readReport(o.resent, o.stdin); err != nil {
			return err
		}
	}
	for {
		done, err := r.step(ctx)
		if err != nil || done {
			return r.overtaken(ctx, err)
		}
	}
}

// ended tells whether the rebuild that is asked for is over, but for what is to be dropped:
// the last one was not cancelled, was of what the projection says now, and was for the
// reason that is given.
func (r *rebuilding) ended() bool {
	cancelled := slices.ContainsFunc(r.record.Retired, func(n int) bool { return n > r.record.Current })
	return !cancelled && !r.record.Changed && !r.record.Other(r.rules) && (r.o.why == "" || r.o.why == r.record.Why)
}

// outdated is what speaks against going on: that the projection has changed, or that the read
// database went back.
func (r *rebuilding) outdated() (reasons []string) {
	if r.record.Next == 0 {
		return nil
	}
	again := fmt.Sprintf("end it with --cancel, and begin again; --force goes on with what version %d has", r.record.Next)
	if r.record.Changed || r.record.Other(r.rules) {
		reasons = append(reasons, fmt.Sprintf("projection %q has changed since the rebuild began, so version %d is in part, or all, of what it said before: %s", r.o.name, r.record.Next, again))
	}
	if r.record.WentBack {
		reasons = append(reasons, fmt.Sprintf("the read database was restored from before since the rebuild began, so version %d may lack what was resent before that: %s", r.record.Next, again))
	}
	return reasons
}

// same refuses to go on with a projection that has changed, or a read database that went back.
// With --force what there is now counts, with a line in the ledger.
func (r *rebuilding) same(ctx context.Context) error {
	reasons := r.outdated()
	if len(reasons) == 0 {
		return nil
	}
	if !r.o.force {
		return r.refuse(string(r.record.State), reasons)
	}
	return r.decide(ctx, r.forced(reasons...), func() error { return r.note(ctx, r.record.Accept(projection.Content(r.rules))) })
}

// forced is the decision to go on although something speaks against it.
func (r *rebuilding) forced(why ...string) *readmodel.Decision {
	return &readmodel.Decision{Command: fmt.Sprintf("rebuild --projection %s --force", r.o.name), Why: why}
}

// step does what is next.
func (r *rebuilding) step(ctx context.Context) (done bool, err error) {
	switch r.record.State {
	case rebuild.Filling:
		return false, r.fill(ctx)
	case rebuild.Following:
		return true, r.finish(ctx)
	}
	return false, r.begin(ctx)
}

// begin notes that there is a next version.
func (r *rebuilding) begin(ctx context.Context) error {
	refused, highest, err := r.againstBegin(ctx)
	if err != nil {
		return err
	}
	if r.o.resent != "" {
		refused = append(refused, "no rebuild is under way for which something could have been resent: begin one without --resent")
	}
	if r.o.why == "" {
		refused = append(refused, "say why, with --why TEXT: it is kept")
	}
	if len(refused) > 0 {
		return r.refuse("begin", refused)
	}
	for {
		next := r.record.Begin(&r.declared, highest, projection.Content(r.rules), cli.Operator(), r.o.why, time.Now().UTC())
		taken, err := r.store.TakeNumber(ctx, r.declared.Other(next.Next), next.Who)
		switch {
		case err != nil:
			return err
		case taken:
			return r.revise(ctx, next)
		}
		highest = next.Next
	}
}

// againstBegin is what speaks against a rebuild, and the highest number of a version
// that there is.
func (r *rebuilding) againstBegin(ctx context.Context) (refused []string, highest int, err error) {
	current := r.current()
	live, err := r.store.Live(ctx, &r.declared)
	if err != nil {
		return nil, 0, err
	}
	if live != current {
		refused = append(refused, fmt.Sprintf("readers see version %d, and the projectors of this environment write version %d", live, current))
	}
	lasting, err := r.store.Lasting(ctx, r.declared.Other(current))
	if err != nil {
		return nil, 0, err
	}
	if len(lasting) > 0 {
		refused = append(refused, fmt.Sprintf("%q was created with %s, which the new documents would not have: build a version by hand", r.declared.Other(current).Collection(), strings.Join(lasting, ", ")))
	}
	key, err := r.store.ShardedBy(ctx, r.declared.Other(current))
	if err != nil {
		return nil, 0, err
	}
	if key != "" {
		refused = append(refused, fmt.Sprintf("%q is sharded by %s, which the new documents would not be: build a version by hand, whose collection is sharded first", r.declared.Other(current).Collection(), key))
	}
	if highest, err = r.store.Claimed(ctx, &r.declared); err != nil {
		return nil, 0, err
	}
	states, err := r.store.Versions(ctx, &r.declared)
	if err != nil {
		return nil, 0, err
	}
	for _, state := range states {
		highest = max(highest, state.Version)
	}
	others, all, err := r.store.Elsewhere(ctx, r.records.Signature(r.scope.declared))
	if err != nil {
		return nil, 0, err
	}
	if len(others) > 0 {
		refused = append(refused, fmt.Sprintf("projectors %s are of an earlier release, or begin just now", strings.Join(others, ", ")))
	}
	if all == 0 {
		refused = append(refused, "no projector runs")
	}
	holes, err := r.holes(ctx, recorded)
	return append(refused, holes...), highest, err
}

func (r *rebuilding) current() int {
	if r.record.Current > 0 {
		return r.record.Current
	}
	return r.declared.Number
}

// rehearse prints what would be next.
func (r *rebuilding) rehearse(ctx context.Context) error {
	step := &rebuildStep{Step: "begin"}
	switch reasons := r.outdated(); {
	case len(r.record.Retired) > 0:
		step.Step = "drop"
	case r.o.cancel:
		step.Step = "cancel"
	case len(reasons) > 0 && !r.o.force:
		step.Step, step.Refused = string(r.record.State), reasons
	case r.record.State == rebuild.Filling:
		// What is resent before the projectors know of the version is nobody's.
		step.Step = "fill"
		others, err := r.lagging(ctx, r.records)
		if err != nil {
			return err
		}
		if step.Waiting = others; len(others) == 0 {
			step.Command = r.asked()
		}
	case r.record.State == rebuild.Following:
		step.Step = "switch"
	default:
		refused, highest, err := r.againstBegin(ctx)
		if err != nil {
			return err
		}
		next := r.record.Begin(&r.declared, highest, "", "", "", time.Time{})
		step.Refused = refused
		r.record.Next = next.Next
		// No command yet: what is resent before the projectors know of the version is nobody's.
		step.Waiting = []string{"the publisher, to resend everything for " + r.address()}
	}
	return r.say(step)
}
