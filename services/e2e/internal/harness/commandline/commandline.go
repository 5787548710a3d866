// Package commandline reads the command lines of the tools, and says what is wrong with
// one as a person would: which flag was probably meant, and what values it takes.
package commandline

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
	"time"
)

// undefined begins what the library says of a flag that there is none of.
const undefined = "flag provided but not defined: -"

// Parse reads args into flags. With flag.ErrHelp it has printed to usage which flags
// there are; any other error is for the caller to print.
func Parse(flags *flag.FlagSet, args []string, usage io.Writer) error {
	flags.SetOutput(io.Discard) // the library would print the usage for each mistake
	err := flags.Parse(args)
	if err == nil {
		return nil
	}
	if errors.Is(err, flag.ErrHelp) {
		flags.SetOutput(usage)
		flags.Usage()
		return err
	}
	says := err.Error()
	if name, unknown := strings.CutPrefix(says, undefined); unknown {
		says = "there is no flag --" + strings.TrimLeft(name, "-")
		if meant := nearest(flags, name); meant != "" {
			says += ", did you mean --" + meant
		}
		return errors.New(says)
	}
	flags.VisitAll(func(f *flag.Flag) {
		if before, found := strings.CutSuffix(says, " -"+f.Name+": parse error"); found {
			says = before + " -" + f.Name + ": want " + kind(f)
		}
	})
	return errors.New(says)
}

// kind says what values a flag takes.
func kind(f *flag.Flag) string {
	getter, _ := f.Value.(flag.Getter)
	if getter == nil {
		return "another value"
	}
	switch getter.Get().(type) {
	case time.Duration:
		return "a time such as 5ms, 30s or 1h"
	case bool:
		return "true or false"
	}
	return fmt.Sprintf("a whole number such as %s", f.DefValue)
}

// nearest is the flag that is probably meant by a name; empty where none is.
func nearest(flags *flag.FlagSet, name string) string {
	best, meant := max(1, min(2, len(name)/3))+1, ""
	flags.VisitAll(func(f *flag.Flag) {
		d := distance(name, f.Name)
		if len(name) > 2 && (strings.HasPrefix(f.Name, name) || strings.HasPrefix(name, f.Name)) {
			d = 1
		}
		if d < best {
			best, meant = d, f.Name
		}
	})
	return meant
}

// distance is how many bytes have to be put in, taken out or replaced to make b of a.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := before
			if a[i] != b[j] {
				replaced++
			}
			before = row[j+1]
			row[j+1] = min(replaced, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
