package driversuite

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

func test(name string) Test { return Test{Package: "unified", Name: name} }

func TestSuite_ATestThatBeganAndDidNotEndHasFailed(t *testing.T) {
	t.Parallel()
	output := "\x16=== RUN   TestA\n\x16=== RUN   TestA/b\nprinted without an end \x16    --- PASS: TestA/b (0.00s)\n" +
		"\x16=== RUN   TestA/c\n--- PASS: TestA/c (0.00s)\npanic: …\n"
	got := parseOutput("unified", []byte(output))
	want := Results{test("TestA"): Fail, test("TestA/b"): Pass, test("TestA/c"): Fail}
	for name, verdict := range want {
		if got[name] != verdict {
			t.Errorf("got %q for %s, want %q", got[name], name, verdict)
		}
	}
	if len(got) != len(want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestSuite_ADifferenceNeedsAReasonAndAReasonADifference(t *testing.T) {
	t.Parallel()
	recorded := Results{
		test("TestA"): Pass, test("TestA/b"): Pass, test("TestA/c"): Skip, test("TestA/d"): Pass, test("TestA/e"): Fail, test("TestA/f"): Pass,
	}
	seen := Results{
		test("TestA"): Fail, test("TestA/b"): Fail, test("TestA/c"): Pass, test("TestA/d"): Skip, test("TestA/e"): Skip,
	}
	units := []unit{{pkg: "unified", test: "TestA"}}
	named := func(differences []Difference) []string {
		var names []string
		for _, d := range differences {
			names = append(names, d.Test.Name)
		}
		return names
	}
	report := newReport(units, recorded, seen, Known{})
	if got := named(report.Differences); !slices.Equal(got, []string{"TestA", "TestA/b", "TestA/d", "TestA/e", "TestA/f"}) || report.Passed() {
		t.Errorf("got %v, want every test that does worse, and no pass", got)
	}
	known := Known{test("TestA/b"): "r", test("TestA/d"): "r", test("TestA/e"): "r", test("TestA/f"): "r"}
	if report = newReport(units, recorded, seen, known); !report.Passed() || len(report.Known) != 4 {
		t.Errorf("got %+v, want a pass: the rest fails for what is listed", report)
	}
	known[test("TestA/c")] = "r"
	if report = newReport(units, recorded, seen, known); report.Passed() || !slices.Equal(report.Stale, []Test{test("TestA/c")}) {
		t.Errorf("got %+v, want the entry that does not differ", report)
	}
}

func TestSuite_ASelectionOfNothingHasNotPassed(t *testing.T) {
	t.Parallel()
	_, err := Run(t.Context(), Config{Only: regexp.MustCompile("TestUnifiedSpecc"), Jobs: 1})
	if err == nil || !strings.Contains(err.Error(), "TestUnifiedSpecc") {
		t.Errorf("got %v, want an error that names what nothing matches", err)
	}
}

func TestSuite_AKnownDifferenceHasAReasonAboveIt(t *testing.T) {
	t.Parallel()
	known, err := ParseKnown("# first\n# reason\nunified TestA\nunified TestB/c\n\n# second\nintegration TestC\n")
	if err != nil || known[test("TestB/c")] != "first reason" || known[Test{"integration", "TestC"}] != "second" {
		t.Errorf("got %v, %v", known, err)
	}
	if _, err := ParseKnown("# a reason\nunified TestA\n\nunified TestB\n"); err == nil || !strings.Contains(err.Error(), "TestB") {
		t.Errorf("got %v, want the entry without a reason", err)
	}
}

func TestSuite_EveryRecordedTestRunsInOneUnit(t *testing.T) {
	t.Parallel()
	recorded, err := ParseRecording(recordedText)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ParseKnown(knownText); err != nil {
		t.Error(err)
	}
	units := unitsOf(recorded)
	for name := range recorded {
		u, ok := unitOf(name)
		if !ok && strings.Contains(name.Name, "/") || ok && !slices.Contains(units, u) {
			t.Errorf("%s runs in no unit", name)
		}
	}
}

func TestReport_SaysWhatWasRunAgain(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	Report{Again: map[Test]int{{Package: "integration", Name: "TestX"}: 2}}.Write(&out)
	for _, want := range []string{"run again: integration TestX, 2 times\n", "1 tests were run again\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("report: got %q, want it with %q", out.String(), want)
		}
	}
}
