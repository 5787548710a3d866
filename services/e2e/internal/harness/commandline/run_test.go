package commandline_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"changerelay/services/e2e/internal/harness/cluster"
)

// runner says what runs the commands of the pages that match: a test, or a text of a
// script, such as a step of CI.
type runner struct{ command, by string }

// runners are held against a command in this order; the first that matches counts.
var runners = []runner{
	{`^make demo ARGS="--input `, "TestDemo_TheDemoTakesEventsOfAFile"},
	{`^make demo ARGS="--world standard `, `scripts/nightly: step make demo ARGS="--world standard`},
	{`^make demo\b`, "scripts/ci: step make demo ARGS="},
	{`^make test$`, "scripts/ci: step make test"},
	{`^make up\b`, "TestUp_CarriesWhatIsWrittenUntilItIsToldToStop"},
	{`^make build$`, "scripts/ci: step make build"},
	{`^make images$`, "Makefile: test-compose: images"},
	{`^(make liars|make crashpoints|make chaos|make upgrades|make mutate)\b`, "scripts/ci: step $1"},
	{`^make long\b`, "scripts/nightly: step make long"},
	{`^make copy\b`, "TestCopy_AllArrivesOverATopicThatIsSlowerThanTheSource"},
	{`^make plan\b`, "TestPlan_TheExampleOfTheDocumentationIsWhatIsPrinted"},
	{`^make bench ARGS=`, "TestSuite_EveryExperimentMeasuresSomething"},
	{`^TEST_MONGODB_URI=\S+ TEST_SERVICEBUS_CONNECTION_STRING=\S+ make bench$`, "TestStage_AStageOnGivenServersLeavesNothing"},
	{`^go run ./services/e2e/cmd/bench --from \S+ --update `, "TestResults_OnlyWhatIsBetweenTheMarksIsUpdated"},
	{`^make run-sandbox\b`, "TestSandbox_TheAddressesArePrintedAndATermSignalStops"},
	{`^export [A-Z_]+=|^(ADMIN_ADDR=:8081 )?bin/(publisher|projector)$`, "TestPath_EveryProcessAnswersOnItsAdminPort"},
	{`^COMPOSE_PROFILES=sandbox,load docker compose run --rm traffic verify$`, "scripts/compose-check: traffic verify"},
	{`^COMPOSE_PROFILES=sandbox(,load)? docker compose up -d$`, "scripts/compose-check: COMPOSE_PROFILES=sandbox,load"},
	{`^docker compose port --index 1 publisher 8080$`, "scripts/compose-check: port --index"},
	{`^curl `, "TestPageDocs_TheCommandsOfTheDocumentationWork"},
	{`^(cd stock|go mod (init|edit|tidy)|go build -o projector|echo .*>moved.json|\./projector( |$))`, "TestInGo_TheDocumentationLeadsToARunningProjector"},
	{`^projector verify --publisher publisher `, "TestVerify_FindsWhatWasDoneByHandAndOffersWhatMendsIt"},
	{`^publisher resend status --all --json \| projector rebuild .* --resent -$`, "TestRebuild_WithoutThePublishersCommandLineGoesByItsReport"},
	{`^BIN=bin scripts/recover-namespace `, "TestRecover_ANamespaceThatIsGoneWithItsMessages"},
	{`^db\.customers\.aggregate`, "TestPositions_AProjectorThatHasLostThemStopsAndCountsNothingAgain"},
	{`^db\.applied_positions\.aggregate\(\[ \{\$match: \{"_id.projection": "bycustomer"`, "TestPositions_AreCarriedOverToAnotherName"},
	{`^db\.applied_positions\.aggregate\(\[\{\$match`, "TestVersions_ACollectionBecomesVersionOneAndCountsNothingTwice"},
	{`^db\.collection_owners\.deleteOne`, "TestEmptied_AnOperatorIsToldOfACollectionThatWasEmptied"},
}

// shown is a command of a page.
type shown struct {
	page    string
	line    int
	command string
	// unrun is whether its section says that it was not run, and why.
	unrun bool
}

var (
	unrun = regexp.MustCompile(`(?s)\bnot run\b[^.]*\b(because|needs?)\b`)
	// remark is what a shell passes over at the end of a line.
	remark = regexp.MustCompile(`\s+# .*$`)
)

