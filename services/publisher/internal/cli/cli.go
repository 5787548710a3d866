// Package cli gives the command line of the service its shape, on top of
// github.com/spf13/cobra: one tree of commands, each with its own help; errors
// of one line that name what was probably meant; and the same exit statuses for
// all. Nothing that was typed is passed over: a word or a flag that no command
// knows is refused before anything is done.
package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"changerelay/services/publisher/internal/settings"
)

// Exit statuses.
const (
	Done    = 0 // or stopped as asked
	Failed  = 1 // or refused, or not found
	Misused = 2 // wrong arguments or settings
)

// statuses is the part of the root's help that says what the statuses mean.
const statuses = "Exit status: 0 done or stopped as asked, 1 failed, refused or not found, 2 wrong arguments or settings."

// Program is a binary and what it says of itself.
type Program struct {
	// Name is that of the binary, Does what it does in a sentence.
	Name, Does string
	Version    string
	// Serve runs the service. The program does so when it is called without a command.
	Serve func(ctx context.Context, stderr io.Writer) error
	// Settings is the struct of the environment's variables.
	Settings any
	Commands []*cobra.Command
}

// ErrUsage is what an error of Usagef is, whatever it says.
var ErrUsage = errors.New("wrong usage")

// usageError is what is wrong with the arguments.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func (e usageError) Is(target error) bool { return target == ErrUsage }

// Usagef returns an error that says what is wrong with a command's arguments.
func Usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// configurationError is what is wrong with the settings, a line for each.
type configurationError struct{ error }

func (e configurationError) Unwrap() error { return e.error }

// Misconfigured marks an error of settings.Load, or is nil for none.
func Misconfigured(err error) error {
	if err == nil {
		return nil
	}
	return configurationError{err}
}

// Run does what args ask for, says on stderr what went wrong, and returns the
// exit status.
func (p Program) Run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	command, err := p.Do(ctx, args, stdout, stderr)
	var misconfigured configurationError
	switch {
	case err == nil:
		return Done
	case errors.As(err, &misconfigured):
		settings.Report(stderr, p.Name, misconfigured.error)
		return Misused
	case errors.Is(err, ErrUsage):
		fmt.Fprintf(stderr, "%s: %s; see %s --help\n", p.Name, err, command)
		return Misused
	}
	fmt.Fprintf(stderr, "%s: %s\n", p.Name, err)
	return Failed
}

// Do does what args ask for. It returns which command that was, with those that
// it is below.
func (p Program) Do(ctx context.Context, args []string, stdout, stderr io.Writer) (command string, err error) {
	root := p.root()                          //nolint:contextcheck // it gets the context when it is executed
	root.SetArgs(append([]string{}, args...)) // nil would be those of the process
	root.SetOut(stdout)
	root.SetErr(stderr)
	c, err := root.ExecuteContextC(ctx)
	return c.CommandPath(), err
}

func (p Program) root() *cobra.Command {
	root := &cobra.Command{
		Use: p.Name, Long: p.Does + "\n\nWithout a command it does so until SIGTERM or SIGINT.\n\n" + statuses, Version: p.Version,
		Args:          cobra.ArbitraryArgs,
		SilenceErrors: true, SilenceUsage: true, DisableFlagsInUseLine: true, SuggestionsMinimumDistance: near,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknown(c, args[0])
			}
			return p.Serve(c.Context(), c.ErrOrStderr())
		},
	}
	root.SetVersionTemplate("{{.Name}} {{.Version}}\n")
	root.AddCommand(p.Commands...)
	root.AddCommand(p.version())
	for _, c := range root.Commands() {
		c.PersistentFlags().Bool(jsonFlag, false, "print JSON, one object a line")
		shape(c)
	}
	root.SetHelpCommand(helpCommand(root))
	root.SetFlagErrorFunc(wrongFlag)
	help := root.HelpFunc()
	root.SetHelpFunc(func(c *cobra.Command, args []string) {
		help(c, args)
		if c == root {
			fmt.Fprintf(c.OutOrStdout(), "\nSettings, all by environment:\n\n")
			_ = settings.Usage(c.OutOrStdout(), p.Settings) // a help that cannot be written has nobody to tell
		}
	})
	return root
}

