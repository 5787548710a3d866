package command

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"changerelay/services/projector/internal/cli"
	"changerelay/services/projector/internal/projection"
	"changerelay/services/projector/internal/readmodel"
	"changerelay/services/projector/internal/shell"
	"changerelay/services/projector/internal/verify"
)

const (
	// defaultVerifyWait is how long a document may take to come to where the source is.
	defaultVerifyWait = 30 * time.Second
	// mostDifferences is after how many differences a verification ends.
	mostDifferences = 1000
	// mostOffered is how many aggregates one command that is offered names.
	mostOffered = 50
)

// errDiffers makes a verification's exit status tell that documents differ, or that
// nobody can say of some; errNothing tells that none was compared.
var (
	errDiffers = errors.New("documents are not what the source makes of them")
	errNothing = errors.New("no document was compared: the file has no event of any, or all have changed since it was made")
)

// verifyOptions are the arguments of projector verify.
type verifyOptions struct {
	aggregates, projections []string
	sample, rate, most      int
	publisher, events       string
	wait                    time.Duration
}

// verified is the last line of projector verify.
type verified struct {
	Verified bool `json:"verified"`
	verify.Summary
	// NotCompared are projections that cannot be, with the reasons.
	NotCompared map[string]string `json:"not_compared,omitempty"`
	Seconds     float64           `json:"seconds"`
	// Commands mend what differs. Nothing is offered where the document may be the better
	// one, of which Doubtful counts how many there are.
	Commands []string `json:"commands,omitempty"`
	Doubtful int      `json:"doubtful,omitempty"`
}

func verifyCommand() *cobra.Command {
	var o verifyOptions
	c := &cobra.Command{
		Use: "verify", Short: "recompute documents from the source, and compare them with those that readers see",
		Long: `Recompute documents from the source with the projections of the environment, and
compare each with the one that readers see, at its position. All of them, or those of
--aggregate ID, or of about --sample N aggregates. It changes no read document, and
may be stopped and run again at any time.

It needs --publisher, the publisher's command line in the publisher's environment, or
--events, a file of what publisher events has printed. Documents that have changed
since are then not compared, and of a sample none is found that the source lacks.

A line for each document that differs, then one with the sum. Exit status 1 where some
differ, or nobody can say.`,
		RunE: looking(func(ctx context.Context, s *scope, _ []string) error { return s.verify(ctx, o) }),
	}
	flags := c.Flags()
	flags.StringArrayVar(&o.aggregates, "aggregate", nil, "the id of an aggregate; may be given several times")
	flags.IntVar(&o.sample, "sample", 0, "about so many aggregates, drawn from the source, and as many from what readers see")
	flags.StringArrayVar(&o.projections, "projection", nil, "the name of a projection; may be given several times; all where none is")
	flags.StringVar(&o.publisher, "publisher", "", `what runs the publisher's command line: "publisher", or "kubectl exec statefulset/publisher -- publisher"`)
	flags.StringVar(&o.events, "events", "", "a file of what publisher events has printed; instead of --publisher")
	flags.IntVar(&o.rate, "rate", defaultResendRate, "most documents of the source a second that the publisher reads; 0 is as fast as it goes")
	flags.DurationVar(&o.wait, "wait", defaultVerifyWait, "how long a document may take to come to where the source is")
	flags.IntVar(&o.most, "most", mostDifferences, "after how many differences to end; 0 for none")
	c.Args = func(c *cobra.Command, args []string) error {
		switch {
		case (o.publisher == "") == (o.events == ""):
			return cli.Usagef("verify needs one of --publisher COMMAND and --events FILE")
		case len(o.aggregates) > 0 && o.sample != 0:
			return cli.Usagef("verify takes one of --aggregate and --sample")
		case slices.Contains(o.aggregates, ""):
			return cli.Usagef("verify: --aggregate is empty")
		case o.sample < 0 || o.rate < 0 || o.wait < 0 || o.most < 0:
			return cli.Usagef("verify: --sample, --rate, --wait and --most are not below 0")
		}
		return cli.Takes(0, 0)(c, args)
	}
	return c
}

// verify compares documents, and prints those that differ.
func (s *scope) verify(ctx context.Context, o verifyOptions) error {
	if err := s.inhabited(ctx); err != nil {
		return err
	}
	targets, not, err := s.targets(ctx, o.projections)
	if err != nil {
		return err
	}
	if len(targets) == 0 {
		return fmt.Errorf("no projection can be compared: %s", strings.Join(reasons(not), "; "))
	}
	var source verify.Source = keptEvents(o.events)
	if o.publisher != "" {
		source = publishedEvents{o.publisher, o.rate}
	}
	offer := offers{publisher: o.publisher, of: map[string][]string{}, wrong: map[string]int{}}
	run := rand.Text()
	began := time.Now()
	v := verify.New(verify.Config{Run: run, Targets: targets, Wait: o.wait, Most: o.most, Kept: o.events != ""}, source, s.store.Comparison,
		func(v verify.Verdict) error {
			offer.add(&v)
			return s.lines.Encode(v)
		})
	summary, err := v.Verify(ctx, verify.Selection{Aggregates: o.aggregates, Sample: o.sample, All: len(o.aggregates) == 0 && o.sample == 0})
	if err = errors.Join(err, s.forgetRecomputed(ctx, run)); err != nil {
		return err
	}
	if err := s.undisturbed(ctx); err != nil {
		return err
	}
	// An empty read model of an empty source is right, but a file may be of another one.
	nothing := o.events != "" && summary.Documents == 0
	if len(o.aggregates)+len(o.projections) == 0 && !nothing {
		found := readmodel.Verified{At: time.Now().UTC(), By: cli.Operator(), Aggregates: summary.Aggregates, Differences: summary.Count()}
		if err := s.store.Comparison.NoteVerified(ctx, &found); err != nil {
			return err
		}
	}
	differs := summary.Count() > 0 || len(o.aggregates) > 0 && summary.MovedOn > 0
	err = s.lines.Encode(verified{
		Verified: !differs && !nothing, Summary: summary, NotCompared: not, Seconds: time.Since(began).Seconds(),
		Commands: offer.commands(s), Doubtful: offer.doubtful,
	})
	switch {
	case err != nil:
		return err
	case nothing:
		return errNothing
	case differs:
		return errDiffers
	}
	return nil
}

