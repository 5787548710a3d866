package app

import (
	"context"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/readmodel"
)

// skipRecords are the records of skipped events, which are asked for only where there may
// be some: a policy leaves events out, or the group has records, or nobody knows yet
// whether it has.
type skipRecords struct {
	*readmodel.Skipped
	leavesOut bool
	count     func() *int64 // nil until it is known
}

// LastSkipped implements delivery.Records.
func (r *skipRecords) LastSkipped(ctx context.Context, aggregate string) (contract.Sequence, error) {
	if n := r.count(); !r.leavesOut && n != nil && *n == 0 {
		return "", nil
	}
	return r.Skipped.LastSkipped(ctx, aggregate)
}