// shape completes a command and those below it: a group wants one of its own, unless
// it does something by itself, and every other command takes the arguments that it
// names.
func shape(c *cobra.Command) {
	c.DisableFlagsInUseLine = true
	if c.HasSubCommands() {
		c.SuggestionsMinimumDistance = near
		c.Args = cobra.ArbitraryArgs
		itself := c.RunE
		c.RunE = func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknown(c, args[0])
			}
			if itself != nil {
				return itself(c, args)
			}
			return Usagef("%s needs one of %s", path(c), strings.Join(names(c), ", "))
		}
		for _, below := range c.Commands() {
			shape(below)
		}
		return
	}
	if c.Args == nil {
		c.Args = Takes(0, 0)
	}
}

const jsonFlag = "json"

// near is how many letters may be wrong in a name that was probably meant.
const near = 2

// JSON tells whether a command was asked for JSON.
func JSON(c *cobra.Command) bool {
	asked, err := c.Flags().GetBool(jsonFlag)
	return err == nil && asked
}

func (p Program) version() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "say which version this is",
		RunE: func(c *cobra.Command, _ []string) error {
			if !JSON(c) {
				_, err := fmt.Fprintln(c.OutOrStdout(), p.Name, p.Version)
				return err
			}
			return json.NewEncoder(c.OutOrStdout()).Encode(map[string]string{"program": p.Name, "version": p.Version})
		},
	}
}

func helpCommand(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use: "help [COMMAND]", Short: "help about a command",
		RunE: func(_ *cobra.Command, args []string) error {
			c, rest, err := root.Find(args)
			if err != nil {
				return err
			}
			if len(rest) > 0 {
				return unknown(c, rest[0])
			}
			c.InitDefaultHelpFlag()
			return c.Help()
		},
	}
}

// Takes checks that a command has at least and at most so many arguments; most
// is negative for any number. The error names them as the command's usage does.
func Takes(least, most int) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) >= least && (most < 0 || len(args) <= most) && !slices.Contains(args, "") {
			return nil
		}
		_, takes, _ := strings.Cut(c.Use, " ")
		if takes == "" {
			takes = "no arguments"
		}
		return Usagef("%s takes %s, not %q", path(c), takes, args)
	}
}

// OrAll has a command take so many arguments, and behind them one to most in all,
// or --all in their place.
func OrAll(c *cobra.Command, before, most int, means string) *cobra.Command {
	all := c.Flags().Bool("all", false, means)
	c.Args = func(c *cobra.Command, args []string) error {
		if *all {
			return Takes(before, before)(c, args)
		}
		return Takes(before+1, most)(c, args)
	}
	return c
}

// path is a command's name below the program.
func path(c *cobra.Command) string {
	_, below, _ := strings.Cut(c.CommandPath(), " ")
	return below
}

func names(c *cobra.Command) []string {
	var names []string
	for _, below := range c.Commands() {
		if below.IsAvailableCommand() {
			names = append(names, below.Name())
		}
	}
	return names
}

// unknown is the error for a word that is no command below c.
func unknown(c *cobra.Command, word string) error {
	full := strings.TrimSpace(path(c) + " " + word)
	if meant := c.SuggestionsFor(word); len(meant) > 0 {
		return Usagef("there is no command %q, did you mean %q", full, strings.TrimSpace(path(c)+" "+meant[0]))
	}
	return Usagef("there is no command %q", full)
}

// wrongFlag is the error for a flag that c does not take, or whose value it
// cannot read.
func wrongFlag(c *cobra.Command, err error) error {
	says := err.Error()
	if missing := new(pflag.NotExistError); errors.As(err, &missing) {
		says = "there is no flag --" + missing.GetSpecifiedName()
		if meant := flagsLike(c, missing.GetSpecifiedName()); len(meant) > 0 {
			says += ", did you mean --" + meant[0]
		} else if missing.GetSpecifiedShortnames() != "" && strings.Contains(c.Use, " ") {
			says += "; an argument that begins with - goes behind --, as in " + c.Name() + " -- " + strings.TrimPrefix(c.Use, c.Name()+" ")
		}
	}
	return Usagef("%s", strings.TrimPrefix(path(c)+": "+says, ": "))
}

// flagsLike returns the flags that may be meant by a name. The library measures
// how near names of commands are, so it is given commands of the flags' names.
func flagsLike(c *cobra.Command, name string) []string {
	flags := &cobra.Command{SuggestionsMinimumDistance: near}
	c.Flags().VisitAll(func(f *pflag.Flag) {
		flags.AddCommand(&cobra.Command{Use: f.Name, Run: func(*cobra.Command, []string) {}})
	})
	return flags.SuggestionsFor(name)
}
