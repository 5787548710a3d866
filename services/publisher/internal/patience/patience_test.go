package patience

import (
	"errors"
	"testing"
	"time"
)

func TestPatience_GrowsWithCallsThatTakeTheirTimeAndShrinksWithAnswers(t *testing.T) {
	t.Parallel()
	failed := errors.New("no answer")
	p := Patience{Least: 2 * time.Second, Most: 10 * time.Second}
	for i, step := range []struct {
		took time.Duration
		err  error
		want time.Duration
	}{
		{0, nil, 2 * time.Second},
		{2 * time.Second, failed, 4 * time.Second},
		{4 * time.Second, failed, 8 * time.Second},
		{time.Millisecond, failed, 8 * time.Second}, // refused: it says nothing about the time of an answer
		{8 * time.Second, failed, 10 * time.Second},
		{4 * time.Second, nil, 8 * time.Second},
		{3 * time.Second, nil, 6 * time.Second},
		{time.Millisecond, nil, 2 * time.Second},
	} {
		p.Note(step.took, step.err)
		if got := p.Bound(); got != step.want {
			t.Errorf("after call %d: got %s, want %s", i, got, step.want)
		}
	}
}
