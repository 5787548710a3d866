package delivery_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"

	"changerelay/services/projector/internal/delivery"
	"changerelay/services/projector/internal/projection"
	"changerelay/services/projector/internal/readmodel/readmodeltest"
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
