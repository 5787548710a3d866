package driversuite

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
)

// Report compares a run with the recording.
type Report struct {
	Groups []Group
	Total  Group
	// Differences are the tests that differ and are not known to.
	Differences []Difference
	// Known are those that differ and are known to.
	Known []Difference
	// Stale are entries of the list that do not differ, or were not run.
	Stale []Test
	// Again is how often tests were run again, because they differed at first.
	Again map[Test]int
}

// Group counts the tests of one part of the suite.
type Group struct {
	Name       string
	Real, Here Count
	// Differ counts tests that differ, known or not.
	Differ int
	// Kept counts the tests that the real server passes and the sandbox too.
	Kept int
}

// Count counts verdicts.
type Count struct{ Passed, Failed, Skipped int }

func (c *Count) add(v Verdict) {
	switch v {
	case Pass:
		c.Passed++
	case Fail:
		c.Failed++
	case Skip:
		c.Skipped++
	case Absent:
	}
}

// Difference is a test that does worse than against the real server.
type Difference struct {
	Test       Test
	Real, Here Verdict
	// Reason is given for those that are known.
	Reason string
}

func (d Difference) String() string {
	here, there := d.Here, d.Real
	if here == Absent {
		here = "not run"
	}
	if there == Absent {
		there = "not recorded"
	}
	return fmt.Sprintf("%s: %s, on the real server %s", d.Test, here, there)
}

// Passed reports whether all is as recorded or listed.
func (r Report) Passed() bool { return len(r.Differences) == 0 && len(r.Stale) == 0 }

// worse reports whether a test does worse here: it does not pass what the real
// server passes, skips what that does not skip, or fails where that does not.
func worse(recorded, here Verdict) bool {
	switch here {
	case Pass:
		return false
	case Skip:
		return recorded != Skip
	case Fail:
		return recorded != Fail
	default:
		return recorded == Pass
	}
}

// newReport compares the tests of units.
func newReport(units []unit, recorded, seen Results, known Known) Report {
	counted := map[unit]*Group{}
	groups := map[string]*Group{}
	for _, u := range units {
		name := u.group()
		if groups[name] == nil {
			groups[name] = &Group{Name: name}
		}
		counted[u] = groups[name]
	}
	report := Report{Total: Group{Name: "all"}}
	differing := map[Test]bool{}
	for _, test := range union(recorded, seen) {
		u, _ := unitOf(test)
		group := counted[u]
		if group == nil {
			continue
		}
		group.count(recorded[test], seen[test])
		report.Total.count(recorded[test], seen[test])
		if !worse(recorded[test], seen[test]) {
			continue
		}
		differing[test] = true
		d := Difference{Test: test, Real: recorded[test], Here: seen[test], Reason: known[test]}
		switch {
		case d.Reason != "":
			report.Known = append(report.Known, d)
		case !explained(test, seen, known):
			report.Differences = append(report.Differences, d)
		}
	}
	for _, test := range slices.SortedFunc(maps.Keys(known), compareTests) {
		if u, _ := unitOf(test); counted[u] != nil && !differing[test] {
			report.Stale = append(report.Stale, test)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		report.Groups = append(report.Groups, *groups[name])
	}
	return report
}

func (g *Group) count(recorded, here Verdict) {
	g.Real.add(recorded)
	g.Here.add(here)
	if worse(recorded, here) {
		g.Differ++
	}
	if recorded == Pass && here == Pass {
		g.Kept++
	}
}

// explained tells a test that fails because a subtest does that is known to.
func explained(test Test, seen Results, known Known) bool {
	for other := range known {
		if other.under(test) && seen[other] != Pass {
			return true
		}
	}
	return false
}

func union(a, b Results) []Test {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return slices.SortedFunc(maps.Keys(all), compareTests)
}

func compareTests(a, b Test) int { return strings.Compare(a.String(), b.String()) }

// Write prints the report.
func (r Report) Write(out io.Writer) {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "\treal server\t\t\tsandbox\t\t\t\t")
	fmt.Fprintln(table, "group\tpassed\tfailed\tskipped\tpassed\tfailed\tskipped\tpassed by both\tdiffer\t")
	for _, g := range append(slices.Clone(r.Groups), r.Total) {
		fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t\n", g.Name,
			g.Real.Passed, g.Real.Failed, g.Real.Skipped, g.Here.Passed, g.Here.Failed, g.Here.Skipped, g.Kept, g.Differ)
	}
	_ = table.Flush() // what out refuses, out's owner notices
	for _, d := range r.Differences {
		fmt.Fprintln(out, "differs:", d)
	}
	for _, d := range r.Known {
		fmt.Fprintf(out, "known: %s (%s)\n", d, d.Reason)
	}
	for _, test := range slices.SortedFunc(maps.Keys(r.Again), compareTests) {
		fmt.Fprintf(out, "run again: %s, %d times\n", test, r.Again[test])
	}
	fmt.Fprintf(out, "%d tests were run again\n", len(r.Again))
	for _, test := range r.Stale {
		fmt.Fprintf(out, "stale: %s is listed in known-differences and does not differ\n", test)
	}
}
