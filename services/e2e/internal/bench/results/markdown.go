package results

import (
	"fmt"
	"os"
	"strings"
)

// Marks around the part of a document that is written here.
const (
	beginMark = "<!-- results -->"
	endMark   = "<!-- end -->"
)

// Markdown returns the result as tables, one for each experiment.
func (r *Result) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", r.conditions())
	for _, e := range r.Experiments {
		fmt.Fprintf(&b, "\n### %s\n\n%s\n\n", e.Title, e.Shows)
		columns := e.columns()
		fmt.Fprintf(&b, "| | %s |\n|%s\n", strings.Join(columns, " | "), strings.Repeat(" --- |", len(columns)+1))
		for _, p := range e.Points {
			fmt.Fprintf(&b, "| %s |", p.Name)
			for _, name := range columns {
				f, found := p.figure(name)
				fmt.Fprintf(&b, " %s |", cell(f, found))
			}
			b.WriteString("\n")
		}
		for _, w := range e.Wrong {
			fmt.Fprintf(&b, "\nNot sound: %s\n", strings.ReplaceAll(w, "\n", " "))
		}
	}
	return b.String()
}

func cell(f Figure, found bool) string {
	if !found {
		return ""
	}
	if f.Promised > 0 {
		return fmt.Sprintf("%s, promised %s", f.spread(), f.Unit.text(f.Promised))
	}
	return f.spread()
}

// conditions says in a paragraph when and where it was measured.
func (r *Result) conditions() string {
	m := r.Machine
	text := fmt.Sprintf("Measured on %s in %.1f minutes, commit %s, %s, on %s, %d cores (%s), %.1f GiB of memory, at a load of %.2f when it began; MongoDB and Service Bus: %s.",
		r.Started.UTC().Format("2006-01-02"), r.Seconds/60, m.Commit, m.Go, m.System, m.Cores, m.CPU, float64(m.Memory)/(1<<30), m.Load, m.Servers)
	if m.Load > float64(m.Cores)/2 {
		text += " The machine was busy with other things: ratios are noise, and rates are low."
	}
	if r.Quick {
		text += " A quick run: few events and few repetitions."
	}
	return text
}

// Update writes the result's tables into the document at path, between its marks.
func (r *Result) Update(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("update tables: %w", err)
	}
	before, rest, found := strings.Cut(string(text), beginMark)
	_, after, ended := strings.Cut(rest, endMark)
	if !found || !ended {
		return fmt.Errorf("update tables: %s has no %s with %s after it", path, beginMark, endMark)
	}
	text = []byte(before + beginMark + "\n" + r.Markdown() + endMark + after)
	if err := os.WriteFile(path, text, 0o644); err != nil {
		return fmt.Errorf("update tables: %w", err)
	}
	return nil
}

// Line returns the point's figures in one line.
func (p Point) Line() string {
	texts := make([]string, len(p.Figures))
	for i, f := range p.Figures {
		texts[i] = f.Name + " " + f.spread()
	}
	return p.Name + ": " + strings.Join(texts, ", ")
}
