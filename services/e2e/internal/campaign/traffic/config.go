package traffic

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"time"
)

// Mode says what is done.
type Mode string

// The modes.
const (
	// Load writes until it is stopped.
	Load Mode = "load"
	// Verify writes for a while to a fresh system, and judges it.
	Verify Mode = "verify"
)

// Config says where the system is and what to do with it.
type Config struct {
	Mode       Mode
	MongoURI   string
	ServiceBus string // connection string; for Verify
	Rate       int    // events a second
	Aggregates int
	Seed       uint64
	Duration   time.Duration // of the writing; for Verify
	Timeout    time.Duration // for any one state that is waited for; for Verify
}

// Parse reads the arguments, and the connection strings from the environment;
// every problem is reported at once.
func Parse(args []string, getenv func(string) string, usage io.Writer) (Config, error) {
	c := Config{MongoURI: getenv("MONGODB_URI"), ServiceBus: getenv("SERVICEBUS_CONNECTION_STRING")}
	flags := flag.NewFlagSet("traffic load|verify", flag.ContinueOnError)
	// What is wrong is for the caller to say, once.
	flags.SetOutput(io.Discard)
	flags.IntVar(&c.Rate, "rate", 100, "events written a `second`")
	flags.IntVar(&c.Aggregates, "aggregates", 500, "how many orders they belong to")
	flags.Uint64Var(&c.Seed, "seed", 1, "makes the events; the same seed makes the same")
	flags.DurationVar(&c.Duration, "duration", 20*time.Second, "verify: how long to write")
	flags.DurationVar(&c.Timeout, "timeout", 2*time.Minute, "verify: how long to wait for the system to start and to catch up")
	if len(args) > 0 {
		c.Mode, args = Mode(args[0]), args[1:]
	}
	err := flags.Parse(args)
	if c.Mode == "--help" || c.Mode == "-h" || errors.Is(err, flag.ErrHelp) {
		flags.SetOutput(usage)
		flags.Usage()
		return Config{}, flag.ErrHelp
	}
	return c, errors.Join(err, errors.Join(c.problems(flags.Args())...))
}

func (c *Config) problems(rest []string) []error {
	var errs []error
	if c.Mode != Load && c.Mode != Verify {
		errs = append(errs, fmt.Errorf("the first argument is %q, neither load nor verify", c.Mode))
	}
	if len(rest) > 0 {
		errs = append(errs, fmt.Errorf("there is no argument %q", rest[0]))
	}
	if c.MongoURI == "" {
		errs = append(errs, errors.New("MONGODB_URI is required: the connection string of the source and the read model"))
	}
	if c.Mode == Verify && c.ServiceBus == "" {
		errs = append(errs, errors.New("SERVICEBUS_CONNECTION_STRING is required: the topic is watched"))
	}
	for name, got := range map[string]int{"rate": c.Rate, "aggregates": c.Aggregates} {
		if got < 1 {
			errs = append(errs, fmt.Errorf("--%s is %d, below 1", name, got))
		}
	}
	for name, got := range map[string]time.Duration{"duration": c.Duration, "timeout": c.Timeout} {
		if got <= 0 {
			errs = append(errs, fmt.Errorf("--%s is %v, not above 0", name, got))
		}
	}
	return errs
}
