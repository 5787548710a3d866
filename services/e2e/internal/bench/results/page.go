package results

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"os"
	"strings"
)

//go:embed page.html
var pageText string

var page = template.Must(template.New("page").Parse(pageText))

// section is an experiment as the page shows it.
type section struct {
	Experiment
	Plots   []plot
	Columns []string
	Table   [][]string
}

// WritePage writes the result as a page with plots.
func (r *Result) WritePage(w io.Writer) error {
	var sections []section
	for _, e := range r.Experiments {
		s := section{Experiment: e, Columns: e.columns()}
		for _, name := range s.Columns {
			s.Plots = append(s.Plots, newPlot(e, name))
		}
		for _, p := range e.Points {
			row := []string{p.Name}
			for _, name := range s.Columns {
				row = append(row, cell(p.figure(name)))
			}
			s.Table = append(s.Table, row)
		}
		sections = append(sections, s)
	}
	if err := page.Execute(w, map[string]any{"Conditions": r.conditions(), "Experiments": sections}); err != nil {
		return fmt.Errorf("write page: %w", err)
	}
	return nil
}

// WritePageFile writes the page to a file.
func (r *Result) WritePageFile(path string) error {
	var text strings.Builder
	if err := r.WritePage(&text); err != nil {
		return err
	}
	if err := os.WriteFile(path, []byte(text.String()), 0o644); err != nil {
		return fmt.Errorf("write page: %w", err)
	}
	return nil
}
