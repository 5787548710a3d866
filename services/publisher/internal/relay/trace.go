package relay

import (
	"time"

	"changerelay/pkg/contract"
)

// trace begins to follow an item, where somebody does. Without a tracer it, and
// all below, cost a comparison.
func (it *item) trace(tracer Tracer, event contract.Event, readAt time.Time) {
	if tracer != nil {
		it.span = tracer.Begin(event, &it.message, readAt)
	}
}

func traceAccepted(items []*item) {
	for _, it := range items {
		if it.span != nil {
			it.span.Accepted()
		}
	}
}

// traceFailed is for items that will be sent again.
func traceFailed(items []*item, failure *SendError) {
	for _, it := range items {
		if it.span != nil {
			it.span.Failed(failure)
		}
	}
}

func traceParked(it *item, reason string) {
	if it.span != nil {
		it.span.Parked(reason)
	}
}
