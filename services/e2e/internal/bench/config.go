package bench

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"time"
)

// Config says what a benchmark does.
type Config struct {
	Events     int
	Aggregates int
	Publishers int
	Projectors int
	Seed       uint64
	// Rate is how many events are written a second; 0 is as many as flow.
	Rate int
	// Backlog is how many events may be written and not yet applied.
	Backlog int
	Timeout time.Duration
	JSON    string
	Bin     string
	Dir     string
	Version string
}

// Parse reads the command line; every problem is reported at once.
func Parse(args []string, usage io.Writer) (Config, error) {
	c := Config{}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	// What is wrong is for the caller to say, once.
	flags.SetOutput(io.Discard)
	flags.IntVar(&c.Events, "events", 1_000_000, "how many events go through")
	flags.IntVar(&c.Aggregates, "aggregates", 50_000, "how many orders they belong to")
	flags.IntVar(&c.Publishers, "publishers", 1, "publisher processes, of which one leads")
	flags.IntVar(&c.Projectors, "projectors", 1, "projector processes")
	flags.Uint64Var(&c.Seed, "seed", 1, "makes the events; the same seed makes the same")
	flags.IntVar(&c.Rate, "rate", 0, "events written a `second`; 0 is as many as flow")
	flags.IntVar(&c.Backlog, "backlog", 100_000, "how many events may be written and not yet applied")
	flags.DurationVar(&c.Timeout, "timeout", 30*time.Minute, "bounds the run after the build")
	flags.StringVar(&c.JSON, "json", "", "write the report to this `file` as well, as JSON")
	flags.StringVar(&c.Bin, "bin", "", "use the binaries of this `directory` in place of building them")
	flags.StringVar(&c.Dir, "dir", "", "keep logs in this `directory` in place of one under .run")
	flags.StringVar(&c.Version, "stamp", "", "`version` to stamp into the binaries")
	err := flags.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		flags.SetOutput(usage)
		flags.Usage()
	}
	if err != nil {
		return Config{}, err
	}
	return c, errors.Join(c.problems(flags.Args())...)
}

func (c *Config) problems(rest []string) []error {
	var errs []error
	if len(rest) > 0 {
		errs = append(errs, fmt.Errorf("there is no argument %q", rest[0]))
	}
	for name, got := range map[string]int{
		"events": c.Events, "aggregates": c.Aggregates, "publishers": c.Publishers, "projectors": c.Projectors, "backlog": c.Backlog,
	} {
		if got < 1 {
			errs = append(errs, fmt.Errorf("--%s is %d, below 1", name, got))
		}
	}
	if c.Rate < 0 {
		errs = append(errs, fmt.Errorf("--rate is %d, below 0", c.Rate))
	}
	if c.Timeout <= 0 {
		errs = append(errs, fmt.Errorf("--timeout is %v, not above 0", c.Timeout))
	}
	return errs
}
