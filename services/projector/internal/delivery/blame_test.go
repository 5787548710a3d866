package delivery_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"changerelay/services/projector/internal/delivery"
	"changerelay/services/projector/internal/projection"
	"changerelay/services/projector/internal/session"
)

// refusesOf refuses what a projection writes.
type refusesOf struct {
	delivery.Store
	name string
}

func (s refusesOf) Write(ctx context.Context, writes []projection.Write) ([]delivery.Outcome, error) {
	for i := range writes {
		if writes[i].Projection == s.name && writes[i].Skipped == nil {
			return make([]delivery.Outcome, len(writes)), &delivery.RejectedError{Index: i, Class: projection.Store, Reason: "refused"}
		}
	}
	return s.Store.Write(ctx, writes)
}

// A halt and a stop say which projection is to blame: the one that does not decide, or
// whose write the store refuses, whatever the others do.
func TestBlame_IsOfTheProjectionThatFails(t *testing.T) {
	t.Parallel()
	const two = `projections:
  - {name: sound, collection: sound, onError: skip, on: {Happened: {inc: {n: 1}}, Doubled: {inc: {n: 1}}}}
  - {name: broken, collection: broken, on: {Happened: {inc: {n: 1}}, Doubled: {inc: {n: data.n * 2}}}}
`
	for name, c := range map[string]struct {
		policy, kind string
		policed      bool
	}{
		"a halt by the default of all": {"halt", "Doubled", false},
		"a halt by policy":             {"halt", "Doubled", true},
		"a stop":                       {"evaluate=stop", "Doubled", true},
		"a refusal":                    {"halt", "Happened", false},
		"a refusal, by policy":         {"halt", "Happened", true},
		"a refusal that stops":         {"store=stop", "Happened", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				with := []setting{withBrake(0)}
				if c.policed {
					with = append(with, under(t, c.policy))
				}
				if c.kind == "Happened" {
					with = append(with, func(_ *delivery.Config, d *delivery.Deps) { d.Store = refusesOf{d.Store, "broken"} })
				}
				f := newFixtureOf(t, parse(t, two), with...)
				_, err := f.Hold("a").Apply(t.Context(), []session.Message{message(t, "a", 1, c.kind, `{"n":"x"}`)})
				if strings.HasSuffix(c.policy, "stop") {
					stop, lost := f.store.Stopped(t.Context())
					if lost != nil || stop == nil || stop.Projection != "broken" || !strings.Contains(err.Error(), `projection "broken"`) || len(f.observer.halted) != 0 {
						t.Errorf("got %+v, %v and %v, want a stop because of the broken one", stop, err, f.observer.halted)
					}
					return
				}
				if err != nil || !slices.Equal(f.observer.halted, []string{"broken"}) {
					t.Errorf("got %v and halts because of %v, want one of the broken one", err, f.observer.halted)
				}
			})
		})
	}
}