// commands returns the commands in the blocks of a page that are for a shell: those
// that name no language, or sh. A line is one, unless the line before ends in a
// backslash; a block for mongosh is one as a whole.
func commands(page, text string) []shown {
	var all []shown
	var prose strings.Builder
	fence, language, section, open := false, "", 0, false
	judge := func() {
		marked := unrun.MatchString(prose.String())
		for i := range all[section:] {
			all[section+i].unrun = marked
		}
		section = len(all)
		prose.Reset()
	}
	for i, line := range strings.Split(text, "\n") {
		if after, found := strings.CutPrefix(strings.TrimSpace(line), "```"); found {
			fence, language, open = !fence, after, false
			continue
		}
		switch {
		case !fence && strings.HasPrefix(line, "#"):
			judge()
		case !fence:
			prose.WriteString(line + "\n")
		case language != "" && language != "sh" || strings.TrimSpace(line) == "":
		case open:
			last := &all[len(all)-1]
			last.command = strings.TrimSuffix(last.command, `\`) + " " + strings.TrimSpace(line)
			open = strings.HasPrefix(last.command, "db.") || strings.HasSuffix(line, `\`)
		default:
			command := remark.ReplaceAllString(strings.TrimSpace(line), "")
			all = append(all, shown{page: page, line: i + 1, command: command})
			open = strings.HasPrefix(command, "db.") || strings.HasSuffix(command, `\`)
		}
	}
	judge()
	return all
}

// Whoever copies a command from a page should know that it was run, or that it was not.
func TestDocs_EveryCommandIsRunOrMarkedAsNotRun(t *testing.T) {
	t.Parallel()
	root, err := cluster.Root()
	if err != nil {
		t.Fatal(err)
	}
	pages, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	var all []shown
	for _, page := range append(pages, filepath.Join(root, "README.md")) {
		if filepath.Base(page) != "changelog.md" {
			all = append(all, commands(filepath.Base(page), read(t, page))...)
		}
	}
	used := make([]bool, len(runners))
	for _, c := range all {
		i := runnerOf(c.command)
		if i >= 0 {
			used[i] = true
		} else if !c.unrun {
			t.Errorf("%s:%d: nothing runs %q: name in runners what does, or say below that it was not run, and why", c.page, c.line, c.command)
		}
	}
	for i, r := range runners {
		if !used[i] {
			t.Errorf("no page has a command like %s", r.command)
		}
	}
	if len(all) < 80 {
		t.Errorf("found %d commands, want those of all pages", len(all))
	}
}

func runnerOf(command string) int {
	for i, r := range runners {
		if regexp.MustCompile(r.command).MatchString(command) {
			return i
		}
	}
	return -1
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestDocs_WhatRunsACommandIsThere(t *testing.T) {
	t.Parallel()
	root, err := cluster.Root()
	if err != nil {
		t.Fatal(err)
	}
	var tests strings.Builder
	for _, module := range []string{"services", "pkg", "deployments"} {
		err := filepath.WalkDir(filepath.Join(root, module), func(path string, _ os.DirEntry, err error) error {
			if err == nil && strings.HasSuffix(path, "_test.go") {
				tests.WriteString(read(t, path))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, r := range runners {
		for _, by := range spelled(r) {
			text, in := "\nfunc "+by+"(t *testing.T) {\n", tests.String()
			if script, says, found := strings.Cut(by, ": "); found {
				text, in = says, read(t, filepath.Join(root, script))
			}
			if !strings.Contains(in, text) {
				t.Errorf("%s is said to run %s, and is not there", by, r.command)
			}
		}
	}
}

// spelled is what runs the commands, once for each that the first group names where
// $1 stands for it.
func spelled(r runner) []string {
	if !strings.Contains(r.by, "$1") {
		return []string{r.by}
	}
	group := regexp.MustCompile(`\(([^)]*)\)`).FindStringSubmatch(r.command)[1]
	var all []string
	for name := range strings.SplitSeq(group, "|") {
		all = append(all, strings.Replace(r.by, "$1", name, 1))
	}
	return all
}

// A command must not pass because of what is said of another.
func TestDocs_AMarkHoldsForItsSection(t *testing.T) {
	t.Parallel()
	const page = "# A\n```\nfirst \\\n  --more   # said\n\nsecond\n```\nThese were not run,\nbecause there is no server.\n" +
		"# B\n```yaml\nkey: 1\n```\n```sh\n# third\n```\nNot run here.\n```\ndb.a.find([\n  {}\n])\n```\n"
	got := fmt.Sprint(commands("p", page))
	const want = `[{p 3 first  --more   # said true} {p 6 second true} {p 15 # third false} {p 19 db.a.find([ {} ]) false}]`
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
