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

// fillsSecond fills version 2 of orders.
type fillsSecond struct{ fillsNothing }

func (f fillsSecond) Begin() delivery.Choice { return f }

func (f fillsSecond) Of(_ context.Context, e *contract.Event, writes []projection.Write) ([]projection.Write, error) {
	resent := f.Filled(e.Resend)
	return slices.DeleteFunc(slices.Clone(writes), func(w projection.Write) bool { return (w.Projection == "orders_v2") != (resent != "") }), nil
}

// filled is a handler that fills version 2 of orders, beside a projection that cannot apply
// a text.
func filled(t *testing.T, policed bool) *fixture {
	t.Helper()
	projections := parse(t, `
projections:
- {name: orders, version: 1, collection: orders, on: {Happened: {push: {seen: {value: data.n, last: 50}}}, Doubled: {inc: {n: data.n}}}}
- {name: strict, collection: strict, on: {Happened: {inc: {n: data.n}}}}
`)
	projections = append(projections, projections[0].(projection.Renumbered).Renumbered(2))
	return newFixtureOf(t, projections, func(_ *delivery.Config, d *delivery.Deps) {
		d.Filling = fillsSecond{}
		if policed {
			d.Policed = projection.Policed{Projections: projections}
		}
	})
}

// What is resent for a version is for that alone: that another projection cannot apply it,
// as it may be of a time before that one was there, says nothing.
func TestFilling_IsDecidedByTheVersionAlone(t *testing.T) {
	t.Parallel()
	for name, policed := range map[string]bool{"with policies": true, "without": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := filled(t, policed)
			text := resent(t, "/orders_v2", []session.Message{message(t, "a", 1, "Happened", `{"n":"x"}`)})
			f.applied(t, append(text, happened(t, "a", 2)...)...)
			if got := f.fields(t, "orders_v2", "a"); got != `{"seen":["x"]}` {
				t.Errorf("the version has %s, want what was resent", got)
			}
			if got := f.fields(t, "orders_v1", "a") + f.fields(t, "strict", "a"); got != `{"seen":[2]}{"n":2}` {
				t.Errorf("the others have %s, want the live event alone", got)
			}
		})
	}
}

// An event that was discarded and is resent holds up nothing: the version passes it by, and
// is at it then, so that the next live event follows.
func TestFilling_PassesByWhatWasDiscarded(t *testing.T) {
	t.Parallel()
	f := filled(t, true)
	bad := discardSecond(t, f.store)
	f.applied(t, resent(t, "/orders_v2", slices.Concat(happened(t, "a", 1), []session.Message{bad}, happened(t, "a", 3)))...)
	if got := f.fields(t, "orders_v2", "a"); got != `{"seen":[1,3]}` {
		t.Errorf("the version has %s, want the others", got)
	}
	at, err := f.store.Position(t.Context(), &projection.Write{Projection: "orders_v2", Keyed: true, Event: &contract.Event{AggregateID: "a"}})
	if err != nil || at.EventID != bad.ID {
		t.Errorf("the version is at %q with %v, want that it has passed by %q", at.EventID, err, bad.ID)
	}
	if c := f.Counts(); c.Discarded.Load() != 1 || c.Halts.Load() != 0 {
		t.Errorf("got %d discarded and %d halts, want 1 and none", c.Discarded.Load(), c.Halts.Load())
	}
}

// While it cannot be known whether an event was discarded, or that a version has passed it
// by cannot be stored, what is resent waits.
func TestFilling_WaitsForTheStoreToPassBy(t *testing.T) {
	t.Parallel()
	for _, failing := range []string{"discarded", "write"} {
		f := filled(t, true)
		bad := discardSecond(t, f.store)
		gone := errors.New("gone")
		f.store.Fail = func(operation string) error {
			if operation == failing {
				return gone
			}
			return nil
		}
		verdicts, err := f.Hold("a").Apply(t.Context(), resent(t, "/orders_v2", []session.Message{bad}))
		if !errors.Is(err, gone) || len(verdicts) != 0 {
			t.Errorf("%s: got %v and %v, want it to come again", failing, verdicts, err)
		}
	}
}
