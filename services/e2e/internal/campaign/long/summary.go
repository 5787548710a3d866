package long

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"changerelay/services/e2e/internal/campaign/chaos"
	"changerelay/services/e2e/internal/check/report"
)

// Marks around the section of a document that is written anew.
const (
	beginMark = "<!-- long run -->"
	endMark   = "<!-- end of long run -->"
)

// summary is the report of a run, as Markdown.
func summary(cfg Config, began time.Time, took time.Duration, all []done) string {
	var text strings.Builder
	faults, events := 0, 0.0
	kinds := make(map[string]int)
	for _, d := range all {
		faults += len(d.Faults)
		for _, f := range d.Faults {
			kinds[f.Kind]++
		}
		for _, f := range d.Figures {
			if f.Name == "events written" {
				events += f.Value
			}
		}
	}
	fmt.Fprintf(&text, "| | |\n| --- | --- |\n| run | %s, seeds from %d on, %.0f minutes |\n", began.UTC().Format(time.DateOnly), cfg.Seed, took.Minutes())
	fmt.Fprintf(&text, "| campaigns | %d |\n| faults | %s, of %d kinds |\n", len(all), report.Thousands(int64(faults)), len(kinds))
	fmt.Fprintf(&text, "| events written | %s |\n| checks that failed | %s |\n\n", report.Thousands(int64(events)), failed(all))
	text.WriteString("| campaign | seed | settings | faults | events | checks that failed |\n| --- | --: | --- | --: | --: | --: |\n")
	for _, d := range all {
		written := 0.0
		for _, f := range d.Figures {
			if f.Name == "events written" {
				written = f.Value
			}
		}
		fmt.Fprintf(&text, "| %s | %d | %s | %d | %s | %s |\n", d.name, d.seed, settings(d.Report), len(d.Faults), report.Thousands(int64(written)), failed([]done{d}))
	}
	text.WriteString("\n| fault | times |\n| --- | --: |\n")
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		fmt.Fprintf(&text, "| %s | %d |\n", kind, kinds[kind])
	}
	if missing := slices.DeleteFunc(chaos.Kinds(), func(kind string) bool { return kinds[kind] > 0 }); len(missing) > 0 {
		fmt.Fprintf(&text, "\nNot done:\n\n- %s\n", strings.Join(missing, "\n- "))
	}
	return text.String()
}

func settings(r *report.Report) string {
	for _, f := range r.Setup {
		if f.Name == "settings" {
			return f.Text
		}
	}
	return ""
}

// failed names the checks that failed, and what kept a campaign from its end.
func failed(all []done) string {
	var names []string
	for _, d := range all {
		if d.Stopped != "" {
			names = append(names, "stopped: "+strings.ReplaceAll(d.Stopped, "\n", " "))
		}
		for _, c := range d.Checks {
			if !c.Passed {
				names = append(names, c.Name)
			}
		}
	}
	if names == nil {
		return "0"
	}
	return strings.Join(names, "; ")
}
