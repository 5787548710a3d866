package accept

import (
	"fmt"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"
)

// shown is how many lines of a failed step's output are in the report.
const shown = 60

// report writes what was tried and what came of it, and whether all passed.
func (c Config) report(version, commit string, results []result, left []string) (text string, passed bool) {
	mongo, bus := c.hosts()
	var to strings.Builder
	fmt.Fprintf(&to, "Change Relay on servers of one's own, %s\n\n", time.Now().UTC().Format(time.RFC3339))
	fmt.Fprintf(&to, "commit       %s\nsystem       %s/%s, %s\nMongoDB      %s, version %s\nService Bus  %s\n\n",
		commit, runtime.GOOS, runtime.GOARCH, runtime.Version(), mongo, version, bus)
	passed = true
	for _, r := range results {
		verdict := "ok"
		if r.err != nil {
			verdict, passed = "FAILED", false
		}
		fmt.Fprintf(&to, "%-7s %6.1f s  %s\n", verdict, r.took.Seconds(), r.name)
	}
	for _, r := range results {
		if own, all := r.ownSandbox(); len(own) > 0 {
			fmt.Fprintf(&to, "NOT RUN  of %s, %d of %d tests, which have a sandbox of their own: %s\n", r.name, len(own), all, strings.Join(own, ", "))
		}
	}
	for _, what := range notRun {
		fmt.Fprintf(&to, "NOT RUN  %s\n", what)
	}
	for _, what := range left {
		fmt.Fprintf(&to, "LEFT     %s\n", what)
	}
	for _, r := range results {
		if r.err == nil {
			continue
		}
		lines := slices.DeleteFunc(strings.Split(strings.TrimSpace(r.output), "\n"), tellsNothing)
		fmt.Fprintf(&to, "\n%s: %v; the last lines:\n%s\n", r.name, r.err, strings.Join(lines[max(0, len(lines)-shown):], "\n"))
	}
	return c.redacted(to.String()), passed
}

var (
	// elsewhere is what a test says that does not use the servers that are named.
	elsewhere = regexp.MustCompile(`NOT RUN on the servers that are named: (Test\w+)`)
	// ended is how the end of a test begins.
	ended = regexp.MustCompile(`(?m)^--- (?:PASS|FAIL|SKIP): Test`)
)

// ownSandbox are the tests of a step that have not used the servers that are named, among
// all that have ended.
func (r *result) ownSandbox() (own []string, all int) {
	for _, said := range elsewhere.FindAllStringSubmatch(r.output, -1) {
		own = append(own, said[1])
	}
	slices.Sort(own)
	return slices.Compact(own), len(ended.FindAllString(r.output, -1))
}

// tellsNothing says of a line of tests that it is not about a failure.
func tellsNothing(line string) bool {
	return strings.HasPrefix(line, "=== ") || strings.HasPrefix(strings.TrimSpace(line), "--- PASS: ") || elsewhere.MatchString(line)
}
