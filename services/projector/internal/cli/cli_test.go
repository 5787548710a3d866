package cli_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"changerelay/services/projector/internal/cli"
)

type spec struct {
	Color string `envconfig:"COLOR" default:"red" desc:"what it looks like"`
}

// program is one of every kind of command. What was run is in did.
func program(did *[]string) cli.Program {
	note := func(c *cobra.Command, args []string) error {
		*did = append(*did, strings.Join(append([]string{c.Name()}, args...), " "))
		if cli.JSON(c) {
			*did = append(*did, "json")
		}
		return nil
	}
	move := &cobra.Command{Use: "move PLACE", Short: "move it", Args: cli.Takes(1, 1), RunE: note}
	move.Flags().Bool("dry-run", false, "change nothing")
	move.Flags().Int("from", 0, "where from")
	group := &cobra.Command{Use: "place", Short: "places"}
	group.AddCommand(move, &cobra.Command{Use: "show", Short: "show it", RunE: note})
	return cli.Program{
		Name: "prog", Does: "prog does it.", Version: "v1", Settings: &spec{},
		Serve: func(context.Context, io.Writer) error { *did = append(*did, "serve"); return nil },
		Commands: []*cobra.Command{
			group,
			{Use: "fail", Short: "fail", RunE: func(*cobra.Command, []string) error { return errors.New("it broke") }},
			{Use: "set", Short: "set", RunE: func(*cobra.Command, []string) error {
				return cli.Misconfigured(errors.New("COLOR: is none\nSIZE: is none"))
			}},
			cli.OrAll(&cobra.Command{Use: "drop KIND NAME | --all", Short: "drop", RunE: note}, 1, 2, "all of them"),
			{Use: "many NAME...", Short: "many", Args: cli.Takes(1, -1), RunE: note},
		},
	}
}

func TestProgram_RefusesWhatItDoesNotKnowAndSaysWhatWasMeant(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ args, says string }{
		{"plaec", `prog: there is no command "plaec", did you mean "place"; see prog --help`},
		{"zzzzzz", `prog: there is no command "zzzzzz"; see prog --help`},
		{"place mov x", `prog: there is no command "place mov", did you mean "place move"; see prog place --help`},
		{"place", `prog: place needs one of move, show; see prog place --help`},
		{"place move", `prog: place move takes PLACE, not []; see prog place move --help`},
		{"place move a b", `prog: place move takes PLACE, not ["a" "b"]; see prog place move --help`},
		{"place move a --dryrun", `prog: place move: there is no flag --dryrun, did you mean --dry-run; see prog place move --help`},
		{"place move a --zzzzzz", `prog: place move: there is no flag --zzzzzz; see prog place move --help`},
		{"place move a --from x", `prog: place move: invalid argument "x" for "--from" flag`},
		{"place show x", `prog: place show takes no arguments, not ["x"]; see prog place show --help`},
		{"many", `prog: many takes NAME..., not []; see prog many --help`},
		{"drop", `prog: drop takes KIND NAME | --all, not []; see prog drop --help`},
		{"drop a", `prog: drop takes KIND NAME | --all, not ["a"]; see prog drop --help`},
		{"drop a b c", `prog: drop takes KIND NAME | --all, not ["a" "b" "c"]; see prog drop --help`},
		{"drop a b --all", `prog: drop takes KIND NAME | --all, not ["a" "b"]; see prog drop --help`},
		{"help plaec", `prog: there is no command "plaec", did you mean "place"; see prog help --help`},
		{"help place nothing", `prog: there is no command "place nothing"; see prog help --help`},
		{"--zzzzzz", `prog: there is no flag --zzzzzz; see prog --help`},
	} {
		var did []string
		var stdout, stderr bytes.Buffer
		status := program(&did).Run(t.Context(), strings.Fields(tt.args), &stdout, &stderr)
		if status != cli.Misused || !strings.HasPrefix(stderr.String(), tt.says) || strings.Count(stderr.String(), "\n") != 1 || stdout.Len() > 0 || did != nil {
			t.Errorf("%s: got status %d, %q, %q and %v, want %d and %q", tt.args, status, &stdout, &stderr, did, cli.Misused, tt.says)
		}
	}
}

func TestProgram_RunsWhatItIsAskedFor(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"":                           "serve",
		"place move a":               "move a",
		"place move --from 3 a":      "move a",
		"place move a --json":        "move a, json",
		"place --json move a":        "move a, json",
		"place show --json":          "show, json",
		"drop a b":                   "drop a b",
		"drop --all a":               "drop a",
		"many a b c":                 "many a b c",
		"place move -- --dry-run":    "move --dry-run",
		"place move --dry-run now":   "move now",
		"place move now --dry-run=0": "move now",
	} {
		var did []string
		var stderr bytes.Buffer
		if status := program(&did).Run(t.Context(), strings.Fields(args), io.Discard, &stderr); status != cli.Done || strings.Join(did, ", ") != want {
			t.Errorf("%s: got status %d, %v and %q, want %s", args, status, did, &stderr, want)
		}
	}
}

func TestProgram_SaysWhatIsWrongWithWhichStatus(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]struct {
		status int
		says   string
	}{
		"fail": {cli.Failed, "prog: it broke\n"},
		"set":  {cli.Misused, "prog: the configuration has 2 problem(s):\n  COLOR: is none\n  SIZE: is none\nprog --help lists every setting.\n"},
	} {
		var stderr bytes.Buffer
		if status := program(new([]string)).Run(t.Context(), []string{args}, io.Discard, &stderr); status != want.status || stderr.String() != want.says {
			t.Errorf("%s: got status %d and %q, want %d and %q", args, status, &stderr, want.status, want.says)
		}
	}
}

func TestProgram_HelpsWithEachCommand(t *testing.T) {
	t.Parallel()
	for args, wants := range map[string][]string{
		"--help":             {"prog does it.", "place", "places", "completion", "Exit status: 0", "COLOR", "what it looks like"},
		"-h":                 {"COLOR"},
		"help":               {"COLOR"},
		"place --help":       {"move it", "show it"},
		"place move --help":  {"prog place move PLACE", "--dry-run", "change nothing", "--json"},
		"help place move":    {"prog place move PLACE", "--json"},
		"--version":          {"prog v1\n"},
		"version":            {"prog v1\n"},
		"version --json":     {`{"program":"prog","version":"v1"}` + "\n"},
		"completion bash":    {"bash completion V2 for prog"},
		"place show --help ": {"prog place show"},
	} {
		var stdout, stderr bytes.Buffer
		status := program(new([]string)).Run(t.Context(), strings.Fields(args), &stdout, &stderr)
		for _, want := range wants {
			if status != cli.Done || !strings.Contains(stdout.String(), want) || stderr.Len() > 0 {
				t.Errorf("%s: got status %d, %q and %q, want %q", args, status, &stdout, &stderr, want)
			}
		}
	}
}
