package suite

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"changerelay/services/e2e/internal/harness/cluster"
)

// Config says what a run does.
type Config struct {
	// Only are the experiments to run; empty for all.
	Only         []string
	Quick, Large bool
	Scale        Scale
	// World is a JSON object with the world of the servers, as the sandbox takes it;
	// empty for none, or for that of the experiment.
	World string
	// From is a result to show in place of measuring.
	From string
	// JSON and Page take the result; empty for files in the directory of the run.
	JSON, Page string
	// Update is a document whose tables are written anew; empty for none.
	Update string
	// Bin has built binaries; empty builds them. Dir takes logs; empty makes one.
	Bin, Dir string
	// Seed draws the order in which rows are measured.
	Seed uint64
	// Timeout bounds the run after the build.
	Timeout time.Duration
	// Given are servers to use in place of a sandbox.
	Given *cluster.Endpoints
}

// Environment variables that name servers to run against in place of the sandbox.
const (
	envMongo      = "TEST_MONGODB_URI"
	envServiceBus = "TEST_SERVICEBUS_CONNECTION_STRING"
)

// Parse reads the command line: flags and names of experiments in any order.
// Every problem is reported at once.
func Parse(args []string, getenv func(string) string, usage io.Writer) (Config, error) {
	c := Config{}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	// What is wrong is for the caller to say, once.
	flags.SetOutput(io.Discard)
	flags.Usage = func() {
		fmt.Fprintf(flags.Output(), "bench [flags] [experiment…]\n\nexperiments, all where none is named:\n")
		for _, e := range experiments(full()) {
			fmt.Fprintf(flags.Output(), "  %-11s %s\n", e.name, e.title)
		}
		fmt.Fprintln(flags.Output(), "\nflags:")
		flags.PrintDefaults()
	}
	var repeats, events, failovers int
	var lease time.Duration
	flags.BoolVar(&c.Quick, "quick", false, "few events and few repetitions: a few minutes, for a first look")
	flags.BoolVar(&c.Large, "large", false, "once each, what takes long: resume behind 10,000,000 entries, copies of 5,000,000 documents, repair of 1,000,000 events")
	flags.IntVar(&repeats, "repeats", 0, "how often each measurement is made; 0 is as the scale has it")
	flags.IntVar(&events, "events", 0, "events over the whole path in each measurement of it, of half as many aggregates, and those that a repair is measured over; 0 is as the scale has it")
	flags.IntVar(&failovers, "failovers", 0, "failovers of each kind; 0 is as the scale has it")
	flags.DurationVar(&lease, "lease", 0, "length of the publishers' lease where failovers are measured; 0 is as the scale has it")
	flags.Uint64Var(&c.Seed, "seed", uint64(time.Now().Unix()), "draws the order in which rows are measured")
	flags.StringVar(&c.World, "world", "", "as far, slow and strict as the servers are to be: a `name` or a file, see docs/sandbox.md; experiments with a world of their own keep to that, but halfway")
	flags.StringVar(&c.From, "from", "", "show the result in this `file` in place of measuring")
	flags.StringVar(&c.JSON, "json", "", "write the result to this `file`, as JSON; bench.json in the directory of the run when not set")
	flags.StringVar(&c.Page, "page", "", "write the result to this `file`, as a page with plots; bench.html in the directory of the run when not set")
	flags.StringVar(&c.Update, "update", "", "write the tables into this `file` between its marks: docs/performance.md")
	flags.StringVar(&c.Bin, "bin", "", "use the binaries of this `directory` in place of building them")
	flags.StringVar(&c.Dir, "dir", "", "keep logs in this `directory` in place of one under .run")
	flags.DurationVar(&c.Timeout, "timeout", 2*time.Hour, "bounds the run after the build")
	err := c.parse(flags, args)
	if errors.Is(err, flag.ErrHelp) {
		flags.SetOutput(usage)
		flags.Usage()
	}
	if err != nil {
		return Config{}, err
	}
	c.Scale = full()
	if c.Quick {
		c.Scale = quick()
	}
	if c.Large {
		c.Scale.enlarge()
	}
	c.Given, err = cluster.Given(getenv, envMongo, envServiceBus)
	errs := []error{err}
	if c.World, err = worldOf(c.World); err != nil {
		errs = append(errs, err)
	}
	if c.World != "" && c.Given != nil {
		errs = append(errs, fmt.Errorf("--world is given, but the servers of %s and %s are as they are", envMongo, envServiceBus))
	}
	for name, n := range map[string]int{"repeats": repeats, "events": events, "failovers": failovers} {
		if n < 0 {
			errs = append(errs, fmt.Errorf("--%s is %d, below 0", name, n))
		}
	}
	if lease != 0 && lease < leastLease {
		errs = append(errs, fmt.Errorf("--lease is %v, below %v", lease, leastLease))
	}
	if c.Quick && c.Large {
		errs = append(errs, errors.New("--quick and --large are given, and only one can be"))
	}
	if c.Timeout <= 0 {
		errs = append(errs, fmt.Errorf("--timeout is %v, not above 0", c.Timeout))
	}
	if c.Given != nil {
		c.Scale.Near, c.Scale.Far, c.Scale.Distances = 0, 0, []time.Duration{0}
	}
	c.Scale.change(repeats, events, failovers, lease)
	return c, errors.Join(append(errs, c.unknown()...)...)
}

// leastLease is the shortest lease that the publishers' timing still fits in.
const leastLease = 3 * time.Second

// parse takes flags and names in any order.
func (c *Config) parse(flags *flag.FlagSet, args []string) error {
	for {
		if err := flags.Parse(args); err != nil {
			return err
		}
		if flags.NArg() == 0 {
			return nil
		}
		c.Only = append(c.Only, flags.Arg(0))
		args = flags.Args()[1:]
	}
}

// change sets what is not zero.
func (s *Scale) change(repeats, events, failovers int, lease time.Duration) {
	if repeats > 0 {
		s.Repeats = repeats
	}
	if events > 0 {
		s.Events, s.Aggregates, s.Repaired = events, max(events/2, 1), events
	}
	if failovers > 0 {
		s.Failovers = failovers
	}
	if lease > 0 {
		s.Lease = lease
	}
}

// leavesOut reports that an experiment is not to be made.
func (c *Config) leavesOut(e experiment) bool {
	if len(c.Only) > 0 {
		return !slices.Contains(c.Only, e.name)
	}
	return e.world && c.Given != nil
}

// unknown tells of names that no experiment has.
func (c *Config) unknown() []error {
	var names []string
	var errs []error
	for _, e := range experiments(c.Scale) {
		names = append(names, e.name)
		if e.world && c.Given != nil && slices.Contains(c.Only, e.name) {
			errs = append(errs, fmt.Errorf("%s changes the world of the sandbox; the servers of %s and %s are as they are", e.name, envMongo, envServiceBus))
		}
	}
	for _, name := range c.Only {
		if !slices.Contains(names, name) {
			errs = append(errs, fmt.Errorf("there is no experiment %q: they are %s", name, strings.Join(names, ", ")))
		}
	}
	return errs
}
