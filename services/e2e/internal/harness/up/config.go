package up

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"changerelay/services/e2e/internal/harness/cluster"
	"changerelay/services/e2e/internal/harness/commandline"
)

// Config says what is to run.
type Config struct {
	// Names are the source's and the read models' databases and collections.
	Names      cluster.Names
	Publishers int
	Projectors int
	// Projections is a file of projections; empty for the latest data of each aggregate.
	Projections string
	// Mongo, ServiceBus and Page are the sandbox's addresses, host:port with port 0 for any.
	Mongo, ServiceBus, Page string
	// Data is a directory in which the sandbox keeps its data; empty for none.
	Data string
	// World is the sandbox's world, a name or a file; empty for none.
	World string
	// Publisher and Projector are more settings of the services.
	Publisher, Projector settings
	// Bin is a directory of built binaries; empty builds them.
	Bin string
	// Dir takes logs; empty makes one under .run of the repository.
	Dir string
}

// settings are variables, NAME=VALUE, of a flag that may be given again and again.
type settings map[string]string

func (s settings) String() string { return "" }

func (s settings) Set(text string) error {
	name, value, found := strings.Cut(text, "=")
	if !found || name == "" {
		return errors.New("want NAME=VALUE")
	}
	s[name] = value
	return nil
}

// Parse reads the command line. Every problem is reported at once.
func Parse(args []string, usage io.Writer) (Config, error) {
	c := Config{Names: cluster.DefaultNames(), Publisher: settings{}, Projector: settings{}}
	flags := flag.NewFlagSet("up", flag.ContinueOnError)
	flags.StringVar(&c.Names.SourceDatabase, "database", c.Names.SourceDatabase, "`database` of the source")
	flags.StringVar(&c.Names.SourceCollection, "collection", c.Names.SourceCollection, "`collection` of the source")
	flags.StringVar(&c.Names.ReadModelDatabase, "read", c.Names.ReadModelDatabase, "`database` of the read models")
	flags.StringVar(&c.Projections, "projections", "", "`file` of projections; without one each aggregate's latest data is kept in the collection latest")
	flags.IntVar(&c.Publishers, "publishers", 1, "publisher processes")
	flags.IntVar(&c.Projectors, "projectors", 1, "projector processes")
	flags.Var(c.Publisher, "publisher", "a setting of the publishers, as `MODE=documents`; may be given again")
	flags.Var(c.Projector, "projector", "a setting of the projectors, as `ON_GAP=wait`; may be given again")
	flags.StringVar(&c.Mongo, "mongo", "127.0.0.1:0", "`address` of the sandbox's MongoDB; port 0 is a free one")
	flags.StringVar(&c.ServiceBus, "servicebus", "127.0.0.1:0", "`address` of the sandbox's Service Bus")
	flags.StringVar(&c.Page, "http", "127.0.0.1:0", "`address` of the sandbox's page")
	flags.StringVar(&c.Data, "data", "", "`directory` in which the sandbox keeps its data; without one they end with it")
	flags.StringVar(&c.World, "world", "", "as far, slow and strict as the servers are to be: a `name` or a file, see docs/sandbox.md")
	flags.StringVar(&c.Bin, "bin", "", "use the binaries of this `directory` (sandbox, publisher, projector) in place of building them")
	flags.StringVar(&c.Dir, "dir", "", "keep logs in this `directory` in place of one under .run")
	err := commandline.Parse(flags, args, usage)
	if err != nil {
		return Config{}, err
	}
	return c, errors.Join(c.problems(flags.Arg(0))...)
}

func (c *Config) problems(argument string) []error {
	var errs []error
	if argument != "" {
		errs = append(errs, fmt.Errorf("there is no argument %q", argument))
	}
	some := func(name string, count int) {
		if count < 1 {
			errs = append(errs, fmt.Errorf("--%s is %d, below 1", name, count))
		}
	}
	some("publishers", c.Publishers)
	some("projectors", c.Projectors)
	if c.Projections != "" {
		path, err := filepath.Abs(c.Projections)
		if err == nil {
			_, err = os.Stat(path)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("--projections: %w", err))
		}
		c.Projections = path
	}
	return errs
}