// forgetRecomputed removes what a run has left, and runs that died.
func (s *scope) forgetRecomputed(ctx context.Context, run string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), ledgerTime)
	defer cancel()
	return s.store.Comparison.ForgetRecomputed(ctx, run)
}

// undisturbed is an error where a rebuild has begun or gone on since the command began:
// documents were then compared in a collection that readers do not see.
func (s *scope) undisturbed(ctx context.Context) error {
	records, err := s.store.Rebuilds(ctx)
	if err != nil {
		return err
	}
	for _, v := range versionsOf(s.declared) {
		was, is := s.records.Of(&v), records.Of(&v)
		if was.Revision != is.Revision || was.Seen() != is.Seen() {
			return errors.New("a rebuild has begun or gone on meanwhile: run it again")
		}
	}
	return nil
}

// targets are the projections of some names, all where there are none, with the
// collections that readers see; not are those that cannot be compared, with the reasons,
// which is an error for one that is named.
func (s *scope) targets(ctx context.Context, names []string) (targets []verify.Target, not map[string]string, err error) {
	not = map[string]string{}
	known := []string{}
	for _, p := range s.records.Current(s.declared) {
		t := verify.Target{Projection: p, Name: p.Name()}
		if v, versioned := projection.VersionOf(p); versioned {
			t.Name = v.Projection
		}
		known = append(known, t.Name)
		if len(names) > 0 && !slices.Contains(names, t.Name) {
			continue
		}
		switch {
		case projection.Keyed(p):
			not[t.Name] = fmt.Sprintf("it has a key: many aggregates change its documents, in an order that the source does not know; build it anew with %s", s.anew(t.Name))
			continue
		case len(p.Collections()) != 1:
			not[t.Name] = "it writes several collections"
			continue
		}
		seen, reason, err := s.seen(ctx, p)
		if err != nil {
			return nil, nil, err
		}
		if reason != "" {
			not[t.Name] = reason
			continue
		}
		t.Projection, t.Collection = seen, seen.Collections()[0]
		targets = append(targets, t)
	}
	for _, name := range names {
		if !slices.Contains(known, name) {
			return nil, nil, cli.Usagef("PROJECTIONS declares no projection %q; there are %s", name, strings.Join(known, ", "))
		}
		if reason := not[name]; reason != "" {
			return nil, nil, cli.Usagef("projection %q cannot be compared: %s", name, reason)
		}
	}
	return targets, not, nil
}

// anew is the command that builds a projection anew.
func (s *scope) anew(name string) string {
	return "projector rebuild --projection " + name
}

// seen is a projection in the version that readers see, which is the current one, or that
// which follows it; or why it is neither.
func (s *scope) seen(ctx context.Context, current projection.Projection) (seen projection.Projection, reason string, err error) {
	v, versioned := projection.VersionOf(current)
	if !versioned {
		return current, "", nil
	}
	live, err := s.store.Live(ctx, &v)
	switch {
	case errors.Is(err, readmodel.ErrNotAView):
		return nil, err.Error(), nil
	case err != nil:
		return nil, "", err
	case live == 0 || live == v.Number:
		return current, "", nil
	}
	if again, may := current.(projection.Renumbered); may && live == s.records.Follower(&v) {
		return again.Renumbered(live), "", nil
	}
	return nil, fmt.Sprintf("readers see version %d, and the projectors of this environment write version %d", live, v.Number), nil
}

func reasons(not map[string]string) (all []string) {
	for name, reason := range not {
		all = append(all, fmt.Sprintf("projection %q: %s", name, reason))
	}
	slices.Sort(all)
	return all
}

// offers are the commands that mend what differs.
type offers struct {
	publisher string
	of        map[string][]string // aggregates, by the names of projections
	// wrong counts those of a projection that are not only behind.
	wrong map[string]int
	// doubtful counts those of which the document may be the better one.
	doubtful int
}

func (o *offers) add(v *verify.Verdict) {
	switch {
	case !v.Mendable():
	case v.Partly != "":
		o.doubtful++
	default:
		o.of[v.Projection] = append(o.of[v.Projection], v.Aggregate)
		if v.Difference != verify.Behind {
			o.wrong[v.Projection]++
		}
	}
}

// commands are to be copied: those for single aggregates, or where there are many, and it
// has a version, that which builds a projection anew.
func (o *offers) commands(s *scope) (all []string) {
	publisher := o.publisher
	if publisher == "" {
		publisher = "publisher"
	}
	tail := fmt.Sprintf(" --why 'verify found them different' --publisher %s", shell.Word(publisher))
	for _, name := range slices.Sorted(maps.Keys(o.of)) {
		versioned := slices.ContainsFunc(versionsOf(s.declared), func(v projection.Version) bool { return v.Projection == name })
		if o.wrong[name] > mostOffered && versioned {
			all = append(all, s.anew(name)+tail)
			continue
		}
		for some := range slices.Chunk(o.of[name], mostOffered) {
			words := []string{s.anew(name)}
			for _, aggregate := range some {
				words = append(words, "--aggregate", shell.Word(aggregate))
			}
			all = append(all, strings.Join(words, " ")+tail)
		}
	}
	return all
}
