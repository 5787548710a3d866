package demo

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"changerelay/services/e2e/internal/check/report"
	"changerelay/services/e2e/internal/check/witness"
	"changerelay/services/e2e/internal/harness/cluster"
)

// board shows how the run is going: redrawn in place on a terminal, now and then
// a line elsewhere.
type board struct {
	out      io.Writer
	terminal bool
	width    int // of the terminal, in characters
	began    time.Time
	cluster  *cluster.Cluster
	ledger   *witness.Ledger
	nemesis  *nemesis
	observed func() int

	lines   int // drawn last
	written int // at the last look
	looked  time.Time
	told    string // the fault that was told of last
}

// Intervals of the board.
const (
	redraw    = 250 * time.Millisecond
	plainLine = 2 * time.Second
)

// usualWidth is the width of a terminal that does not tell.
const usualWidth = 80

func (d *Demo) board() *board {
	width, terminal := terminalOf(d.out)
	return &board{
		out: d.out, terminal: terminal, width: width, began: time.Now(), looked: time.Now(),
		cluster: d.cluster, ledger: d.witness.Ledger, nemesis: d.nemesis, observed: d.witness.Observer.Count,
	}
}

// run draws until ctx ends.
func (b *board) run(ctx context.Context) error {
	every := plainLine
	if b.terminal {
		every = redraw
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			b.draw(b.look(ctx))
		}
	}
}

// view is what the board shows at one time.
type view struct {
	elapsed                time.Duration
	written, sent, applied int
	rate                   float64
	leader                 string
	projectors             []string
	fault                  string
}

// look asks everyone how it is going.
func (b *board) look(ctx context.Context) view {
	v := view{elapsed: time.Since(b.began), sent: b.observed(), leader: "none"}
	v.written, v.applied = b.ledger.Counts()
	v.rate = float64(v.written-b.written) / time.Since(b.looked).Seconds()
	b.written, b.looked = v.written, time.Now()
	if n, s, found := b.cluster.Leader(ctx); found {
		v.leader = fmt.Sprintf("%s, term %d", n.Name, s.Term)
	}
	for _, p := range b.cluster.Projectors {
		s, err := p.ProjectorStatus(ctx)
		if err != nil {
			v.projectors = append(v.projectors, "down")
			continue
		}
		v.projectors = append(v.projectors, fmt.Sprint(s.Sessions))
	}
	if f, found := b.nemesis.latest(); found {
		v.fault = f.What + ": " + f.Outcome
	}
	return v
}

func (b *board) draw(v view) {
	if !b.terminal {
		if v.fault != b.told {
			fmt.Fprintf(b.out, "        %s\n", v.fault)
			b.told = v.fault
		}
		fmt.Fprintln(b.out, v.line())
		return
	}
	rows := v.rows()
	if b.lines > 0 {
		fmt.Fprintf(b.out, "\x1b[%dA", b.lines)
	}
	for _, row := range rows {
		fmt.Fprintf(b.out, "\x1b[2K%s\n", cut(row, b.width))
	}
	b.lines = len(rows)
}

// line is the board in one line.
func (v view) line() string {
	return fmt.Sprintf("%5.1fs  written %s (%s/s)  sent %s  applied %s  behind %s  leader %s  sessions %s",
		v.elapsed.Seconds(), count(v.written), count(int(v.rate)), count(v.sent), count(v.applied), count(v.written-v.applied),
		v.leader, strings.Join(v.projectors, "+"))
}

// rows is the board as a block of lines, always the same number of them.
func (v view) rows() []string {
	return []string{
		fmt.Sprintf("  %-10s %10.1f s", "elapsed", v.elapsed.Seconds()),
		fmt.Sprintf("  %-10s %10s    %s/s", "written", count(v.written), count(int(v.rate))),
		fmt.Sprintf("  %-10s %10s", "sent", count(v.sent)),
		fmt.Sprintf("  %-10s %10s    %s behind", "applied", count(v.applied), count(v.written-v.applied)),
		fmt.Sprintf("  %-10s %s", "leader", v.leader),
		fmt.Sprintf("  %-10s %s sessions", "projectors", strings.Join(v.projectors, " + ")),
		fmt.Sprintf("  %-10s %s", "fault", v.fault),
	}
}

func count(n int) string { return report.Thousands(int64(n)) }

// cut shortens a row that would wrap, for wrapped rows are not drawn over.
func cut(row string, width int) string {
	if text := []rune(row); len(text) >= width {
		return string(text[:max(0, width-1)])
	}
	return row
}

// terminalOf returns the width of the terminal that out is; false when it is none.
func terminalOf(out io.Writer) (width int, ok bool) {
	f, ok := out.(*os.File)
	if !ok {
		return 0, false
	}
	return fileTerminal(f)
}
