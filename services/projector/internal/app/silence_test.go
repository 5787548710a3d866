package app

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"changerelay/services/projector/internal/config"
	"changerelay/services/projector/internal/projection"
	"changerelay/services/projector/internal/readmodel"
	"changerelay/services/projector/internal/rebuild"
	"changerelay/services/projector/internal/sandboxtest"
	"changerelay/services/projector/internal/session"
)

// counting counts the batches that it applies.
type counting struct{ batches int }

func (c *counting) Hold(string) session.Applier { return c }

func (c *counting) Apply(context.Context, []session.Message) ([]session.Verdict, error) {
	c.batches++
	return nil, nil
}

// A rebuild that goes on does not wait for a projector that was silent for long. When that
// one can be heard again, it must not apply anything by what was before.
func TestHeard_ASilenceDoesNotEndForWhoHasMissedARebuild(t *testing.T) {
	t.Parallel()
	servers := sandboxtest.StartWith(t, sandboxtest.Topics())
	client, database := servers.Mongo(t, nil)
	declared, err := projection.Parse("test.yaml", []byte("projections: [{name: orders, version: 1, collection: orders, on: {E: {inc: {n: 1}}}}]"))
	if err != nil {
		t.Fatal(err)
	}
	cfg := config.Config{Database: database}
	a := &App{store: readmodel.New(client, cfg.ReadModel(declared)), declared: declared, collections: declared.Collections()}
	if err := a.belongs(t.Context()); err != nil {
		t.Errorf("nothing is rebuilt: got %v", err)
	}
	v, _ := projection.VersionOf(declared[0])
	if err := a.store.Revise(t.Context(), rebuild.Record{}, rebuild.Record{}.Begin(&v, 1, "", "a test", "a test", time.Now())); err != nil {
		t.Fatal(err)
	}
	var changed *ChangedError
	if err := a.belongs(t.Context()); !errors.As(err, &changed) {
		t.Errorf("a rebuild has begun: got %v, want that the records have changed", err)
	}
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
