package app_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"changerelay/services/projector/internal/readmodel"
	"changerelay/services/projector/internal/sandboxtest"
	"changerelay/services/projector/internal/settings"
)

// unheard is a projector that has applied an event, and can say no more that it lives.
func unheard(t *testing.T) (own *sandboxtest.Endpoints, p *projector, store *readmodel.Store, heard func()) {
	t.Helper()
	own = sandboxtest.StartWith(t, sandboxtest.Topics("heard"))
	client, database := own.Mongo(t, nil)
	cfg := configured(t, "heard", database)
	cfg.ServiceBusConnectionString, cfg.MongoURI = settings.Secret(own.ServiceBus), settings.Secret(own.MongoURI)
	projections := parse(t)
	p = start(t, cfg, projections)
	sendTo(t, own, "heard", happened("a", 1, 1)...)
	until(t, "the first event is applied", func() bool { return p.Status().Applied == 1 })
	if code, _ := answer(t, p, "/ready"); code != http.StatusOK {
		t.Errorf("ready: got %d, want it", code)
	}
	heard = own.Fault(t, map[string]any{"kind": "mongodb.fail", "commands": []string{"findAndModify"}, "code": 2, "app_name": readmodel.Application})
	until(t, "it is silent", func() bool { return p.Status().State == "cannot say that it lives" })
	if code, _ := answer(t, p, "/ready"); code == http.StatusOK || !strings.Contains(p.Status().LastError, "applies nothing") {
		t.Errorf("silent: got %d and %q, want that it is not ready, and says why", code, p.Status().LastError)
	}
	other := cfg
	other.Group = "other"
	store = readmodel.New(client, other.ReadModel(projections))
	return own, p, store, heard
}

// A projector that cannot say that it lives applies nothing, and goes on when it can.
func TestHeard_ASilentProjectorAppliesNothingUntilItIsHeard(t *testing.T) {
	t.Parallel()
	own, p, _, heard := unheard(t)
	sendTo(t, own, "heard", append(happened("a", 2, 2), happened("b", 1, 1)...)...)
	until(t, "no session is held", func() bool { s := p.Status(); return s.Sessions == 0 && s.Accepting == 0 })
	if s := p.Status(); s.Applied != 1 {
		t.Errorf("silent: %d are applied, want no more than before", s.Applied)
	}
	heard()
	until(t, "it goes on", func() bool { s := p.Status(); return s.Applied == 3 && s.State == "running" })
}

// One that others take for dead writes nothing beside them, also when it can say again
// that it lives.
func TestHeard_WhatIsMovedFromASilentProjectorIsNotItsAnyMore(t *testing.T) {
	t.Parallel()
	own, p, store, heard := unheard(t)
	p.ends = readmodel.ErrElsewhere
	var plan *readmodel.Move
	until(t, "it counts as gone", func() (gone bool) {
		found, err := store.PlanMove(t.Context(), []string{"orders"})
		plan = found
		return err == nil
	})
	if err := store.Move(t.Context(), plan, "a test"); err != nil {
		t.Fatal(err)
	}
	sendTo(t, own, "heard", append(happened("a", 2, 2), happened("b", 1, 1)...)...)
	heard()
	until(t, "it stops", func() bool { return p.Status().State == "stopped" })
	if s := p.Status(); s.Applied != 1 {
		t.Errorf("%d are applied, want none that came after the move", s.Applied)
	}
	if err := p.stop(); !errors.Is(err, readmodel.ErrElsewhere) {
		t.Errorf("it stops for %v, want that it is elsewhere", err)
	}
}
