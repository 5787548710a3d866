package delivery_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/rs/zerolog"

	"changerelay/services/projector/internal/delivery"
	"changerelay/services/projector/internal/projection"
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

func TestEachWriteSaysUnderWhichHoldItIsMade(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		store := &signed{Store: f.store}
		h := delivery.New(parse(t, counting)[:1], store, f.store, f.halts, f.observer, zerolog.Nop()).Named("p")
		for _, messages := range [][]int64{{1, 2}, {3}} {
			if _, err := h.Hold("a").Apply(t.Context(), happened(t, "a", messages...)); err != nil {
				t.Fatal(err)
			}
		}
		if want := []string{"p/1", "p/1", "p/2"}; !slices.Equal(store.by, want) {
			t.Errorf("got %q, want %q", store.by, want)
		}
	})
}
