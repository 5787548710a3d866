package demo

import (
	"strings"
	"testing"
	"time"
)

func shown() view {
	return view{
		elapsed: 12500 * time.Millisecond, written: 25_000, sent: 24_990, applied: 24_900, rate: 2000,
		leader: "publisher-2, term 2", projectors: []string{"64", "down", "12"}, fault: "SIGKILL of publisher-1: under way",
	}
}

func TestTracker_TheBoardOffATerminalIsOneLine(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	b := board{out: &out}
	b.draw(shown())
	b.draw(shown())
	line := " 12.5s  written 25,000 (2,000/s)  sent 24,990  applied 24,900  behind 100  leader publisher-2, term 2  sessions 64+down+12\n"
	want := "        SIGKILL of publisher-1: under way\n" + line + line
	if out.String() != want {
		t.Errorf("lines:\ngot\n%swant a fault told of once\n%s", out.String(), want)
	}
}

func TestTracker_TheBoardOnATerminalIsDrawnOverItself(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	b := board{out: &out, terminal: true, width: 30}
	b.draw(shown())
	first := out.String()
	for line := range strings.Lines(first) {
		if text := strings.TrimPrefix(strings.TrimSuffix(line, "\n"), "\x1b[2K"); len(text) >= 30 {
			t.Errorf("line: got %q of %d characters, want less than the terminal's 30", text, len(text))
		}
	}
	out.Reset()
	v := shown()
	v.fault = ""
	b.draw(v)
	if strings.HasPrefix(first, "\x1b[7A") {
		t.Error("first drawing: it moves up, over what was there before")
	}
	if !strings.HasPrefix(out.String(), "\x1b[7A") {
		t.Errorf("second drawing: got %q, want it to move up the 7 lines of the first", out.String())
	}
	if got, want := strings.Count(out.String(), "\n"), strings.Count(first, "\n"); got != want {
		t.Errorf("lines of the second drawing: got %d, want %d", got, want)
	}
}

func TestTracker_Quantiles(t *testing.T) {
	t.Parallel()
	values := make([]time.Duration, 100)
	for i := range values {
		values[i] = time.Duration(i+1) * time.Millisecond
	}
	for share, want := range map[float64]time.Duration{0: time.Millisecond, 0.5: 51 * time.Millisecond, 0.99: 100 * time.Millisecond, 1: 100 * time.Millisecond} {
		if got := quantile(values, share); got != want {
			t.Errorf("quantile %v: got %v, want %v", share, got, want)
		}
	}
	if got := quantile(nil, 0.5); got != 0 {
		t.Errorf("quantile of nothing: got %v, want 0", got)
	}
}
