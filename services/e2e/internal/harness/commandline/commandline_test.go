package commandline

import (
	"errors"
	"flag"
	"io"
	"strings"
	"testing"
	"time"
)

func flags() *flag.FlagSet {
	f := flag.NewFlagSet("tool", flag.ContinueOnError)
	f.Int("rate", 5, "events a second")
	f.Duration("duration", time.Second, "how long")
	f.String("projections", "", "files")
	f.String("publisher", "", "a setting")
	f.Bool("keep", false, "stay")
	return f
}

func TestParse_SaysWhatIsWrongAndWhatWasMeant(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"--rat 5":         "there is no flag --rat, did you mean --rate",
		"--durration 5s":  "there is no flag --durration, did you mean --duration",
		"-projection x":   "there is no flag --projection, did you mean --projections",
		"--publishers 2":  "there is no flag --publishers, did you mean --publisher",
		"--colour red":    "there is no flag --colour",
		"--rate x":        `invalid value "x" for flag -rate: want a whole number such as 5`,
		"--duration 5":    `invalid value "5" for flag -duration: want a time such as 5ms, 30s or 1h`,
		"--keep=maybe":    `invalid boolean value "maybe" for -keep: want true or false`,
		"--rate":          "flag needs an argument: -rate",
		"--rate 1 --keep": "",
	} {
		err := Parse(flags(), strings.Fields(args), io.Discard)
		if got := errors.Join(err); (got == nil) != (want == "") || got != nil && got.Error() != want {
			t.Errorf("%s: got %v, want %q", args, got, want)
		}
	}
}

func TestParse_HelpListsTheFlags(t *testing.T) {
	t.Parallel()
	var usage strings.Builder
	if err := Parse(flags(), []string{"-h"}, &usage); !errors.Is(err, flag.ErrHelp) || strings.Count(usage.String(), "-rate") != 1 {
		t.Errorf("got %v and %q, want the flags, once", err, usage.String())
	}
}
