package delivery_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/delivery"
	"changerelay/services/projector/internal/projection"
	"changerelay/services/projector/internal/readmodel/readmodeltest"
	"changerelay/services/projector/internal/session"
)

// What a version that is filled has says nothing of the projections that lack it, nor does it
// matter whether they can apply it.
func TestPutBack_WhatAVersionHasIsLackedByOthersStill(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := filled(t, true)
		r := newReturning(t, f.store)
		projections := parse(t, "projections:\n- {name: orders, version: 1, collection: orders, on: {Happened: {push: {seen: {value: data.n, last: 50}}}}}\n- {name: strict, collection: strict, on: {Happened: {inc: {n: data.n}}}}\n")
		projections = append(projections, projections[0].(projection.Renumbered).Renumbered(2))
		r.Decider, r.Gaps.Filling = projections, fillsSecond{}
		text := []session.Message{message(t, "a", 1, "Happened", `{"n":"x"}`)}
		event := changeOf(t, text[0]).Event
		skipped := projection.Write{Projection: "strict", Passed: true, Event: &event, Skipped: &projection.Skipped{Action: projection.DeadLetter}}
		if _, err := f.store.Write(t.Context(), []projection.Write{skipped}); err != nil {
			t.Fatal(err)
		}
		again := resent(t, "/orders_v2", text)
		f.applied(t, again...)
		fates, why, _ := r.run(t, again...)
		if records := f.store.Skips(event.ID); !slices.Equal(fates, []delivery.ReturnFate{delivery.ReturnApplied}) || len(records) != 1 {
			t.Errorf("got %v (%s) and records %v, want it applied already, and that of the other", fates, why, records)
		}
	})
}

// What was resent for a version that is filled is parked nowhere: it would have the place of
// the live event, which may yet come, and would count as that.
func TestPutBack_WhatWasResentTakesNoPlaceOfALiveEvent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := readmodeltest.NewFake()
		r := newReturning(t, store)
		projections := parse(t, "projections:\n- {name: orders, version: 1, collection: orders, on: {Happened: {push: {seen: {value: data.n, last: 50}}}}}\n")
		projections = append(projections, projections[0].(projection.Renumbered).Renumbered(2))
		r.Decider, r.Gaps.Filling = projections, fillsSecond{}
		live := happened(t, "a b;c", 1)[0]
		fates, why, _ := r.run(t, resent(t, "/orders_v2", []session.Message{live})...)
		if len(fates) != 1 || fates[0] != delivery.ReturnRefused || len(r.removed) != 0 {
			t.Errorf("got %v (%s), removed %v, want it refused, and to stay", fates, why, r.removed)
		}
		for _, line := range []string{"projector dlq discard 1", "publisher resend --aggregate 'a b;c' --group /orders_v2 --why TEXT"} {
			if !strings.Contains(why, line) {
				t.Errorf("got %q, want it to say %q", why, line)
			}
		}
		event, _ := contract.Place(live.Message)
		if parked, err := store.IsParked(t.Context(), &event); err != nil || parked {
			t.Errorf("got %v and %v, want the place of the live event free", parked, err)
		}
	})
}

// What was resent for somebody else, or for a version that a rebuild has ended, is taken by
// nothing here, as it would not be from the subscription: put back, it would begin a projection
// that was added since in the middle.
func TestPutBack_WhatWasResentForSomebodyElseIsNobodysHere(t *testing.T) {
	t.Parallel()
	for name, filling := range map[string]delivery.Filling{"no version is filled": nil, "another version is filled": fillsSecond{}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				store := readmodeltest.NewFake()
				r := newReturning(t, store)
				r.Group, r.Gaps.Filling = "readers", filling
				messages := append(resent(t, "readers/orders_v9", happened(t, "a", 1)), happened(t, "a", 2)...)
				fates, why, redriven := r.run(t, messages...)
				if want := []delivery.ReturnFate{delivery.ReturnNobodys, delivery.ReturnParked}; !slices.Equal(fates, want) || !strings.Contains(why, "projector dlq discard") {
					t.Errorf("got %v (%s), want %v, and how it is removed", fates, why, want)
				}
				if len(redriven) != 1 || !redriven[0].Lifted || !slices.Equal(r.removed, []string{"a-2"}) || !strings.Contains(r.orders(t), `"seen":[2]`) {
					t.Errorf("got %+v, removed %v, %s; want the live one alone applied", redriven, r.removed, r.orders(t))
				}
				fates, why, _ = r.run(t, resent(t, "readers", happened(t, "a", 3))...)
				if !slices.Equal(fates, []delivery.ReturnFate{delivery.ReturnParked}) {
					t.Errorf("for this group: got %v (%s), want it put back", fates, why)
				}
			})
		})
	}
}

