package demo

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"changerelay/services/e2e/internal/harness/cluster"
	"changerelay/services/e2e/internal/harness/commandline"
	"changerelay/services/e2e/internal/harness/input"
)

// Config says what a demo does.
type Config struct {
	// Rate is how many events are written a second.
	Rate int
	// Duration is how long events are written, at least.
	Duration time.Duration
	// Aggregates is how many orders there are.
	Aggregates int
	Publishers int
	Projectors int
	// Seed makes the events, and which projector is killed.
	Seed uint64
	// Lease is the length of the publishers' lease.
	Lease time.Duration
	// Faults says whether anything is killed.
	Faults bool
	// Timeout bounds the run after the build.
	Timeout time.Duration
	// JSON is a file for the report; empty for none.
	JSON string
	// Input is a file of events in place of the generator's; empty for those.
	Input string
	// Projections are files of projections to keep of Input, with commas between;
	// empty for the latest data of each aggregate.
	Projections string
	// Keep says that the processes stay up behind the report, until they are told to stop.
	Keep bool
	// Bin is a directory of built binaries; empty builds them.
	Bin string
	// Dir takes logs and binaries; empty makes one under .run of the repository.
	Dir string
	// Version is stamped into the binaries; empty leaves theirs.
	Version string
	// World is the sandbox's world, a name or a file; empty for none.
	World string
	// Backend names servers to use in place of the sandbox; nil for the sandbox.
	Backend *cluster.Endpoints

	// log is what Input holds.
	log input.Log
}

// Environment variables that name servers to run against in place of the sandbox.
const (
	envMongo      = "DEMO_MONGODB_URI"
	envServiceBus = "DEMO_SERVICEBUS_CONNECTION_STRING"
)

// leastLease is the shortest lease that the publishers' timing still fits in.
const leastLease = 3 * time.Second

// Parse reads the command line and, if there is one, the whole input file. Every
// problem is reported at once.
func Parse(args []string, getenv func(string) string, usage io.Writer) (Config, error) {
	c := Config{}
	noFaults, fields := false, ""
	flags := flag.NewFlagSet("demo", flag.ContinueOnError)
	flags.IntVar(&c.Rate, "rate", 2000, "events written a `second`")
	flags.DurationVar(&c.Duration, "duration", 30*time.Second, "how long events are written, at least: writing goes on until the faults are through")
	flags.IntVar(&c.Aggregates, "aggregates", 5000, "how many orders there are")
	flags.IntVar(&c.Publishers, "publishers", 2, "publisher processes")
	flags.IntVar(&c.Projectors, "projectors", 3, "projector processes")
	flags.Uint64Var(&c.Seed, "seed", 1, "makes the events; the same seed makes the same")
	flags.DurationVar(&c.Lease, "lease", 6*time.Second, "length of the publishers' lease; heartbeat and renewal deadline follow in the usual proportion")
	flags.BoolVar(&noFaults, "no-faults", false, "kill nothing")
	flags.DurationVar(&c.Timeout, "timeout", 150*time.Second, "bounds the run after the build, beside what the writing of --input takes")
	flags.StringVar(&c.JSON, "json", "", "write the report to this `file` as well, as JSON")
	flags.StringVar(&c.Input, "input", "", "take the events from this `file` in place of the generator: one JSON object a line with aggregateId, type, time and, if there are such, version and data; a table (.csv); or an event log in XES (.xes); each may be packed (.gz)")
	flags.StringVar(&fields, "fields", "", "which `fields` of the lines, or columns of a table, are what: aggregateId=NAME,type=NAME,time=NAME,version=NAME and, of lines, data=NAME")
	flags.StringVar(&c.Projections, "projections", "", "keep the projections of these `files` of the input, in place of each aggregate's latest data")
	flags.BoolVar(&c.Keep, "keep", false, "leave everything up behind the report, until Ctrl-C")
	flags.StringVar(&c.World, "world", "", "as far, slow and strict as the servers are to be: a `name` or a file, see docs/sandbox.md")
	flags.StringVar(&c.Bin, "bin", "", "use the binaries of this `directory` (sandbox, publisher, projector) in place of building them")
	flags.StringVar(&c.Dir, "dir", "", "keep logs in this `directory` in place of one under .run")
	flags.StringVar(&c.Version, "stamp", "", "`version` to stamp into the binaries")
	err := commandline.Parse(flags, args, usage)
	if err != nil {
		return Config{}, err
	}
	c.Faults = !noFaults
	errs := c.problems()
	if flags.NArg() > 0 {
		errs = append(errs, fmt.Errorf("there is no argument %q", flags.Arg(0)))
	}
	c.Backend, err = cluster.Given(getenv, envMongo, envServiceBus)
	errs = append(errs, err)
	if c.World != "" && c.Backend != nil {
		errs = append(errs, fmt.Errorf("--world is %q, but the servers of %s and %s are as they are", c.World, envMongo, envServiceBus))
	}
	return c, errors.Join(append(errs, c.own(fields)...)...)
}

// own reads what is the user's own.
func (c *Config) own(fields string) []error {
	var errs []error
	switch {
	case c.Input != "":
		of, err := input.ParseFields(fields)
		if err != nil {
			return []error{fmt.Errorf("--fields: %w", err)}
		}
		c.log, err = input.ReadFile(c.Input, of)
		errs = append(errs, err)
		c.Timeout += time.Duration(float64(len(c.log.Events)) / float64(max(c.Rate, 1)) * float64(time.Second))
	case fields != "" || c.Projections != "":
		errs = append(errs, errors.New("--fields and --projections are about the events of --input, and there is none"))
	}
	if c.Projections != "" {
		files := strings.Split(c.Projections, ",")
		for i, file := range files {
			path, err := filepath.Abs(file)
			if err == nil {
				_, err = os.Stat(path)
			}
			if err != nil {
				errs = append(errs, fmt.Errorf("--projections: %w", err))
			}
			files[i] = path
		}
		c.Projections = strings.Join(files, ",")
	}
	return errs
}

// problems lists what is wrong with the values.
func (c *Config) problems() []error {
	var errs []error
	some := func(name string, got int) {
		if got < 1 {
			errs = append(errs, fmt.Errorf("--%s is %d, below 1", name, got))
		}
	}
	some("rate", c.Rate)
	some("aggregates", c.Aggregates)
	some("publishers", c.Publishers)
	some("projectors", c.Projectors)
	if c.Faults && c.Publishers == 1 {
		errs = append(errs, errors.New("--publishers is 1, and nobody could take over: use 2, or --no-faults"))
	}
	if c.Lease < leastLease {
		errs = append(errs, fmt.Errorf("--lease is %v, below %v", c.Lease, leastLease))
	}
	if c.Duration <= 0 {
		errs = append(errs, fmt.Errorf("--duration is %v, not above 0", c.Duration))
	}
	if c.Timeout <= 0 {
		errs = append(errs, fmt.Errorf("--timeout is %v, not above 0", c.Timeout))
	}
	return errs
}

// planned is how many events are to be written.
func (c *Config) planned() int {
	if c.Input != "" {
		return len(c.log.Events)
	}
	return int(float64(c.Rate) * c.Duration.Seconds())
}

// slack is what failovers may take beyond their time beside the servers.
func (c *Config) slack() time.Duration {
	if c.World == "" || c.World == "loopback" {
		return 0
	}
	return worldSlack
}
