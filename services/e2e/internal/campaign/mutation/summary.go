package mutation

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"changerelay/services/e2e/internal/campaign/mutation/guard"
	"changerelay/services/e2e/internal/check/report"
)

// Marks around the section of a document that Summary is written into.
const (
	BeginMark = "<!-- mutations -->"
	EndMark   = "<!-- end of mutations -->"
)

// Summary says as Markdown what came of cutting guards: how many of each module went red,
// and which no test stands for, or were not cut.
func Summary(guards []guard.Guard, results []Result, commit string, at time.Time) string {
	type counts struct{ all, red, survived, left int }
	modules := make(map[string]*counts)
	var names []string
	var survivors strings.Builder
	late, seconds := 0, 0.0
	for _, g := range guards {
		module := strings.Join(strings.SplitN(g.File, "/", 3)[:2], "/")
		if modules[module] == nil {
			modules[module] = &counts{}
			names = append(names, module)
		}
		m := modules[module]
		m.all++
		i := slices.IndexFunc(results, func(r Result) bool { return r.Guard == g.Name })
		if i < 0 {
			m.left++
			continue
		}
		r := results[i]
		seconds += r.Seconds
		if r.Late {
			late++
		}
		if r.Problem == "" {
			m.red++
			continue
		}
		m.survived++
		problem, _, _ := strings.Cut(r.Problem, "\n")
		fmt.Fprintf(&survivors, "- %s: %s\n", g.Name, problem)
	}
	slices.Sort(names)
	var text strings.Builder
	fmt.Fprintf(&text, "%s, commit `%s`, in %s of work.", at.UTC().Format(time.DateOnly), commit, (time.Duration(seconds) * time.Second).String())
	if late > 0 {
		fmt.Fprintf(&text, " %d tests failed by not coming to their end.", late)
	}
	text.WriteString("\n\n| module | guards | a test goes red | none does | not cut |\n| --- | --: | --: | --: | --: |\n")
	row := func(name string, c counts) {
		fmt.Fprintf(&text, "| %s | %s | %s | %s | %s |\n", name, number(c.all), number(c.red), number(c.survived), number(c.left))
	}
	var whole counts
	for _, name := range names {
		m := *modules[name]
		whole = counts{whole.all + m.all, whole.red + m.red, whole.survived + m.survived, whole.left + m.left}
		row("`"+name+"`", m)
	}
	row("all", whole)
	if survivors.Len() > 0 {
		text.WriteString("\nWithout a test:\n\n" + survivors.String())
	}
	return text.String()
}

func number(n int) string { return report.Thousands(int64(n)) }
