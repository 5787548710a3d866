package driversuite

import (
	"context"
	_ "embed" // the recording and the list of known differences
	"fmt"
	"io"
	"os"
	"regexp"
)

//go:embed testdata/driver-suite-on-4.4.txt
var recordedText string

//go:embed testdata/known-differences
var knownText string

// Config says what of the suite runs, and how.
type Config struct {
	// Only selects units by their name; nil selects all.
	Only *regexp.Regexp
	// Jobs is how many units run side by side.
	Jobs int
	// Logs is a directory for what the tests print; empty for nowhere.
	Logs string
	// Progress is told of each unit that has ended.
	Progress io.Writer
}

// Run runs the suite and compares it with the recording. An error means that it
// could not be run, or that nothing of it was selected.
func Run(ctx context.Context, config Config) (Report, error) {
	recorded, err := ParseRecording(recordedText)
	if err != nil {
		return Report{}, err
	}
	known, err := ParseKnown(knownText)
	if err != nil {
		return Report{}, err
	}
	var units []unit
	for _, u := range unitsOf(recorded) {
		if config.Only == nil || config.Only.MatchString(u.String()) {
			units = append(units, u)
		}
	}
	if len(units) == 0 {
		return Report{}, fmt.Errorf("no unit of the driver's tests matches %q; they are called as %s", config.Only, unitsOf(recorded)[0])
	}
	dir, err := os.MkdirTemp("", "driver-suite")
	if err != nil {
		return Report{}, err
	}
	defer os.RemoveAll(dir)
	r := &runner{config: config, recorded: recorded, known: known, seen: Results{}, again: map[Test]int{}}
	if r.binaries, err = build(ctx, dir); err != nil {
		return Report{}, err
	}
	if err := r.all(ctx, units); err != nil {
		return Report{}, err
	}
	report := newReport(units, recorded, r.seen, known)
	report.Again = r.again
	return report, nil
}
