package readmodel_test

import (
	"errors"
	"testing"
	"time"

	"changerelay/services/projector/internal/projection"
	"changerelay/services/projector/internal/readmodel"
	"changerelay/services/projector/internal/rebuild"
)

// Of two who go on with a rebuild at the same time, one does.
func TestRebuilds_TheSameStateIsLeftOnce(t *testing.T) {
	t.Parallel()
	client, database := servers.Mongo(t, nil)
	store := readmodel.New(client, readmodel.Config{Database: database})
	v := projection.Version{Projection: "orders", View: "orders", Number: 1}
	at := time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC)
	for _, next := range []func(rebuild.Record) rebuild.Record{
		func(r rebuild.Record) rebuild.Record { return r.Begin(&v, 1, "somebody", "a test", at) },
		rebuild.Record.Follow, rebuild.Record.Settle,
	} {
		records, err := store.Rebuilds(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		changed := next(records.Of(&v))
		if err := store.Revise(t.Context(), changed); err != nil {
			t.Fatalf("the first: %v", err)
		}
		if err := store.Revise(t.Context(), changed); !errors.Is(err, readmodel.ErrRevised) {
			t.Errorf("the second: got %v, want it refused", err)
		}
	}
	records, err := store.Rebuilds(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r := records.Of(&v)
	if r.Current != 2 || r.Next != 0 || r.Revision != 3 || len(r.Retired) != 1 {
		t.Errorf("got %+v, want it settled with version 2", r)
	}
	late := r
	late.Revision, late.Next = 2, 9
	if err := store.Revise(t.Context(), late); !errors.Is(err, readmodel.ErrRevised) {
		t.Errorf("a revision that was overtaken: got %v, want it refused", err)
	}
	late.Revision = 1
	if err := store.Revise(t.Context(), late); !errors.Is(err, readmodel.ErrRevised) {
		t.Errorf("the first revision, again: got %v, want it refused", err)
	}
}
