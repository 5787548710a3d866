package driversuite

import (
	"fmt"
	"strings"
)

// Known are the tests that differ from the real server, each with its reason.
type Known map[Test]string

// ParseKnown reads paragraphs: comment lines that give the reason, then the
// tests it holds for, a package and a name on each line.
func ParseKnown(text string) (Known, error) {
	known := Known{}
	reason, reading := "", false
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		said, comment := strings.CutPrefix(line, "#")
		switch {
		case line == "":
			reason, reading = "", false
		case comment && !reading:
			reason, reading = strings.TrimSpace(said), true
		case comment:
			reason += " " + strings.TrimSpace(said)
		default:
			pkg, name, ok := strings.Cut(line, " ")
			if !ok || reason == "" {
				return nil, fmt.Errorf("known differences: %q needs a package, a name and a reason above it", line)
			}
			known[Test{Package: pkg, Name: name}] = reason
		}
	}
	return known, nil
}
