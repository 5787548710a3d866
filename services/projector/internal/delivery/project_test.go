package delivery_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"

	"changerelay/services/projector/internal/delivery"
	"changerelay/services/projector/internal/projection"
	"changerelay/services/projector/internal/readmodel/readmodeltest"
	"changerelay/services/projector/internal/session"
)

// signed notes under which hold each write is made.
type signed struct {
	delivery.Store
	by []string
}

func (s *signed) Write(ctx context.Context, writes []projection.Write) ([]delivery.Outcome, error) {
	for i := range writes {
		s.by = append(s.by, writes[i].By)
	}
	return s.Store.Write(ctx, writes)
}

func TestHold_EachWriteSaysUnderWhichHoldItIsMade(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &signed{Store: readmodeltest.NewFake()}
		f := newFixtureOf(t, parse(t, counting)[:1], func(c *delivery.Config, d *delivery.Deps) { c.Process, d.Store = "p", store })
		for _, messages := range [][]int64{{1, 2}, {3}} {
			if _, err := f.Hold("a").Apply(t.Context(), happened(t, "a", messages...)); err != nil {
				t.Fatal(err)
			}
		}
		if want := []string{"p/1", "p/1", "p/2"}; !slices.Equal(store.by, want) {
			t.Errorf("got %q, want %q", store.by, want)
		}
	})
}

func TestDelivery_WhatCannotBeProjectedHaltsItsAggregateAlone(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		poison string // data of the third event, of type Doubled
		says   string
		// before are events that must be stored in every projection.
		wantOrders, wantTotals string
	}{
		{"by a projection", `{"n":"three"}`, `projection "orders", event type "Doubled": inc "events"`, `{"events":2}{"last":2}{"seen":[1,2]}`, `{"sum":3}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t)
				poison := message(t, "a", 3, "Doubled", tt.poison)
				verdicts, err := f.Hold("a").Apply(t.Context(), append(append(happened(t, "a", 1, 2), poison), happened(t, "a", 4, 5)...))
				if err != nil || !slices.Equal(verdicts, make([]session.Verdict, 5)) {
					t.Fatalf("got %v and %v, want all completed", verdicts, err)
				}
				if got := f.parked(t, "a"); !slices.Equal(got, []int64{3, 4, 5}) {
					t.Errorf("parked: got %v, want 3, 4 and 5", got)
				}
				if got := f.fields(t, "orders", "a"); got != tt.wantOrders {
					t.Errorf("orders: got %s, want %s", got, tt.wantOrders)
				}
				if got := f.fields(t, "totals", "a"); got != tt.wantTotals {
					t.Errorf("totals: got %s, want %s", got, tt.wantTotals)
				}
				// Later messages of the aggregate follow, those of others flow.
				if _, err := f.Hold("a").Apply(t.Context(), happened(t, "a", 6)); err != nil {
					t.Fatal(err)
				}
				if _, err := f.Hold("b").Apply(t.Context(), happened(t, "b", 1)); err != nil {
					t.Fatal(err)
				}
				if got := f.parked(t, "a"); !slices.Equal(got, []int64{3, 4, 5, 6}) {
					t.Errorf("parked: got %v, want 3 to 6", got)
				}
				if got := f.fields(t, "totals", "b"); got != `{"sum":1}` {
					t.Errorf("another aggregate: got %s, want its event applied", got)
				}
				c := f.Counts()
				if c.Halts.Load() != 1 || c.Parked.Load() != 4 || c.Applied.Load() != 3 {
					t.Errorf("halts %d, parked %d, applied %d; want 1, 4, 3", c.Halts.Load(), c.Parked.Load(), c.Applied.Load())
				}
			})
		})
	}
}
