package sdksuite

import (
	_ "embed"
	"fmt"
	"strings"
)

//go:embed known.txt
var knownText string

// known is a difference that is accepted.
type known struct {
	// sometimes is for a test whose outcome is a matter of time.
	sometimes bool
	reason    string
}

// readKnown reads lines of a test and a reason: "TestX: because". A "?" in front
// of the test says that it may pass as well. "#" starts a comment.
func readKnown(text string) (map[string]known, error) {
	all := map[string]known{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		test, reason, ok := strings.Cut(line, ": ")
		name, sometimes := strings.CutPrefix(test, "?")
		if !ok || strings.ContainsAny(name, " ") || all[name].reason != "" {
			return nil, fmt.Errorf("known difference %q is not of the form TEST: REASON, or is there twice", line)
		}
		all[name] = known{sometimes: sometimes, reason: reason}
	}
	return all, nil
}

// problems are what makes the run fail: failures that are not known, in full, known
// ones that did not happen, and tests that ran or ended otherwise than recorded.
func (r *results) problems(all map[string]known, recorded map[string]outcome) []string {
	var out []string
	for _, test := range sortedKeys(r.outcomes) {
		if _, ok := all[test]; !ok && r.outcomes[test] == failed && !r.failedBelow(test) {
			out = append(out, fmt.Sprintf("%s failed:\n%s", test, r.output[test]))
		}
	}
	for _, test := range sortedKeys(all) {
		if r.outcomes[test] != failed && !all[test].sometimes {
			out = append(out, fmt.Sprintf("%s is listed as a known difference and did not fail (%s)", test, r.outcomes[test]))
		}
	}
	out = append(out, r.unlike(recorded, all)...)
	for _, name := range r.broken {
		out = append(out, "package "+name+" could not be tested")
	}
	return out
}

// failedBelow tells a test that failed because of its subtests: they are looked
// at by themselves.
func (r *results) failedBelow(test string) bool {
	for other, o := range r.outcomes {
		if o == failed && strings.HasPrefix(other, test+"/") {
			return true
		}
	}
	return false
}
