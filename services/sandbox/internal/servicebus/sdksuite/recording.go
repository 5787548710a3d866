package sdksuite

import (
	_ "embed"
	"fmt"
	"maps"
	"strings"
)

//go:embed recording.txt
var recordedText string

// recordingHead explains the recording to whoever opens it.
const recordingHead = "# How each test of the SDK ended against the sandbox. Written by `make sdk-suite ARGS=-record`; review the difference.\n"

// readRecording reads lines of an outcome and a test.
func readRecording(text string) (map[string]outcome, error) {
	recorded := map[string]outcome{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		how, test, ok := strings.Cut(line, " ")
		if !ok || recorded[test] != "" {
			return nil, fmt.Errorf("recording: %q is not an outcome and a test, or is there twice", line)
		}
		recorded[test] = outcome(how)
	}
	return recorded, nil
}

// recording writes what readRecording reads.
func (r *results) recording() string {
	var to strings.Builder
	to.WriteString(recordingHead)
	for _, test := range sortedKeys(r.outcomes) {
		fmt.Fprintf(&to, "%s %s\n", r.outcomes[test], test)
	}
	return to.String()
}

// unlike are the tests that did not run although they are recorded, were skipped
// although they were not when recorded, or ran and are not recorded. Failures are
// looked at apart, and a test that may fail or pass says nothing of those within it.
func (r *results) unlike(recorded map[string]outcome, all map[string]known) []string {
	both := maps.Clone(recorded)
	maps.Copy(both, r.outcomes)
	var out []string
	for _, test := range sortedKeys(both) {
		was, is := recorded[test], r.outcomes[test]
		switch {
		case withinSometimes(test, all):
		case was == "":
			out = append(out, fmt.Sprintf("%s ended with %s and is not recorded", test, is))
		case is == "":
			out = append(out, fmt.Sprintf("%s did not run; recorded is %s", test, was))
		case is == skipped && was != skipped:
			out = append(out, fmt.Sprintf("%s was skipped; recorded is %s", test, was))
		}
	}
	return out
}

// withinSometimes tells a test that is, or is within, one whose outcome is a matter
// of time.
func withinSometimes(test string, all map[string]known) bool {
	for name, k := range all {
		if k.sometimes && (test == name || strings.HasPrefix(test, name+"/")) {
			return true
		}
	}
	return false
}
