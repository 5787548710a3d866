package accept

import (
	"fmt"
	"runtime"
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
		lines := strings.Split(strings.TrimSpace(r.output), "\n")
		fmt.Fprintf(&to, "\n%s: %v; the last lines:\n%s\n", r.name, r.err, strings.Join(lines[max(0, len(lines)-shown):], "\n"))
	}
	return c.redacted(to.String()), passed
}
