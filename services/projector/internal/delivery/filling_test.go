package delivery_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/delivery"
	"changerelay/services/projector/internal/projection"
	"changerelay/services/projector/internal/readmodel/readmodeltest"
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
func filled(t *testing.T, policed bool, with ...setting) *fixture {
	t.Helper()
	projections := parse(t, `
projections:
- {name: orders, version: 1, collection: orders, on: {Happened: {push: {seen: {value: data.n, last: 50}}}, Doubled: {inc: {n: data.n}}}}
- {name: strict, collection: strict, on: {Happened: {inc: {n: data.n}}}}
`)
	projections = append(projections, projections[0].(projection.Renumbered).Renumbered(2))
	return newFixtureOf(t, projections, append([]setting{func(_ *delivery.Config, d *delivery.Deps) {
		d.Filling = fillsSecond{}
		if policed {
			d.Policed = projection.Policed{Projections: projections}
		}
	}}, with...)...)
}

// secondAt is the id of the event that version 2 of orders is at with a.
func (f *fixture) secondAt(t *testing.T) string {
	t.Helper()
	at, err := f.store.Position(t.Context(), &projection.Write{Projection: "orders_v2", Keyed: true, Event: &contract.Event{AggregateID: "a"}})
	if err != nil {
		t.Fatal(err)
	}
	return at.EventID
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
	if at := f.secondAt(t); at != bad.ID {
		t.Errorf("the version is at %q, want that it has passed by %q", at, bad.ID)
	}
	if c := f.Counts(); c.Discarded.Load() != 1 || c.Halts.Load() != 0 {
		t.Errorf("got %d discarded and %d halts, want 1 and none", c.Discarded.Load(), c.Halts.Load())
	}
}

// lackingSecond says of what it chooses that the version lacks the first event.
type lackingSecond struct{ fillsSecond }

func (f lackingSecond) Begin() delivery.Choice { return f }

func (f lackingSecond) Of(ctx context.Context, e *contract.Event, writes []projection.Write) ([]projection.Write, error) {
	writes, err := f.fillsSecond.Of(ctx, e, writes)
	for i := range writes {
		writes[i].Lacks = sequenceOf(1)
	}
	return writes, err
}

func sequenceOf(version int64) contract.Sequence {
	return contract.SequenceOf(contract.VersionOf(version), "")
}

// passing keeps what is only passed by.
type passing struct {
	*readmodeltest.Fake
	lacks *[]contract.Sequence
}

func (p passing) Write(ctx context.Context, writes []projection.Write) ([]delivery.Outcome, error) {
	for i := range writes {
		if writes[i].Passed && writes[i].Event.ID == "a-2" {
			*p.lacks = append(*p.lacks, writes[i].Lacks)
		}
	}
	return p.Fake.Write(ctx, writes)
}

// A version that passes by an event over a hole lacks what is missing there as well.
func TestFilling_WhatIsMissingBeforeADiscardedEventIsNoted(t *testing.T) {
	t.Parallel()
	var lacks []contract.Sequence
	f := filled(t, true, func(_ *delivery.Config, d *delivery.Deps) {
		d.Filling, d.Store = lackingSecond{}, passing{d.Store.(*readmodeltest.Fake), &lacks}
	})
	f.applied(t, resent(t, "/orders_v2", []session.Message{discardSecond(t, f.store)})...)
	if !slices.Equal(lacks, []contract.Sequence{sequenceOf(1)}) {
		t.Errorf("noted %v as missing, want the first event", lacks)
	}
}

// unwritable is a store that fails to change a document by the second event of a, or to
// record that it is skipped.
type unwritable struct {
	*readmodeltest.Fake
	failure func(write int) error
}

func (u unwritable) Write(ctx context.Context, writes []projection.Write) ([]delivery.Outcome, error) {
	for i := range writes {
		if w := &writes[i]; w.Event.ID == "a-2" && (w.Changes() || w.Skipped != nil) {
			return make([]delivery.Outcome, len(writes)), u.failure(i)
		}
	}
	return u.Fake.Write(ctx, writes)
}

// failingWith has the store be an unwritable one.
func failingWith(failure func(write int) error) setting {
	return func(_ *delivery.Config, d *delivery.Deps) {
		d.Store = unwritable{d.Store.(*readmodeltest.Fake), failure}
	}
}

