package delivery_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/delivery"
	"changerelay/services/projector/internal/projection"
	"changerelay/services/projector/internal/session"
)

// fillsNothing has what is resent for others' versions stored nowhere.
type fillsNothing struct{}

func (fillsNothing) Begin() delivery.Choice { return fillsNothing{} }

func (fillsNothing) Filled(r contract.Resend) string {
	if r.Group == "/orders_v2" {
		return "orders_v2"
	}
	return ""
}

func (fillsNothing) Has(name string) bool { return name == "orders_v2" }

func (f fillsNothing) Of(_ context.Context, e *contract.Event, writes []projection.Write) ([]projection.Write, error) {
	if f.Filled(e.Resend) != "" {
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

// A message that cannot be kept leaves its place: what follows is not applied as
// if it had never been.
func TestPark_AMessageThatCannotBeKeptIsDeadLetteredAndItsPlaceKept(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		parks := 0
		f.store.Fail = func(operation string) error {
			if operation == "park" {
				if parks++; parks == 1 {
					return &delivery.RejectedError{Reason: "too large"}
				}
			}
			return nil
		}
		messages := append([]session.Message{message(t, "a", 1, "Doubled", `{"n":"x"}`)}, happened(t, "a", 2)...)
		verdicts, err := f.Hold("a").Apply(t.Context(), messages)
		if err != nil || len(verdicts) != 2 || !verdicts[0].DeadLetter || verdicts[1].DeadLetter {
			t.Fatalf("got %+v and %v, want the first dead-lettered", verdicts, err)
		}
		if got := f.parked(t, "a"); !slices.Equal(got, []int64{1, 2}) {
			t.Errorf("parked: got %v, want the place of the first, and the second", got)
		}
		done, err := delivery.Redrive(t.Context(), parse(t, counting), f.store, f.store, delivery.Gaps{}, "a")
		if err != nil || done.Lifted || done.Applied != 0 || done.FailedEventID != "a-1" {
			t.Errorf("redrive: got %+v and %v, want it to stop at the one that is not there", done, err)
		}
	})
}

func TestDelivery_AMessageThatCannotBeParkedIsDeadLettered(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		f.store.Fail = func(operation string) error {
			if operation == "park" {
				return &delivery.RejectedError{Reason: "too large"}
			}
			return nil
		}
		verdicts, err := f.Hold("a").Apply(t.Context(), []session.Message{message(t, "a", 1, "Doubled", `{"n":"x"}`)})
		if err != nil || len(verdicts) != 1 || !verdicts[0].DeadLetter || !strings.Contains(verdicts[0].Description, "too large") {
			t.Errorf("got %+v and %v, want it dead-lettered with the reason", verdicts, err)
		}
	})
}

// What would fill a version and cannot be placed is dead-lettered, whatever its aggregate is.
func TestFilling_OfNoAggregateIsDeadLetteredBehindAHalt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, func(_ *delivery.Config, d *delivery.Deps) { d.Filling = fillsNothing{} })
		foreign := resent(t, "/orders_v2", happened(t, "a", 2))
		delete(foreign[0].Properties, "cloudEvents_sequence")
		for _, messages := range [][]session.Message{{message(t, "a", 1, "Doubled", `{"n":"x"}`)}, foreign} {
			if verdicts, err := f.Hold("a").Apply(t.Context(), messages); err != nil || len(verdicts) != 1 {
				t.Errorf("got %v and %v, want one verdict", verdicts, err)
			}
		}
		if got := f.Counts().Refused.Load(); got != 1 {
			t.Errorf("got %d dead-lettered, want the one without a sequence", got)
		}
	})
}
