package watch

import (
	"context"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"

	"changerelay/services/e2e/internal/check/validate"
)

// Leases is the history of the publishers' leases. Its methods are safe for
// concurrent use.
type Leases = states[validate.Holding]

// OpenLeases begins to watch the collection of leases; writes before the call
// are not seen.
func OpenLeases(ctx context.Context, collection *mongo.Collection) (*Leases, error) {
	return openStates(ctx, collection, leaseAfter)
}

// leaseAfter is a lease after a write. A field that the write leaves alone keeps its
// value.
func leaseAfter(state validate.Holding, w change) validate.Holding {
	state.Lease = w.id()
	if v, found := w.field("", "leaderId"); found {
		state.Leader, _ = v.StringValueOK()
	}
	if v, found := w.field("", "incarnation"); found {
		state.Incarnation, _ = v.StringValueOK()
	}
	if v, found := w.field("", "heartbeatAt"); found {
		ms, _ := v.DateTimeOK()
		state.From = time.UnixMilli(ms)
	}
	if v, found := w.field("", "expiresAt"); found {
		ms, _ := v.DateTimeOK()
		state.Until = time.UnixMilli(ms)
	}
	return state
}
