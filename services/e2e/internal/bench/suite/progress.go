package suite

import (
	"fmt"
	"io"
	"time"

	"changerelay/services/e2e/internal/bench/results"
)

// progress tells what is being measured and how long all of it may still take.
type progress struct {
	out         io.Writer
	began       time.Time
	done, total time.Duration // of what rounds usually take
	number, all int
}

func newProgress(out io.Writer, experiments []experiment) *progress {
	p := &progress{out: out, began: time.Now()}
	for _, e := range experiments {
		p.all += len(e.rounds)
		for _, r := range e.rounds {
			p.total += r.usual
		}
	}
	return p
}

func (p *progress) begin(e experiment, r round) {
	p.number++
	p.note("%d of %d  %s: %s; %s", p.number, p.all, e.name, r.name, p.left())
}

// left estimates by how long rounds took so far against what they usually take.
func (p *progress) left() string {
	rest := p.total - p.done
	if p.done > 0 {
		rest = time.Duration(float64(rest) * float64(time.Since(p.began)) / float64(p.done))
	}
	return fmt.Sprintf("about %v left", rest.Round(10*time.Second))
}

func (p *progress) end(r round, points []results.Point) {
	p.done += r.usual
	for _, point := range points {
		p.note("        %s", point.Line())
	}
}

func (p *progress) note(format string, args ...any) {
	fmt.Fprintf(p.out, "%6.0fs  %s\n", time.Since(p.began).Seconds(), fmt.Sprintf(format, args...))
}
