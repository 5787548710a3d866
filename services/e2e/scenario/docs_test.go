package scenario

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"changerelay/services/e2e/internal/harness/cluster"
)

// table is what a program's help says of one of its commands.
type table struct {
	commands []string
	// flags are its flags, and whether each takes a value.
	flags map[string]bool
	// most is how many arguments it takes at most; -1 for any number.
	most int
}

var (
	helpUsage = regexp.MustCompile(`(?m)^Usage:\n((?:  .*\n)+)`)
	helpList  = regexp.MustCompile(`(?m)^Available Commands:\n((?:  .*\n)+)`)
	helpFlag  = regexp.MustCompile(`(?m)^  (?:-\w,|   ) --([\w-]+)(?: (\w+))?  `)
	// plainFlag is how the sandbox, which uses the standard library, lists a flag.
	plainFlag = regexp.MustCompile(`(?m)^  -([\w-]+)(?: (\w+))?$`)
)

// tableOf reads the help of a command.
func tableOf(help string) table {
	t := table{flags: map[string]bool{"help": false}}
	for _, flag := range slices.Concat(helpFlag.FindAllStringSubmatch(help, -1), plainFlag.FindAllStringSubmatch(help, -1)) {
		t.flags[flag[1]] = flag[2] != ""
	}
	if list := helpList.FindStringSubmatch(help); list != nil {
		for line := range strings.Lines(list[1]) {
			t.commands = append(t.commands, strings.Fields(line)[0])
		}
	}
	usage := helpUsage.FindStringSubmatch(help)
	if usage == nil {
		return t
	}
	for line := range strings.Lines(usage[1]) {
		most := 0
		words := strings.Fields(line)
		for i, word := range words {
			name := strings.Trim(word, "[].")
			switch {
			case name == "" || strings.ToUpper(name) != name || i > 0 && strings.HasPrefix(words[i-1], "--"):
				continue // a command, or a flag and its value
			case strings.Contains(word, "..."):
				most = -1
			case most >= 0:
				most++
			}
		}
		if most < 0 || t.most >= 0 && most > t.most {
			t.most = most
		}
	}
	return t
}

// wrongWith says what a program would not take of the words behind its name. An ellipsis
// stands for what a page leaves out, and a command that a page only mentions may lack its
// arguments and the value of its last flag.
func wrongWith(words []string, ask func(path []string) (table, error)) error {
	var path []string
	at, err := ask(nil)
	for err == nil && len(words) > 0 && slices.Contains(at.commands, words[0]) {
		path, words = append(path, words[0]), words[1:]
		at, err = ask(path)
	}
	if err != nil {
		return err
	}
	arguments := 0
	for i := 0; i < len(words); i++ {
		word := words[i]
		name, isFlag := strings.CutPrefix(word, "--")
		switch name, _, given := strings.Cut(name, "="); {
		case strings.Contains(word, "…") && !isFlag && strings.Trim(word, "[]") == "…":
			return nil
		case !isFlag && len(at.commands) > 0 && strings.ToUpper(word) == word:
			return nil // it stands for one of them
		case !isFlag && len(at.commands) > 0:
			return fmt.Errorf("there is no command %q", word)
		case !isFlag:
			arguments++
			if at.most >= 0 && arguments > at.most {
				return fmt.Errorf("it takes no argument %q", word)
			}
		default:
			valued, known := at.flags[name]
			if !known {
				return fmt.Errorf("there is no flag --%s", name)
			}
			if valued && !given {
				i++
			}
		}
	}
	return nil
}

// inPages matches a command of a service or the sandbox between backquotes, at the
// beginning of a line of a block, and as a service's own page names it.
var (
	inText   = regexp.MustCompile("`((?:bin/)?(?:publisher|projector|sandbox)\\s[^`]+)`")
	inBlock  = regexp.MustCompile(`(?m)^(?:bin/)?(?:publisher|projector|sandbox) [^#\n]+`)
	inScript = regexp.MustCompile("[\"`]((?:publisher|projector)(?: [a-z]+)+)[\"`]")
	inPipe   = regexp.MustCompile(`^(?:bin/)?(?:publisher|projector|sandbox)\s`)
	argument = regexp.MustCompile(`'[^']*'|"[^"]*"|\S+`)
	block    = regexp.MustCompile("(?ms)^ *```.*?^ *```")
)

