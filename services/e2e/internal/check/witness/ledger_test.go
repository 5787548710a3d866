package witness

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"changerelay/services/e2e/internal/check/validate"
	"changerelay/services/e2e/internal/harness/orders"
)

func written(aggregate string, versions ...int64) []orders.Event {
	var events []orders.Event
	for _, v := range versions {
		events = append(events, orders.Event{Aggregate: aggregate, Version: v})
	}
	return events
}

func TestLedger(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name             string
		do               func(l *Ledger)
		written, applied int
	}{
		{name: "an empty ledger", do: func(*Ledger) {}},
		{
			name: "a document at a version holds all up to it", written: 4, applied: 2,
			do: func(l *Ledger) {
				l.Wrote(written("a", 3, 5, 9, 11))
				l.SawApply(validate.Apply{Document: "a", Version: 5})
			},
		},
		{
			name: "an apply may be seen before the write is known", written: 2, applied: 1,
			do: func(l *Ledger) {
				l.SawApply(validate.Apply{Document: "a", Version: 1})
				l.Wrote(written("a", 1, 2))
			},
		},
		{
			name: "a document that goes back takes its events back", written: 3, applied: 1,
			do: func(l *Ledger) {
				l.Wrote(written("a", 1, 2, 3))
				l.SawApply(validate.Apply{Document: "a", Version: 3})
				l.SawApply(validate.Apply{Document: "a", Version: 1})
			},
		},
		{
			name: "version 0 is applied only when it was seen", written: 2, applied: 1,
			do: func(l *Ledger) {
				l.Wrote(written("a", 0))
				l.Wrote(written("b", 0))
				l.SawApply(validate.Apply{Document: "b", Version: 0})
			},
		},
		{
			name: "a document of nobody's counts nothing", written: 1, applied: 0,
			do: func(l *Ledger) {
				l.Wrote(written("a", 1))
				l.SawApply(validate.Apply{Document: "z", Version: 8})
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			l := NewLedger()
			tt.do(l)
			if w, a := l.Counts(); w != tt.written || a != tt.applied {
				t.Errorf("counts: got %d written and %d applied, want %d and %d", w, a, tt.written, tt.applied)
			}
		})
	}
}

func TestLedger_WrittenBetween(t *testing.T) {
	t.Parallel()
	before := time.Now()
	l := NewLedger()
	l.Wrote(written("a", 1, 2))
	after := time.Now()
	if got, want := l.WrittenBetween(before, after), 2; got != want {
		t.Errorf("written meanwhile: got %d, want %d", got, want)
	}
	if got, want := l.WrittenBetween(after.Add(time.Hour), after.Add(2*time.Hour)), 0; got != want {
		t.Errorf("written later: got %d, want %d", got, want)
	}
}

func TestLedger_DelaysRunFromTheWriteToTheReadModel(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := NewLedger()
		l.Wrote(written("a", 1))
		time.Sleep(2 * time.Second) //nolint:forbidigo // in a bubble, where it is exact
		l.Wrote(written("a", 2))
		time.Sleep(time.Second) //nolint:forbidigo // in a bubble, where it is exact
		l.SawApply(validate.Apply{Document: "a", Version: 2})
		l.SawApply(validate.Apply{Document: "a", Version: 2})
		l.SawApply(validate.Apply{Document: "b", Version: 1})
		l.Wrote(written("b", 1))
		if got, want := l.Delays(), []time.Duration{3 * time.Second, time.Second, 0}; !slices.Equal(got, want) {
			t.Errorf("delays: got %v, want %v", got, want)
		}
	})
}
