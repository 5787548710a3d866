package relay

import (
	"testing"
	"time"

	"changerelay/pkg/contract"
)

func TestUntraced_WithoutATracerTracingAllocatesNothing(t *testing.T) {
	event := contract.Event{ID: "id", AggregateID: "a"}
	items := []*item{{message: contract.Message{ID: "id"}}, {message: contract.Message{ID: "id 2"}}}
	failed := &SendError{}
	now := time.Now()
	allocated := testing.AllocsPerRun(100, func() {
		for _, it := range items {
			it.trace(nil, event, now)
		}
		traceFailed(items, failed)
		traceAccepted(items)
		traceParked(items[0], "reason")
	})
	if allocated != 0 {
		t.Errorf("%v allocations, want none", allocated)
	}
}
