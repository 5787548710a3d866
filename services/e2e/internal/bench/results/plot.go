package results

import (
	"math"
	"strconv"

	"changerelay/services/e2e/internal/check/report"
)

// Measures of a plot, in its own units.
const (
	plotWidth  = 420
	plotLeft   = 2
	plotRight  = 410
	rowHeight  = 38
	nameHeight = 15
	barTop     = 20
	barHeight  = 11
	axisHeight = 20
	wantTicks  = 4
)

// plot is one figure of an experiment, a row for each point, from zero.
type plot struct {
	Name                string
	Width, Height       int
	Left, Right, Bottom int
	Ticks               []tick
	Rows                []row
}

// tick is a mark of the axis.
type tick struct {
	X      float64
	Text   string
	Anchor string
}

// row is one point: the median as a bar, each repetition as a dot.
type row struct {
	Name, Value                            string
	NameY, BarY, BarHeight, BarEnd, Middle int
	BarWidth                               float64
	Dots                                   []float64
	Bound                                  float64
}

func newPlot(e Experiment, name string) plot {
	var figures []Figure
	var unit Unit
	most := 0.0
	for _, p := range e.Points {
		f, found := p.figure(name)
		figures = append(figures, f)
		if found {
			unit = f.Unit
		}
		for _, v := range append([]float64{f.Promised}, f.Values...) {
			most = max(most, v)
		}
	}
	a := newAxis(most, unit)
	p := plot{Name: name, Width: plotWidth, Left: plotLeft, Right: plotRight, Bottom: rowHeight * len(e.Points)}
	p.Height = p.Bottom + axisHeight
	p.Ticks = a.ticks()
	for i, f := range figures {
		top := i * rowHeight
		r := row{
			Name: e.Points[i].Name, NameY: top + nameHeight, BarY: top + barTop, BarHeight: barHeight,
			BarEnd: top + barTop + barHeight, Middle: top + barTop + barHeight/2,
		}
		if len(f.Values) > 0 {
			r.Value = f.Unit.text(Median(f.Values))
			r.BarWidth = a.at(Median(f.Values)) - plotLeft
		}
		for _, v := range f.Values {
			r.Dots = append(r.Dots, a.at(v))
		}
		if f.Promised > 0 {
			r.Bound = a.at(f.Promised)
		}
		p.Rows = append(p.Rows, r)
	}
	return p
}

// axis runs from zero to its end in steps that are round in its unit.
type axis struct {
	step, end float64
	one       float64
	symbol    string
}

func newAxis(most float64, unit Unit) axis {
	one, symbol := unit.scale(most)
	if most <= 0 {
		return axis{one, one, one, symbol}
	}
	magnitude := math.Pow(10, math.Floor(math.Log10(most/one/wantTicks))) * one
	step := magnitude
	for _, m := range []float64{2, 5, 10} {
		if most/step > wantTicks {
			step = m * magnitude
		}
	}
	return axis{step, step * math.Ceil(most/step), one, symbol}
}

// at is where a value is, to a tenth.
func (a axis) at(v float64) float64 {
	return math.Round((plotLeft+v/a.end*(plotRight-plotLeft))*10) / 10
}

func (a axis) ticks() []tick {
	var ticks []tick
	for i := range int(math.Round(a.end/a.step)) + 1 {
		v := float64(i) * a.step
		t := tick{X: a.at(v), Text: plain(v / a.one), Anchor: "middle"}
		switch {
		case i == 0:
			t.Anchor = "start"
		case v > a.end-a.step/2:
			t.Text, t.Anchor = t.Text+a.symbol, "end"
		}
		ticks = append(ticks, t)
	}
	return ticks
}

// plain writes a round number as short as it goes.
func plain(v float64) string {
	if v >= 1000 {
		return report.Thousands(int64(math.Round(v)))
	}
	return strconv.FormatFloat(v, 'g', 6, 64)
}
