package results

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"time"
)

// Result is a run of the benchmark.
type Result struct {
	Started time.Time `json:"started"`
	// Seconds is how long all of it took, without the build.
	Seconds float64 `json:"seconds"`
	// Quick says that there were few repetitions and few events.
	Quick   bool    `json:"quick"`
	Machine Machine `json:"machine"`
	// Parameters are how much of everything was asked for.
	Parameters  any          `json:"parameters"`
	Experiments []Experiment `json:"experiments"`
}

// Experiment is one question and what was measured to answer it.
type Experiment struct {
	Name  string `json:"name"`
	Title string `json:"title"`
	// Shows says how to read it.
	Shows   string  `json:"shows"`
	Points  []Point `json:"points"`
	Seconds float64 `json:"seconds"`
	// Wrong says which measurements could not be made, or do not count for what
	// they carried was not all there.
	Wrong []string `json:"wrong,omitempty"`
}

// Point is one case of an experiment.
type Point struct {
	Name    string   `json:"name"`
	Figures []Figure `json:"figures"`
}

// Figure is a number that was measured, once for each repetition.
type Figure struct {
	Name   string    `json:"name"`
	Unit   Unit      `json:"unit"`
	Values []float64 `json:"values"`
	// Promised is the most that is promised; 0 where nothing is.
	Promised float64 `json:"promised,omitempty"`
}

// One returns a figure of one repetition.
func One(name string, unit Unit, value float64) Figure {
	return Figure{Name: name, Unit: unit, Values: []float64{value}}
}

// Add takes in the points of another repetition: values of the same point and
// figure come together in the order in which they are added.
func (e *Experiment) Add(points ...Point) {
	for _, p := range points {
		i := slices.IndexFunc(e.Points, func(q Point) bool { return q.Name == p.Name })
		if i < 0 {
			i = len(e.Points)
			e.Points = append(e.Points, Point{Name: p.Name})
		}
		for _, f := range p.Figures {
			e.Points[i].add(f)
		}
	}
}

func (p *Point) add(f Figure) {
	i := slices.IndexFunc(p.Figures, func(g Figure) bool { return g.Name == f.Name })
	if i < 0 {
		p.Figures = append(p.Figures, f)
		return
	}
	p.Figures[i].Values = append(slices.Clone(p.Figures[i].Values), f.Values...)
}

// figure returns the point's figure of that name.
func (p *Point) figure(name string) (Figure, bool) {
	i := slices.IndexFunc(p.Figures, func(f Figure) bool { return f.Name == name })
	if i < 0 {
		return Figure{}, false
	}
	return p.Figures[i], true
}

// columns are the names of all figures, in the order in which they first come.
func (e *Experiment) columns() []string {
	var names []string
	for _, p := range e.Points {
		for _, f := range p.Figures {
			if !slices.Contains(names, f.Name) {
				names = append(names, f.Name)
			}
		}
	}
	return names
}

// Sound says whether everything was measured, and all that was carried was there.
func (r *Result) Sound() bool {
	return !slices.ContainsFunc(r.Experiments, func(e Experiment) bool { return len(e.Wrong) > 0 })
}

// WriteJSON writes the result to a file.
func (r *Result) WriteJSON(path string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("write result: %w", err)
	}
	if err := os.WriteFile(path, append(text, '\n'), 0o644); err != nil {
		return fmt.Errorf("write result: %w", err)
	}
	return nil
}

// Read reads what WriteJSON wrote.
func Read(path string) (*Result, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read result: %w", err)
	}
	r := &Result{}
	if err := json.Unmarshal(text, r); err != nil {
		return nil, fmt.Errorf("read result %s: %w", path, err)
	}
	return r, nil
}