// takesAll fills version 2 of orders, which takes live events as well.
type takesAll struct{ fillsSecond }

func (f takesAll) Begin() delivery.Choice { return f }

func (f takesAll) Of(ctx context.Context, e *contract.Event, writes []projection.Write) ([]projection.Write, error) {
	if f.Filled(e.Resend) == "" {
		return writes, nil
	}
	return f.fillsSecond.Of(ctx, e, writes)
}

// A version that is filled may have had a live event from the resend, and later ones: what the
// others lack is put back all the same.
func TestPutBack_WhatAVersionThatIsFilledHasGonePastIsPutBackForTheOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := filled(t, true)
		r := newReturning(t, f.store)
		projections := parse(t, "projections:\n- {name: orders, version: 1, collection: orders, on: {Happened: {push: {seen: {value: data.n, last: 50}}}}}\n")
		projections = append(projections, projections[0].(projection.Renumbered).Renumbered(2))
		r.Decider, r.Gaps.Filling = projections, takesAll{}
		f.applied(t, happened(t, "a", 1)...)
		f.applied(t, resent(t, "/orders_v2", happened(t, "a", 1, 2, 3))...)
		fates, why, redriven := r.run(t, happened(t, "a", 2)...)
		if !slices.Equal(fates, []delivery.ReturnFate{delivery.ReturnParked}) || len(redriven) != 1 || !redriven[0].Lifted || redriven[0].Applied != 1 {
			t.Errorf("got %v (%s) and %+v, want it put back and applied", fates, why, redriven)
		}
		for collection, want := range map[string]string{"orders_v1": `{"seen":[1,2]}`, "orders_v2": `{"seen":[1,2,3]}`} {
			if got, err := f.store.Fields(t.Context(), collection, "a"); err != nil || got != want {
				t.Errorf("%s: got %s and %v, want %s", collection, got, err, want)
			}
		}
	})
}

// state is a message of a source that numbers no versions.
func state(t *testing.T, n int64) session.Message {
	t.Helper()
	e := *readmodeltest.Event("a", n)
	e.Version, e.Sequence = contract.Version{}, contract.Sequence(e.Position)
	e.Type, e.ContentType, e.Data = "Happened", contract.ContentTypeJSON, []byte(`{"n":1}`)
	m, err := contract.Encode(e, contract.EncodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return session.Message{Message: m, SequenceNumber: n}
}

// A state of a document that is lost is not missed once a later one is there.
func TestPutBack_AStateThatALaterOneHasFollowedIsSettled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := filled(t, true)
		r := newReturning(t, f.store)
		projections := parse(t, "projections:\n- {name: orders, version: 1, collection: orders, on: {Happened: {push: {seen: {value: data.n, last: 50}}}}}\n")
		projections = append(projections, projections[0].(projection.Renumbered).Renumbered(2))
		r.Decider, r.Gaps.Filling = projections, fillsSecond{}
		states := resent(t, "/orders_v2", []session.Message{state(t, 1), state(t, 2)})
		f.applied(t, states[1])
		fates, why, _ := r.run(t, states[0])
		if !slices.Equal(fates, []delivery.ReturnFate{delivery.ReturnSettled}) || !strings.Contains(why, "projector dlq discard 1") || strings.Contains(why, "--cancel") {
			t.Errorf("got %v (%s), want it settled, and how it is removed", fates, why)
		}
	})
}
