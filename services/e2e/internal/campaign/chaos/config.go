package chaos

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"time"

	"changerelay/services/e2e/internal/campaign/modes"
	"changerelay/services/e2e/internal/check/expect"
	"changerelay/services/e2e/internal/harness/cluster"
	"changerelay/services/e2e/internal/harness/commandline"
)

// Config says what a campaign does.
type Config struct {
	Seed     uint64
	Duration time.Duration
	// Events is how many are written at least, however long that takes.
	Events int
	// Every is the mean time between two faults.
	Every time.Duration
	// Rate is how many events a steady phase writes a second.
	Rate       int
	Publishers int
	Projectors int
	Lease      time.Duration
	// Settle bounds the time for recovery and drain after the last fault, on a machine with
	// processors to spare.
	Settle time.Duration
	// Operators are the mistakes of operators to make instead of other faults: all, or
	// parts of their names with commas between; empty for none.
	Operators string
	// Plain leaves every setting of the services as it is by default, in place of drawing
	// some from the seed. Operators' mistakes are always made so.
	Plain bool
	// Source is whether documents are events or their changes are: events, documents, or
	// empty to draw it from the seed.
	Source string
	// Repairs is whether operators damage, compare and rebuild read models among the faults:
	// yes, no, or empty to draw it from the seed.
	Repairs string
	// World is the sandbox's world where no fault sets another, a name or a file;
	// empty for none.
	World string
	// Backend names servers to use in place of the sandbox; nil for the sandbox. Nothing
	// is done to them.
	Backend *cluster.Endpoints
	// JSON is a file for the report; empty for none.
	JSON string
	// Bin is a directory of built binaries; empty builds them.
	Bin string
	// Dir takes logs and data; empty makes one under .run of the repository.
	Dir string
}

// Environment variables that name servers to run against in place of the sandbox.
const (
	envMongo      = "CHAOS_MONGODB_URI"
	envServiceBus = "CHAOS_SERVICEBUS_CONNECTION_STRING"
)

// Parse reads the command line and the environment. Every problem is reported at once.
func Parse(args []string, getenv func(string) string, usage io.Writer) (Config, error) {
	c := Config{}
	flags := flag.NewFlagSet("chaos", flag.ContinueOnError)
	flags.Uint64Var(&c.Seed, "seed", 1, "makes the plan and the events")
	flags.DurationVar(&c.Duration, "duration", 2*time.Minute, "how long faults are injected")
	flags.IntVar(&c.Events, "events", 0, "inject faults for longer, until so many `events` are written")
	flags.DurationVar(&c.Every, "every", 3*time.Second, "mean time between two faults")
	flags.IntVar(&c.Rate, "rate", 500, "events written a `second` in a steady phase")
	flags.IntVar(&c.Publishers, "publishers", 2, "publisher processes")
	flags.IntVar(&c.Projectors, "projectors", 3, "projector processes")
	flags.DurationVar(&c.Lease, "lease", 3*time.Second, "length of the publishers' lease")
	flags.DurationVar(&c.Settle, "settle", 5*time.Minute, "bounds recovery and drain after the last fault, on a machine with processors to spare")
	flags.StringVar(&c.Operators, "operators", "", "make operators' mistakes instead of other faults: all, or `parts` of their names with commas between")
	flags.BoolVar(&c.Plain, "plain", false, "leave the services' settings as they are by default, in place of drawing some from the seed")
	flags.StringVar(&c.Source, "source", "", "what an event is: `events` for each document, documents for each change of one; drawn from the seed by default")
	flags.StringVar(&c.Repairs, "repairs", "", "damage read models, compare them with the source, resend, rebuild and move among the faults: `yes` or no; drawn from the seed by default")
	flags.StringVar(&c.World, "world", "", "as far, slow and strict as the servers are to be: a `name` or a file, see docs/sandbox.md")
	flags.StringVar(&c.JSON, "json", "", "write the report to this `file` as well, as JSON")
	flags.StringVar(&c.Bin, "bin", "", "use the binaries of this `directory` (sandbox, publisher, projector) in place of building them")
	flags.StringVar(&c.Dir, "dir", "", "keep logs and data in this `directory` in place of one under .run")
	err := commandline.Parse(flags, args, usage)
	if err != nil {
		return Config{}, err
	}
	c.Backend, err = cluster.Given(getenv, envMongo, envServiceBus)
	errs := append(c.problems(), err)
	if c.Backend != nil && (c.Operators != "" || c.World != "" || c.Repairs == "yes") {
		errs = append(errs, fmt.Errorf("--operators, --world and --repairs do things to servers, and those of %s and %s are left alone", envMongo, envServiceBus))
	}
	if flags.NArg() > 0 {
		errs = append(errs, fmt.Errorf("there is no argument %q", flags.Arg(0)))
	}
	return c, errors.Join(errs...)
}