// A discarded event is passed by whatever the version refuses of it: it cannot be read, or
// the read database refuses it for its content.
func TestFilling_PassesByWhatTheVersionRefuses(t *testing.T) {
	t.Parallel()
	unreadable := resent(t, "/orders_v2", happened(t, "a", 2))
	unreadable[0].Body = []byte("{")
	refuse := func(i int) error {
		return &delivery.RejectedError{Index: i, Class: projection.Store, Reason: "too large"}
	}
	for name, tt := range map[string]struct {
		with    []setting
		message session.Message
	}{
		"it cannot be read":    {nil, unreadable[0]},
		"the store refuses it": {[]setting{failingWith(refuse)}, resent(t, "/orders_v2", happened(t, "a", 2))[0]},
	} {
		for _, policed := range []bool{true, false} {
			f := filled(t, policed, tt.with...)
			discardSecond(t, f.store)
			f.applied(t, tt.message)
			if at := f.secondAt(t); at != "a-2" {
				t.Errorf("%s, with policies %t: the version is at %q, want that it has passed it by", name, policed, at)
			}
		}
	}
}

// An event that the version does not follow is passed by, even if processes have died of it.
func TestFilling_PassesByWhatItDoesNotFollow(t *testing.T) {
	t.Parallel()
	unheard := resent(t, "/orders_v2", []session.Message{message(t, "a", 2, "Unheard", `{}`)})
	f := filled(t, true, withCrashNotes(killing{unheard[0].ID}, 2))
	f.applied(t, unheard...)
	if at := f.secondAt(t); at != "a-2" {
		t.Errorf("the version is at %q, want that it has passed it by", at)
	}
}

// What a version refuses, and nobody has discarded, or so long ago that it is not known any
// more, is waited for, and the log says what lets the version go on.
func TestFilling_SaysWhatEndsTheWait(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	f := filled(t, true, func(_ *delivery.Config, d *delivery.Deps) { d.Log = zerolog.New(&log) })
	verdicts, err := f.Hold("a").Apply(t.Context(), resent(t, "/orders_v2", []session.Message{message(t, "a", 2, "Doubled", `{"n":"x"}`)}))
	if !errors.Is(err, session.ErrNotYet) || len(verdicts) != 0 || !strings.Contains(log.String(), "onError: skip") {
		t.Errorf("got %v, %v and %s, want it to wait, and what ends that", verdicts, err, log.String())
	}
}

// What an operator has discarded may be an event that the version can apply, and a rebuild
// brings it back: while something else is in the way, the version waits for it.
func TestFilling_WaitsForADiscardedEventThatItMayApply(t *testing.T) {
	t.Parallel()
	deadly := withCrashNotes(killing{resent(t, "/orders_v2", happened(t, "a", 2))[0].ID}, 2)
	failing := failingWith(func(int) error { return errUnknown })
	unordered := failingWith(func(i int) error { return &delivery.RejectedError{Index: i, Reason: "two events have one sequence"} })
	refusing := failingWith(func(i int) error {
		return &delivery.RejectedError{Index: i, Class: projection.Store, Reason: "not now"}
	})
	for name, tt := range map[string]struct {
		with   []setting
		halted bool
		want   string
	}{
		"processes have died of it":                 {[]setting{deadly}, false, `{"seen":[1]}`},
		"that they have cannot be recorded":         {[]setting{deadly, refusing, under(t, "crash=skip")}, false, `{"seen":[1]}`},
		"it alone cannot be stored for a long time": {[]setting{failing}, false, `{"seen":[1]}`},
		"the order of its aggregate is in doubt":    {[]setting{unordered}, false, `{"seen":[1]}`},
		"its aggregate is halted":                   {nil, true, ""},
	} {
		for _, policed := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, with policies %t", name, policed), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					f := filled(t, policed, append(slices.Clip(tt.with), func(c *delivery.Config, _ *delivery.Deps) { c.HaltAfter = 5 * time.Minute })...)
					discardSecond(t, f.store)
					versions := []int64{1, 2, 3}
					if tt.halted {
						versions = versions[1:]
						if _, err := f.store.Halt(t.Context(), delivery.Halt{Event: *readmodeltest.Event("a", 3)}); err != nil {
							t.Fatal(err)
						}
					}
					queues := map[string][]session.Message{"a": resent(t, "/orders_v2", happened(t, "a", versions...)), "well": queueOf(t, "well", 1000)}
					failures := drive(t, f.Handler, queues, 6*time.Minute)
					if !slices.ContainsFunc(failures["a"], func(err error) bool { return errors.Is(err, session.ErrNotYet) }) || len(queues["a"]) != 2 {
						t.Errorf("%d are left after %v, want the last two to wait", len(queues["a"]), failures["a"])
					}
					if got, at := f.fields(t, "orders_v2", "a"), f.secondAt(t); got != tt.want || at == "a-2" {
						t.Errorf("the version has %s and is at %q, want %s, and that it has passed nothing by", got, at, tt.want)
					}
				})
			})
		}
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
