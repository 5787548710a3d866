package commandline_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"changerelay/services/e2e/internal/bench/plan"
	"changerelay/services/e2e/internal/bench/suite"
	"changerelay/services/e2e/internal/campaign/chaos"
	"changerelay/services/e2e/internal/campaign/crashpoint"
	"changerelay/services/e2e/internal/campaign/demo"
	"changerelay/services/e2e/internal/campaign/long"
	"changerelay/services/e2e/internal/harness/cluster"
	"changerelay/services/e2e/internal/harness/up"
)

// made is a command of make, at the beginning of a line of a block or between backquotes,
// and what stands behind its target; fenced is a block.
var (
	made   = regexp.MustCompile("(?m)(?:^|`)make ([a-z-]+)([^#\n`]*)")
	fenced = regexp.MustCompile("(?ms)^ *```.*?^ *```")
)

// given are the arguments of a tool in a command of make.
var given = regexp.MustCompile(`ARGS=(?:"([^"]*)"|(\S+))`)

// word is one argument, which may be in single quotes.
var word = regexp.MustCompile(`'[^']*'|[^ ']+`)

// What the pages tell people to type must be something that the tool takes.
func TestDocs_TheArgumentsOfEveryCommandAreTaken(t *testing.T) {
	t.Parallel()
	nothing := func(string) string { return "" }
	tools := map[string]func(args []string) error{
		"demo":        func(args []string) error { _, err := demo.Parse(args, nothing, io.Discard); return err },
		"chaos":       func(args []string) error { _, err := chaos.Parse(args, nothing, io.Discard); return err },
		"long":        func(args []string) error { _, err := long.Parse(args, io.Discard); return err },
		"crashpoints": func(args []string) error { _, err := crashpoint.Parse(args, io.Discard); return err },
		"up":          func(args []string) error { _, err := up.Parse(args, io.Discard); return err },
		"bench":       func(args []string) error { _, err := suite.Parse(args, nothing, io.Discard); return err },
		"plan":        func(args []string) error { _, err := plan.Parse(args, io.Discard); return err },
	}
	root, err := cluster.Root()
	if err != nil {
		t.Fatal(err)
	}
	makefile := read(t, filepath.Join(root, "Makefile"))
	pages, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, page := range append(pages, filepath.Join(root, "README.md")) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, command := range makes(string(text)) {
			if err := takes(makefile, command[1], command[2]); err != nil {
				t.Errorf("%s: %s: %v", filepath.Base(page), command[0], err)
			}
			parse, words := tools[command[1]], given.FindStringSubmatch(command[2])
			if parse == nil || words == nil || strings.Contains(words[0], "…") {
				continue
			}
			args := word.FindAllString(words[1]+words[2], -1)
			for i := range args {
				args[i] = strings.Trim(args[i], "'")
			}
			seen[command[1]] = true
			// The files that the pages name are the reader's.
			if err := parse(args); err != nil && !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s: %s: %v", filepath.Base(page), command[0], err)
			}
		}
	}
	if len(seen) != len(tools) {
		t.Errorf("found commands of %v, want of all %d tools", seen, len(tools))
	}
}

// makes returns the commands of make on a page, as made has them.
func makes(text string) [][]string {
	var all [][]string
	for _, block := range fenced.FindAllString(text, -1) {
		all = append(all, made.FindAllStringSubmatch(block, -1)...)
	}
	for _, found := range made.FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
		if strings.HasPrefix(found[0], "`") {
			all = append(all, found)
		}
	}
	return all
}

// takes says what the Makefile has no use for in a command: its target, or a variable.
func takes(makefile, target, rest string) error {
	_, recipe, found := strings.Cut(makefile, "\n"+target+":")
	if !found {
		return errors.New("there is no such target")
	}
	recipe, _, _ = strings.Cut(recipe, "\n.PHONY:")
	for _, variable := range regexp.MustCompile(`(?:^| )([A-Z_]+)=`).FindAllStringSubmatch(rest, -1) {
		// What scripts and tests read comes from the environment, and is not looked at here.
		name := variable[1]
		if slices.Contains([]string{"ARGS", "SEED", "DURATION", "KILLS", "N"}, name) && !strings.Contains(recipe, "$("+name) {
			return fmt.Errorf("the target has no use for %s", name)
		}
	}
	return nil
}

func TestDocs_ATargetOrVariableThatThereIsNotIsFound(t *testing.T) {
	t.Parallel()
	const makefile = "x\n.PHONY: a\na: b ## says\n\t@run $(ARGS)\n\n.PHONY: b\nb: ## says\n\t@run --seed $(or $(SEED),1)\n"
	for command, want := range map[string]string{
		`a ARGS="--x 1"`: "<nil>",
		"b SEED=…":       "<nil>",
		"b ARGS=x":       "the target has no use for ARGS",
		"c":              "there is no such target",
	} {
		target, rest, _ := strings.Cut(command, " ")
		if got := fmt.Sprint(takes(makefile, target, rest)); got != want {
			t.Errorf("make %s: got %s, want %s", command, got, want)
		}
	}
}
