package driversuite

import (
	"bufio"
	"bytes"
	"fmt"
	"regexp"
	"strings"
)

// Verdict is how a test ended.
type Verdict string

// The verdicts, as the recording spells them.
const (
	Pass Verdict = "PASS"
	Fail Verdict = "FAIL"
	Skip Verdict = "SKIP"
	// Absent is the verdict of a test that did not run.
	Absent Verdict = ""
)

// Test is a test or subtest of one of the driver's packages.
type Test struct {
	// Package is the last part of the package's path.
	Package string
	Name    string
}

func (t Test) String() string { return t.Package + " " + t.Name }

// under tells a subtest of the test.
func (t Test) under(other Test) bool {
	return t.Package == other.Package && strings.HasPrefix(t.Name, other.Name+"/")
}

// Results are the verdicts of tests.
type Results map[Test]Verdict

// ParseRecording reads lines of verdict, package and name.
func ParseRecording(text string) (Results, error) {
	results := Results{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		parts := strings.SplitN(line, " ", 3)
		if len(parts) != 3 {
			return nil, fmt.Errorf("recording: %q is not a verdict, a package and a name", line)
		}
		results[Test{Package: parts[1], Name: parts[2]}] = Verdict(parts[0])
	}
	return results, nil
}

// A line of a test binary's output, marked so that nothing a test prints is
// mistaken for it (-test.v=test2json).
var marked = regexp.MustCompile(`\x16(=== RUN  |\s*--- (PASS|FAIL|SKIP):) +(\S+)`)

// parseOutput reads the verdicts out of what a test binary has printed. A test
// that began and did not end has failed.
func parseOutput(pkg string, output []byte) Results {
	results := Results{}
	lines := bufio.NewScanner(bytes.NewReader(output))
	lines.Buffer(nil, len(output)+1)
	for lines.Scan() {
		for _, m := range marked.FindAllStringSubmatch(lines.Text(), -1) {
			test := Test{Package: pkg, Name: m[3]}
			if results[test] = Verdict(m[2]); m[2] == "" {
				results[test] = Fail
			}
		}
	}
	return results
}