// TestDocs_EveryCommandIsOneThatTheProgramsTake holds what the pages tell people to type
// against the programs' own help.
func TestDocs_EveryCommandIsOneThatTheProgramsTake(t *testing.T) {
	t.Parallel()
	root, err := cluster.Root()
	if err != nil {
		t.Fatal(err)
	}
	programs := map[string]string{"publisher": binaries.Publisher, "projector": binaries.Projector, "sandbox": binaries.Sandbox}
	known := map[string]table{}
	ask := func(program string) func(path []string) (table, error) {
		return func(path []string) (table, error) {
			key := program + " " + strings.Join(path, " ")
			if _, found := known[key]; !found {
				help, err := exec.CommandContext(t.Context(), programs[program], append(slices.Clone(path), "--help")...).CombinedOutput()
				if err != nil {
					return table{}, fmt.Errorf("%s--help: %w: %s", key, err, help)
				}
				of := tableOf(string(help))
				if program == "sandbox" && len(path) == 0 {
					of.commands = []string{"health", "salvage"} // its help lists flags alone
				}
				known[key] = of
			}
			return known[key], nil
		}
	}
	count := map[string]int{}
	for _, page := range commandPages(t, root) {
		for _, command := range commandsOf(page, read(t, page)) {
			words := argument.FindAllString(command, -1)
			program := strings.TrimPrefix(words[0], "bin/")
			count[program]++
			if err := wrongWith(words[1:], ask(program)); err != nil {
				t.Errorf("%s: %s: %v", filepath.Base(page), command, err)
			}
		}
	}
	for program, least := range map[string]int{"publisher": 80, "projector": 120, "sandbox": 2} {
		if count[program] < least {
			t.Errorf("found %d commands of %s, want at least %d", count[program], program, least)
		}
	}
	t.Logf("commands that were held against the programs, by program: %v, with the help of %d commands", count, len(known))
}

// commandPages are the files that tell people what to type.
func commandPages(t *testing.T, root string) []string {
	t.Helper()
	pages := []string{filepath.Join(root, "README.md")}
	for _, pattern := range []string{"docs/*.md", "services/*/internal/admin/page.html", "services/e2e/internal/harness/up/overview.html"} {
		found, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(pattern)))
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: found nothing: %v", pattern, err)
		}
		for _, page := range found {
			if filepath.Base(page) != "changelog.md" { // which tells of commands that were
				pages = append(pages, page)
			}
		}
	}
	return pages
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// commandsOf returns the commands that a page names.
func commandsOf(page, text string) []string {
	var all []string
	if filepath.Ext(page) == ".html" {
		for _, found := range inScript.FindAllStringSubmatch(text, -1) {
			all = append(all, found[1])
		}
		return all
	}
	for _, fenced := range block.FindAllString(text, -1) {
		all = append(all, inBlock.FindAllString(strings.ReplaceAll(fenced, "\\\n", " "), -1)...)
	}
	for _, found := range inText.FindAllStringSubmatch(block.ReplaceAllString(text, ""), -1) {
		all = append(all, strings.ReplaceAll(found[1], `\|`, "|"))
	}
	var each []string
	for _, line := range all {
		for piped := range strings.SplitSeq(line, " | ") {
			if inPipe.MatchString(piped) {
				each = append(each, piped)
			}
		}
	}
	return each
}

func TestDocs_ACommandThatThereIsNotIsFound(t *testing.T) {
	t.Parallel()
	helps := map[string]string{
		"":            "Usage:\n  tool\n  tool [command]\n\nAvailable Commands:\n  list        a\n  parked      b\n\nFlags:\n  -h, --help      help\n",
		"list":        "Usage:\n  tool list [AGGREGATE]\n\nFlags:\n  -h, --help   help for list\n\nGlobal Flags:\n      --json   print JSON\n",
		"parked":      "Usage:\n  tool parked\n  tool parked [command]\n\nAvailable Commands:\n  drop        c\n\nFlags:\n  -h, --help   help\n",
		"parked drop": "Usage:\n  tool parked drop --why TEXT GROUP ID...\n\nFlags:\n      --why string   the reason\n      --all          all\n",
	}
	ask := func(path []string) (table, error) { return tableOf(helps[strings.Join(path, " ")]), nil }
	for line, want := range map[string]string{
		"list":                            "",
		"list A --json":                   "",
		"list A B":                        `it takes no argument "B"`,
		"lst":                             `there is no command "lst"`,
		"parked lst":                      `there is no command "lst"`,
		"parked drop":                     "",
		"parked drop --all …":             "",
		"PARKED":                          "",
		`parked drop --why "x y" G 1 2 3`: "",
		"parked drop --whi x":             "there is no flag --whi",
		"parked drop --why=x G 1 --json":  "there is no flag --json",
		"parked drop G 1 --why":           "",
	} {
		got := ""
		if err := wrongWith(argument.FindAllString(line, -1), ask); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", line, got, want)
		}
	}
	const page = "Use `publisher\nparked list` or `projector dlq`.\n```\nbin/publisher status  # says\nprojector verify \\\n  --sample 2\n```\n`publisher list | jq . | projector show -`"
	if got := fmt.Sprintf("%q", commandsOf("p.md", page)); got != `["bin/publisher status  " "projector verify    --sample 2" "publisher\nparked list" "projector dlq" "publisher list" "projector show -"]` {
		t.Errorf("got the commands %s", got)
	}
}
