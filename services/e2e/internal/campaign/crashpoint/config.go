package crashpoint

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"

	"changerelay/services/e2e/internal/campaign/modes"
	"changerelay/services/e2e/internal/harness/commandline"
)

// Config says what a campaign does.
type Config struct {
	Seed uint64
	// Kills is how often each step is the last of a process.
	Kills int
	// Only limits it to steps whose name contains it.
	Only string
	// Plain leaves every setting of the services as it is by default, in place of drawing
	// some from the seed.
	Plain bool
	// JSON is a file for the report; empty for none.
	JSON string
	// Bin is a directory of built binaries; empty builds them.
	Bin string
	// Dir takes logs; empty makes one under .run of the repository.
	Dir string
}

// Parse reads the command line. Every problem is reported at once.
func Parse(args []string, usage io.Writer) (Config, error) {
	c := Config{}
	flags := flag.NewFlagSet("crashpoints", flag.ContinueOnError)
	flags.Uint64Var(&c.Seed, "seed", 1, "makes the events, and how often a step comes by before the kill")
	flags.IntVar(&c.Kills, "kills", 50, "kills at each step")
	flags.StringVar(&c.Only, "only", "", "only the steps whose name contains this `text`")
	flags.BoolVar(&c.Plain, "plain", false, "leave the services' settings as they are by default, in place of drawing some from the seed")
	flags.StringVar(&c.JSON, "json", "", "write the report to this `file` as well, as JSON")
	flags.StringVar(&c.Bin, "bin", "", "use the binaries of this `directory` (sandbox, publisher, projector) in place of building them")
	flags.StringVar(&c.Dir, "dir", "", "keep logs in this `directory` in place of one under .run")
	err := commandline.Parse(flags, args, usage)
	if err != nil {
		return Config{}, err
	}
	var errs []error
	if c.Kills < 1 {
		errs = append(errs, fmt.Errorf("--kills is %d, below 1", c.Kills))
	}
	if len(c.steps()) == 0 {
		errs = append(errs, fmt.Errorf("--only %q: no step has that in its name, of those that the seed's settings have", c.Only))
	}
	if flags.NArg() > 0 {
		errs = append(errs, fmt.Errorf("there is no argument %q", flags.Arg(0)))
	}
	return c, errors.Join(errs...)
}

// mode is what the services are set to. Documents of another key are among theirs, as they
// alone are written in transactions.
func (c Config) mode() modes.Mode {
	if c.Plain {
		return modes.Mode{Keyed: true}
	}
	m := modes.Draw(c.Seed).Unrepaired()
	m.Keyed = true
	m.InGo = m.InGo && c.Bin == "" // given programs have none
	return m
}

func (c Config) steps() []Step {
	m := c.mode()
	// Of several collections, and of what has no versions, nothing is sent again as it was.
	once := m.Documents != nil || m.Publisher["SOURCE_COLLECTIONS"] != ""
	return slices.DeleteFunc(Steps(), func(s Step) bool {
		return !strings.Contains(s.Name, c.Only) || once && s.Prelude == Resending
	})
}
