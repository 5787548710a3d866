package app

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"changerelay/services/projector/internal/readmodel"
	"changerelay/services/projector/internal/session"
)

// counting counts the batches that it applies.
type counting struct{ batches int }

func (c *counting) Hold(string) session.Applier { return c }

func (c *counting) Apply(context.Context, []session.Message) ([]session.Verdict, error) {
	c.batches++
	return nil, nil
}

// A session that is held when a silence begins has nothing more of it applied.
func TestHeard_ASessionThatIsHeldIsGivenBackInASilence(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		applied := &counting{}
		hold := heard{applied, (*readmodel.Store)(nil).Process("one", "one")}.Hold("a")
		if _, err := hold.Apply(t.Context(), nil); err != nil || applied.batches != 1 {
			t.Errorf("heard: got %v and %d batches, want one", err, applied.batches)
		}
		time.Sleep(time.Minute) // in a bubble, where it is exact; no beat comes
		_, err := hold.Apply(t.Context(), nil)
		if !errors.Is(err, session.ErrPaused) || !errors.Is(err, readmodel.ErrSilent) || applied.batches != 1 {
			t.Errorf("silent: got %v and %d batches, want none more, and the session given back", err, applied.batches)
		}
	})
}
