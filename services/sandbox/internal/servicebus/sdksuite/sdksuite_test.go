package sdksuite

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// output is that of "go test -json" for a pass, a failure with a subtest, and a skip.
const output = `noise
{"Action":"output","Package":"` + module + `","Test":"TestB","Output":"why"}
{"Action":"pass","Package":"` + module + `","Test":"TestA"}
{"Action":"fail","Package":"` + module + `","Test":"TestB"}
{"Action":"fail","Package":"` + module + `/admin","Test":"TestC/sub"}
{"Action":"fail","Package":"` + module + `/admin","Test":"TestC"}
{"Action":"skip","Package":"` + module + `/admin","Test":"TestD"}
{"Action":"fail","Package":"` + module + `"}
{"Action":"fail","Package":"` + module + `/admin"}
`

func problemsOf(t *testing.T, output, list string) string {
	t.Helper()
	r, err := readResults(strings.NewReader(output))
	if err != nil {
		t.Fatal(err)
	}
	all, err := readKnown(list)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(r.problems(all, r.outcomes), "\n")
}

func TestSDKSuite_AFailureThatIsListedIsNoProblem(t *testing.T) {
	t.Parallel()
	if got := problemsOf(t, output, "TestB: x\nadmin/TestC: x\nadmin/TestC/sub: x\n?TestA: x"); got != "" {
		t.Errorf("got problems %q, want none", got)
	}
}

func TestSDKSuite_AFailureThatIsNotListedIsAProblem(t *testing.T) {
	t.Parallel()
	got := problemsOf(t, output, "# nothing")
	for _, want := range []string{"TestB failed:\nwhy", "admin/TestC/sub failed"} {
		if !strings.Contains(got, want) {
			t.Errorf("got problems %q, want one with %q", got, want)
		}
	}
	if strings.Contains(got, "admin/TestC failed") {
		t.Errorf("got problems %q, want the subtest alone", got)
	}
}

func TestSDKSuite_AStaleEntryIsAProblem(t *testing.T) {
	t.Parallel()
	got := problemsOf(t, output, "TestA: x\nTestB: x\nadmin/TestC: x\nadmin/TestC/sub: x\nTestGone: x")
	for _, want := range []string{"TestA is listed", "TestGone is listed"} {
		if !strings.Contains(got, want) {
			t.Errorf("got problems %q, want one with %q", got, want)
		}
	}
}

func TestSDKSuite_APackageThatDidNotRunIsAProblem(t *testing.T) {
	t.Parallel()
	got := problemsOf(t, `{"Action":"fail","Package":"`+module+`/admin"}`, "")
	if !strings.Contains(got, "admin could not be tested") {
		t.Errorf("got problems %q, want one for the package", got)
	}
}

func TestSDKSuite_AnEntryWithoutAReasonIsRefused(t *testing.T) {
	t.Parallel()
	for _, list := range []string{"TestA", "TestA: x\nTestA: y", "two words: x"} {
		if all, err := readKnown(list); err == nil {
			t.Errorf("%q: got %v, want an error", list, all)
		}
	}
	if _, err := readKnown(knownText); err != nil {
		t.Error(err)
	}
}

func TestSDKSuite_ASubtestCountsForItsFile(t *testing.T) {
	t.Parallel()
	for test, want := range map[string]string{
		"TestX": "TestX", "TestX/a/b": "TestX", "admin/TestX/a": "admin/TestX",
	} {
		if got := topLevel(test); got != want {
			t.Errorf("%s: got %q, want %q", test, got, want)
		}
	}
}

func TestRecording_WhatDidNotRunOrWasSkippedIsAProblem(t *testing.T) {
	t.Parallel()
	r, err := readResults(strings.NewReader(output))
	if err != nil {
		t.Fatal(err)
	}
	all, err := readKnown("TestB: x\nadmin/TestC: x\nadmin/TestC/sub: x\n?TestTime: x")
	if err != nil {
		t.Fatal(err)
	}
	recorded, err := readRecording("# text\nfail TestB\nfail admin/TestC\npass admin/TestC/gone\nfail admin/TestC/sub\npass admin/TestD\npass TestTime/sub\n")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"TestA ended with pass and is not recorded",
		"admin/TestC/gone did not run; recorded is pass",
		"admin/TestD was skipped; recorded is pass",
	}
	if got := r.problems(all, recorded); !slices.Equal(got, want) {
		t.Errorf("problems: got %q, want %q", got, want)
	}
}

func TestRecording_IsReadAsItIsWritten(t *testing.T) {
	t.Parallel()
	r, err := readResults(strings.NewReader(output))
	if err != nil {
		t.Fatal(err)
	}
	got, err := readRecording(r.recording())
	if err != nil || !maps.Equal(got, r.outcomes) {
		t.Errorf("recording: got %v, %v, want %v", got, err, r.outcomes)
	}
	for _, text := range []string{"pass", "pass TestA\nfail TestA"} {
		if got, err := readRecording(text); err == nil {
			t.Errorf("%q: got %v, want an error", text, got)
		}
	}
	if _, err := readRecording(recordedText); err != nil {
		t.Error(err)
	}
}
