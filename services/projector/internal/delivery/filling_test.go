package delivery_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/delivery"
	"changerelay/services/projector/internal/projection"
	"changerelay/services/projector/internal/session"
)

// fillsNothing has what is resent for others' versions stored nowhere.
type fillsNothing struct{}

func (fillsNothing) Meant(r contract.Resend) bool { return r.Group == "/orders_v2" }
func (fillsNothing) Begin() delivery.Choice       { return fillsNothing{} }

func (f fillsNothing) Of(_ context.Context, e *contract.Event, writes []projection.Write) ([]projection.Write, error) {
	if f.Meant(e.Resend) {
		return nil, nil
	}
	return writes, nil
}

// What fills a version is not parked with what follows a failed event: it has the place
// of a live event there, which would then be taken to be parked already.
func TestFilling_IsNotParkedBehindAFailedEvent(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(_ *delivery.Config, d *delivery.Deps) { d.Filling = fillsNothing{} })
	all := slices.Concat(happened(t, "a", 1), []session.Message{message(t, "a", 2, "Doubled", `{"n":"x"}`)}, resent(t, "/orders_v2", happened(t, "a", 3)), happened(t, "a", 3))
	verdicts, err := f.Hold("a").Apply(t.Context(), all)
	if !errors.Is(err, session.ErrNotYet) || len(verdicts) != 2 {
		t.Errorf("got %v and %v, want the first two completed, and the rest to wait", verdicts, err)
	}
	if got := f.parked(t, "a"); !slices.Equal(got, []int64{2}) {
		t.Errorf("parked: got %v, want the failed one alone", got)
	}
}
