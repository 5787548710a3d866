package delivery

import (
	"errors"
	"testing"
	"time"

	"changerelay/services/projector/internal/session"
)

func TestUntraced_WithoutATracerTracingAllocatesNothing(t *testing.T) {
	b := &batch{items: []item{{message: &session.Message{}}, {message: &session.Message{}}}}
	failure := errors.New("failure")
	now := time.Now()
	allocated := testing.AllocsPerRun(100, func() {
		b.trace(nil, now)
		b.items[0].traced(FateApplied, "")
		b.untrace(failure)
	})
	if allocated != 0 {
		t.Errorf("%v allocations, want none", allocated)
	}
}