// mostRepaired is how many events a campaign with repairs has at most, unless it is asked
// for: the source keeps all of them.
const mostRepaired = 200_000

// mode is what the services are set to.
func (c *Config) mode() modes.Mode {
	m := modes.Mode{}
	switch {
	case c.Operators != "":
		m = modes.DrawForOperators(c.Seed)
		if c.restores() {
			m.Projector = map[string]string{"ON_GAP": "wait", "GAP_WAIT": "1s"}
		}
	case !c.Plain:
		m = modes.Draw(c.Seed)
		if c.Backend != nil {
			delete(m.Publisher, "BATCHING") // a topic that is given may be partitioned
		}
	}
	switch {
	case c.Repairs == "yes":
		m = m.Repaired()
	case c.Repairs == "no", c.Backend != nil, c.Events > mostRepaired:
		m = m.Unrepaired()
	}
	m.InGo = m.InGo && c.Bin == ""          // given programs have none
	m.Beside = m.Beside && c.Backend == nil // given servers have no subscription for it
	events := c.Plain || c.Backend != nil   // given servers may keep no images
	switch {
	case c.Source == "events" || c.Source == "" && (events || c.restores()):
		return m.OfEvents()
	case c.Source == "documents" && m.Documents == nil:
		return m.OfDocuments(expect.Images{Full: expect.Required})
	}
	return m
}

func (c *Config) problems() []error {
	var errs []error
	if !slices.Contains([]string{"", "events", "documents"}, c.Source) {
		errs = append(errs, fmt.Errorf("--source is %q, neither events nor documents", c.Source))
	}
	switch {
	case !slices.Contains([]string{"", "yes", "no"}, c.Repairs):
		errs = append(errs, fmt.Errorf("--repairs is %q, neither yes nor no", c.Repairs))
	case c.Repairs == "yes" && (c.Operators != "" || c.Source == "documents"):
		errs = append(errs, errors.New("--repairs yes goes with neither --operators nor --source documents"))
	}
	for _, n := range []struct {
		name       string
		got, least int
	}{{"rate", c.Rate, 1}, {"events", c.Events, 0}, {"publishers", c.Publishers, 2}, {"projectors", c.Projectors, 1}} {
		if n.got < n.least {
			errs = append(errs, fmt.Errorf("--%s is %d, below %d", n.name, n.got, n.least))
		}
	}
	if len(chosen(c.Operators)) == 0 {
		errs = append(errs, fmt.Errorf("--operators %s names no mistake", c.Operators))
	}
	for _, d := range []struct {
		name       string
		got, least time.Duration
	}{
		{"duration", c.Duration, time.Second},
		{"every", c.Every, 10 * time.Millisecond},
		{"lease", c.Lease, 3 * time.Second},
		{"settle", c.Settle, time.Second},
	} {
		if d.got < d.least {
			errs = append(errs, fmt.Errorf("--%s is %v, below %v", d.name, d.got, d.least))
		}
	}
	return errs
}
