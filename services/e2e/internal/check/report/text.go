package report

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// WriteText writes the report as a page for people.
func (r *Report) WriteText(w io.Writer) error {
	p := page{}
	p.line("%s: %s", r.Title, r.verdict())
	p.section("what ran")
	for _, f := range r.Setup {
		p.row(column{f.Name, 14}, column{f.Text, 0})
	}
	if len(r.Figures) > 0 {
		p.section("figures")
	}
	for _, f := range r.Figures {
		p.row(column{f.Name, nameWidth}, column{format(f.Value, f.Unit), -numberWidth}, column{f.Note, 0})
	}
	p.writeDone("faults", r.Faults)
	p.writeDone("remedies", r.Remedies)
	r.writeAside(&p)
	r.writeChecks(&p)
	r.writeNodes(&p)
	p.section("verdict")
	first, _, _ := strings.Cut(r.verdict(), "\n") // the rest is above
	p.row(column{first, 0})
	p.row(column{"logs of every process: " + r.Dir, 0})
	_, err := io.WriteString(w, p.text.String())
	return err
}

const (
	nameWidth   = 52
	numberWidth = 12
)

func (r *Report) verdict() string {
	failed := 0
	for _, c := range r.Checks {
		if !c.Passed {
			failed++
		}
	}
	switch {
	case r.Stopped != "":
		return "FAILED: " + r.Stopped
	case len(r.Checks) == 0:
		return "FAILED: nothing was checked"
	case failed > 0:
		return fmt.Sprintf("FAILED: %d of %d checks", failed, len(r.Checks))
	}
	return fmt.Sprintf("all %d checks passed in %s", len(r.Checks), format(r.Seconds, Seconds))
}

func (p *page) writeDone(title string, all []Fault) {
	if len(all) > 0 {
		p.section(title)
	}
	for _, f := range all {
		p.row(column{format(f.At, Seconds), -8}, column{f.What, 0})
		p.row(column{"", 8}, column{f.Outcome, 0})
	}
}

// asideShown is how many events that were set aside the page names.
const asideShown = 50

func (r *Report) writeAside(p *page) {
	if len(r.Aside) > 0 {
		p.section("set aside, and so not in the read model")
	}
	for i, a := range r.Aside {
		if i == asideShown {
			p.row(column{fmt.Sprintf("and %s more, which --json lists", Thousands(int64(len(r.Aside)-i))), 0})
			break
		}
		p.row(column{fmt.Sprintf("%s:%d", a.File, a.Line), 0}, column{a.Event, 0})
		p.row(column{"", 6}, column{a.Reason, 0})
		p.row(column{"", 6}, column{a.Remedy, 0})
	}
}

func (r *Report) writeChecks(p *page) {
	if len(r.Checks) == 0 {
		return
	}
	p.section("checks")
	p.row(column{"", 4}, column{"", nameWidth - 6}, column{"got", -numberWidth}, column{"at most", -numberWidth})
	for _, c := range r.Checks {
		mark, got := "ok", format(c.Got, c.Unit)
		if !c.Passed {
			mark = "FAIL"
		}
		if c.Unchecked != "" {
			got = "-"
		}
		p.row(column{mark, 4}, column{c.Name, nameWidth - 6}, column{got, -numberWidth}, column{format(c.Bound, c.Unit), -numberWidth})
		if c.Unchecked != "" {
			p.row(column{"", 6}, column{"not measured: " + c.Unchecked, 0})
		}
		for _, s := range c.Samples {
			p.row(column{"", 6}, column{s, 0})
		}
	}
}

func (r *Report) writeNodes(p *page) {
	if len(r.Nodes) == 0 {
		return
	}
	p.section("processes")
	p.row(column{"", 14}, column{"memory, peak", -14}, column{"CPU", -numberWidth}, column{"CPU per event", -16})
	for _, n := range r.Nodes {
		p.row(column{n.Name, 14}, column{format(float64(n.ResidentBytes), Bytes), -14}, column{format(n.CPUSeconds, Seconds), -numberWidth},
			column{fmt.Sprintf("%.1f µs", n.CPUMicrosecondsPerEvent), -16})
	}
}

// column is a text and the width it is padded to, to the left where negative.
type column struct {
	text  string
	width int
}

// page gathers lines.
type page struct{ text strings.Builder }

func (p *page) line(f string, args ...any) { fmt.Fprintf(&p.text, f+"\n", args...) }

func (p *page) section(name string) { p.line("\n%s", name) }

func (p *page) row(columns ...column) {
	var row strings.Builder
	for _, c := range columns {
		row.WriteString("  ")
		c.text = shown(c.text)
		pad := strings.Repeat(" ", max(0, abs(c.width)-utf8.RuneCountInString(c.text)))
		if c.width < 0 {
			row.WriteString(pad + c.text)
		} else {
			row.WriteString(c.text + pad)
		}
	}
	p.line("%s", strings.TrimRight(row.String(), " "))
}

// longest is how much of a text the page shows.
const longest = 400

// shown is a text that stays in its row: characters that would not are escaped as in
// Go, and what is too long is cut.
func shown(text string) string {
	var b strings.Builder
	n := 0
	for _, r := range text {
		if n++; n > longest {
			return b.String() + "…"
		}
		if unicode.IsPrint(r) {
			b.WriteRune(r)
		} else {
			b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
		}
	}
	return b.String()
}

func abs(n int) int { return max(n, -n) }

// format writes a number in its unit.
func format(v float64, unit Unit) string {
	switch unit {
	case Seconds:
		if v < 10 {
			return fmt.Sprintf("%.3f s", v)
		}
		return fmt.Sprintf("%.1f s", v)
	case PerSecond:
		return Thousands(int64(math.Round(v))) + "/s"
	case Bytes:
		return fmt.Sprintf("%.1f MiB", v/(1<<20))
	case Count:
	}
	return Thousands(int64(math.Round(v)))
}

// Thousands writes a whole number with commas.
func Thousands(n int64) string {
	digits := strconv.FormatInt(max(n, -n), 10)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	if n < 0 {
		return "-" + digits
	}
	return digits
}
