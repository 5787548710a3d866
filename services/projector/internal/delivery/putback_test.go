package delivery_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/delivery"
	"changerelay/services/projector/internal/projection"
	"changerelay/services/projector/internal/readmodel/readmodeltest"
	"changerelay/services/projector/internal/session"
)

// returning is an operator who puts dead-lettered messages of aggregate a back.
type returning struct {
	*delivery.PutBack
	store   *readmodeltest.Fake
	letters letters
	removed []string
}

// letters are a dead-letter queue.
type letters map[int64]session.Message

func (l letters) Message(_ context.Context, number int64) (session.Message, bool, error) {
	m, found := l[number]
	return m, found, nil
}

// put dead-letters messages.
func (l letters) put(messages ...session.Message) (put []delivery.Letter) {
	for i := range messages {
		l[messages[i].SequenceNumber] = messages[i]
		put = append(put, delivery.LetterOf(&messages[i], "MaxDeliveryCountExceeded"))
	}
	return put
}

func newReturning(t *testing.T, store *readmodeltest.Fake) *returning {
	t.Helper()
	queue := letters{}
	return &returning{&delivery.PutBack{Letters: queue, Decider: parse(t, counting), Store: store, Parking: store, ParkedMessages: store}, store, queue, nil}
}

// run puts messages back and returns what became of them.
func (r *returning) run(t *testing.T, messages ...session.Message) (fates []delivery.ReturnFate, why string, redriven []delivery.Redriven) {
	t.Helper()
	returns, redriven, err := r.Run(t.Context(), [][]delivery.Letter{r.letters.put(messages...)}, r.remove)
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range returns {
		fates, why = append(fates, one.Fate), why+one.Reason
	}
	return fates, why, redriven
}

func (r *returning) remove(_ context.Context, letters []*delivery.Letter) error {
	for _, l := range letters {
		r.removed = append(r.removed, l.ID)
	}
	return nil
}

func (r *returning) orders(t *testing.T) string {
	t.Helper()
	text, err := r.store.Fields(t.Context(), "orders", "a")
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestPutBack_AppliesInOrderWhatNothingLaterWasAppliedOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := readmodeltest.NewFake()
		r := newReturning(t, store)
		if _, err := newReplica(t, store, counting).Hold("a").Apply(t.Context(), happened(t, "a", 1)); err != nil {
			t.Fatal(err)
		}
		fates, why, redriven := r.run(t, happened(t, "a", 1, 2, 3)...)
		if want := []delivery.ReturnFate{delivery.ReturnApplied, delivery.ReturnParked, delivery.ReturnParked}; !slices.Equal(fates, want) {
			t.Errorf("got %v (%s), want %v", fates, why, want)
		}
		if len(redriven) != 1 || !redriven[0].Lifted || redriven[0].Applied != 2 || !strings.Contains(r.orders(t), `"seen":[1,2,3]`) {
			t.Errorf("got %+v and %s, want two applied in order and the halt lifted", redriven, r.orders(t))
		}
		if len(r.removed) != 3 {
			t.Errorf("removed: got %v, want all three", r.removed)
		}
	})
}

func TestPutBack_RefusesWhatSomethingLaterWasAppliedOverInOneProjection(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := readmodeltest.NewFake()
		r := newReturning(t, store)
		// Only orders follows Doubled: totals is not beyond the dead letter.
		if _, err := newReplica(t, store, counting).Hold("a").Apply(t.Context(), []session.Message{message(t, "a", 3, "Doubled", `{"n":1}`)}); err != nil {
			t.Fatal(err)
		}
		before := r.orders(t)
		fates, why, redriven := r.run(t, happened(t, "a", 2)...)
		if len(fates) != 1 || fates[0] != delivery.ReturnRefused || !strings.Contains(why, `projection "orders"`) || !strings.Contains(why, `event "a-3"`) {
			t.Errorf("got %v (%s), want it refused, with the projection and the event", fates, why)
		}
		if len(r.removed) != 0 || r.orders(t) != before {
			t.Errorf("removed %v, document %s, want all as it was", r.removed, r.orders(t))
		}
		if len(redriven) != 1 || !redriven[0].Lifted {
			t.Errorf("got %+v, want the halt lifted again", redriven)
		}
	})
}

// What is refused only once the aggregate is halted stops those behind it, too.
func TestPutBack_PutsNothingBackBehindOneThatItRefuses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := readmodeltest.NewFake()
		r := newReturning(t, store)
		messages := append(happened(t, "a", 1), message(t, "a", 2, "Doubled", `{"n":"x"}`), happened(t, "a", 3)[0])
		fates, why, redriven := r.run(t, messages...)
		if want := []delivery.ReturnFate{delivery.ReturnParked, delivery.ReturnRefused, delivery.ReturnRefused}; !slices.Equal(fates, want) || !strings.Contains(why, `event "a-2"`) {
			t.Errorf("got %v (%s), want %v and the earlier one named", fates, why, want)
		}
		if len(redriven) != 1 || !redriven[0].Lifted || !slices.Equal(r.removed, []string{"a-1"}) || !strings.Contains(r.orders(t), `"seen":[1]`) {
			t.Errorf("got %+v, removed %v, %s; want the first applied alone", redriven, r.removed, r.orders(t))
		}
		if fates, _, redriven := r.run(t, messages[1:]...); !slices.Equal(fates, []delivery.ReturnFate{delivery.ReturnRefused, delivery.ReturnRefused}) || len(redriven) != 1 || !redriven[0].Lifted {
			t.Errorf("none parked: got %v and %+v, want both refused and the halt lifted", fates, redriven)
		}
	})
}

// A halt that was there before is not lifted for a message that is refused.
func TestPutBack_LeavesAHaltThatWasThereBefore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := readmodeltest.NewFake()
		r := newReturning(t, store)
		replica := newReplica(t, store, counting)
		if _, err := replica.Hold("a").Apply(t.Context(), append(happened(t, "a", 4), message(t, "a", 5, "Doubled", `{"n":"x"}`))); err != nil {
			t.Fatal(err)
		}
		if fates, _, redriven := r.run(t, happened(t, "a", 2)...); fates[0] != delivery.ReturnRefused || len(redriven) != 0 {
			t.Errorf("got %v and %+v, want it refused and nothing redriven", fates, redriven)
		}
		if halt, err := store.Halted(t.Context(), "a"); err != nil || halt == "" {
			t.Errorf("halted: got %q and %v, want it still halted", halt, err)
		}
	})
}

// A replica whose list was read just before the halt may apply until the list is
// too old; what the message is compared with is read after that.
func TestPutBack_ComparesWhenEveryReplicaKnowsOfTheHalt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := readmodeltest.NewFake()
		r := newReturning(t, store)
		replica := newReplica(t, store, counting)
		lists, stop := context.WithCancel(t.Context())
		read := make(chan error, 1)
		go func() { read <- replica.halts.Run(lists) }()
		synctest.Wait()
		stop()
		if err := <-read; err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(2*time.Second, func() {
			if _, err := replica.Hold("a").Apply(t.Context(), happened(t, "a", 3)); err != nil {
				t.Error(err)
			}
		})
		fates, _, _ := r.run(t, happened(t, "a", 2)...)
		if fates[0] != delivery.ReturnRefused || len(r.removed) != 0 {
			t.Errorf("got %v and %v removed, want it refused: the replica has applied the next one", fates, r.removed)
		}
	})
}

// A write that was begun before the halt and ends after the comparison is found
// by the redrive, which does not take the message for a repeat.
func TestPutBack_AWriteThatWasOnItsWayIsFound(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := readmodeltest.NewFake()
		r := newReturning(t, store)
		slow := parse(t, counting)
		late := func() {
			writes, err := slow.Decide(changeOf(t, happened(t, "a", 3)[0]))
			if err != nil {
				t.Error(err)
			}
			if _, err := store.Write(t.Context(), writes); err != nil {
				t.Error(err)
			}
		}
		put := r.letters.put(happened(t, "a", 2)...)
		_, redriven, err := r.Run(t.Context(), [][]delivery.Letter{put}, func(ctx context.Context, l []*delivery.Letter) error {
			late()
			return r.remove(ctx, l)
		})
		if err != nil || len(redriven) != 1 || redriven[0].Lifted || redriven[0].FailedEventID != "a-2" || !strings.Contains(redriven[0].Reason, `event "a-3"`) {
			t.Errorf("got %+v and %v, want the redrive to stop at the message and say why", redriven, err)
		}
		if got, err := store.Parked(t.Context(), "a"); err != nil || len(got) != 1 {
			t.Errorf("parked: got %v and %v, want the message kept", got, err)
		}
	})
}

// What was put back behind a halt at a later event is late there, and no repeat: a
// write over it that was on its way is found as well.
func TestPutBack_AWriteThatWasOnItsWayIsFoundBehindAnotherHalt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := readmodeltest.NewFake()
		r := newReturning(t, store)
		if _, err := store.Halt(t.Context(), delivery.Halt{Event: *readmodeltest.Event("a", 4), Reason: "because"}); err != nil {
			t.Fatal(err)
		}
		slow := parse(t, counting)
		put := r.letters.put(happened(t, "a", 2)...)
		_, redriven, err := r.Run(t.Context(), [][]delivery.Letter{put}, func(ctx context.Context, l []*delivery.Letter) error {
			writes, err := slow.Decide(changeOf(t, happened(t, "a", 3)[0]))
			if err == nil {
				_, err = store.Write(ctx, writes)
			}
			return errors.Join(err, r.remove(ctx, l))
		})
		if err != nil || len(redriven) != 1 || redriven[0].Lifted || redriven[0].Repeated != 0 || redriven[0].FailedEventID != "a-2" || !strings.Contains(redriven[0].Reason, `event "a-3"`) {
			t.Errorf("got %+v and %v, want the redrive to stop at the message and say why", redriven, err)
		}
		if got, err := store.Parked(t.Context(), "a"); err != nil || len(got) != 1 {
			t.Errorf("parked: got %v and %v, want the message kept", got, err)
		}
	})
}

// However many dead letters there are, and of how many aggregates, the message of one
// is in memory at a time. The store keeps them, so this one passes none on to it.
func TestPutBack_HasOneMessageInMemoryAtATime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newReturning(t, readmodeltest.NewFake())
		const aggregates, versions = 8, 4
		var put [][]delivery.Letter
		weighed := &weighing{letters: r.letters}
		for a := range aggregates {
			name := string(rune('a' + a))
			var mine []delivery.Letter
			for n := range int64(versions) {
				m := message(t, name, n+1, "Happened", `{"n":1,"text":"`+strings.Repeat("x", 64<<10)+`"}`)
				m.SequenceNumber = int64(a)*versions + n
				mine = append(mine, r.letters.put(m)...)
			}
			put = append(put, mine)
		}
		r.Letters, r.Parking = weighed, &forgetful{r.store}
		returns, redriven, err := r.Run(t.Context(), put, r.remove)
		if err != nil || len(returns) != aggregates*versions || len(redriven) != aggregates || len(r.removed) != aggregates*versions {
			t.Fatalf("got %d returns, %d aggregates, %d removed and %v; want all", len(returns), len(redriven), len(r.removed), err)
		}
		// One is handed out while the last one may not be collected yet.
		if weighed.most > 2 {
			t.Errorf("%d messages of %d were in memory at once, want one, or two while the next one comes", weighed.most, aggregates*versions)
		}
		runtime.KeepAlive(returns)
	})
}

// weighing counts how many of the bodies that it has handed out are still in memory.
type weighing struct {
	letters

	out  []weak.Pointer[byte]
	most int
}

func (w *weighing) Message(ctx context.Context, number int64) (session.Message, bool, error) {
	m, found, err := w.letters.Message(ctx, number)
	m.Body = bytes.Clone(m.Body)
	w.out = append(w.out, weak.Make(&m.Body[0]))
	runtime.GC()
	now := 0
	for _, body := range w.out {
		if body.Value() != nil {
			now++
		}
	}
	w.most = max(w.most, now)
	return m, found, err
}

// forgetful takes messages and keeps none.
type forgetful struct{ *readmodeltest.Fake }

func (*forgetful) Park(context.Context, []delivery.Parked) error { return nil }

// One that somebody else has dealt with since it was judged is said to be gone, is
// not taken away, and keeps no halt.
func TestPutBack_SaysWhatIsGone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newReturning(t, readmodeltest.NewFake())
		put := r.letters.put(happened(t, "a", 1, 2)...)
		delete(r.letters, 1)
		returns, redriven, err := r.Run(t.Context(), [][]delivery.Letter{put}, r.remove)
		if err != nil || len(returns) != 2 || returns[0].Fate != delivery.ReturnGone || returns[1].Fate != delivery.ReturnParked {
			t.Errorf("got %+v and %v, want the first gone and the second put back", returns, err)
		}
		if !slices.Equal(r.removed, []string{"a-2"}) || len(redriven) != 1 || !redriven[0].Lifted {
			t.Errorf("removed %v, redriven %+v; want the second alone removed, and the halt lifted", r.removed, redriven)
		}
		delete(r.letters, 2)
		if returns, redriven, err := r.Run(t.Context(), [][]delivery.Letter{put[1:]}, r.remove); err != nil || len(returns) != 1 || len(redriven) != 1 || !redriven[0].Lifted {
			t.Errorf("the last one is gone, too: got %+v, %+v and %v; want the halt lifted", returns, redriven, err)
		}
	})
}

// One aggregate that cannot be halted or parked holds up no other.
func TestPutBack_OneThatFailsHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	for _, failing := range []string{"halt", "park"} {
		t.Run(failing, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				store := readmodeltest.NewFake()
				r := newReturning(t, store)
				conflict, failed := errors.New("write conflict"), false
				store.Fail = func(operation string) error {
					if operation == failing && !failed {
						failed = true
						return conflict
					}
					return nil
				}
				other := happened(t, "b", 1)
				other[0].SequenceNumber = 9 // in the queue
				aggregates := [][]delivery.Letter{r.letters.put(happened(t, "a", 1, 2)...), r.letters.put(other...)}
				returns, redriven, err := r.Run(t.Context(), aggregates, r.remove)
				if !errors.Is(err, conflict) || len(returns) != 1 || len(redriven) != 1 || redriven[0].AggregateID != "b" || !redriven[0].Lifted || !slices.Equal(r.removed, []string{"b-1"}) {
					t.Errorf("got %v, %+v, %v and %v removed, want b put back and the error of a", returns, redriven, err, r.removed)
				}
				// Another run finds its own halt, which is none that was there before.
				returns, redriven, err = r.Run(t.Context(), aggregates[:1], r.remove)
				if err != nil || len(returns) != 2 || len(redriven) != 1 || redriven[0].Applied != 2 || !redriven[0].Lifted {
					t.Errorf("again: got %v, %+v and %v, want a put back, too", returns, redriven, err)
				}
			})
		})
	}
}

// What another run has left halted is lifted although nothing is put back.
func TestPutBack_ItsOwnHaltIsNoneThatWasThereBefore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := readmodeltest.NewFake()
		r := newReturning(t, store)
		if _, err := newReplica(t, store, counting).Hold("a").Apply(t.Context(), happened(t, "a", 3)); err != nil {
			t.Fatal(err)
		}
		if _, err := store.Halt(t.Context(), delivery.Halt{Event: *readmodeltest.Event("a", 2), Reason: "a dead-lettered message is being put back (x)"}); err != nil {
			t.Fatal(err)
		}
		done, err := delivery.Redrive(t.Context(), parse(t, counting), store, store, delivery.Gaps{}, "a")
		if err != nil || done.Lifted || !strings.Contains(done.Reason, "projector dlq redrive --all") {
			t.Errorf("redrive of what is parked: got %+v and %v, want it left alone", done, err)
		}
		if fates, _, redriven := r.run(t, happened(t, "a", 2)...); fates[0] != delivery.ReturnRefused || len(redriven) != 1 || !redriven[0].Lifted {
			t.Errorf("got %v and %+v, want it refused and the halt lifted", fates, redriven)
		}
	})
}

// What is taken away is stored before: a dead letter that cannot be parked stays.
func TestPutBack_TakesNothingAwayThatIsNotStored(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := readmodeltest.NewFake()
		r := newReturning(t, store)
		away := errors.New("away")
		store.Fail = func(operation string) error {
			if operation == "park" {
				return away
			}
			return nil
		}
		put := r.letters.put(happened(t, "a", 2)...)
		if _, _, err := r.Run(t.Context(), [][]delivery.Letter{put}, r.remove); !errors.Is(err, away) || len(r.removed) != 0 {
			t.Errorf("got %v and %v removed, want the error and none", err, r.removed)
		}
	})
}

func TestPutBack_RefusesWhatNobodyCanPlace(t *testing.T) {
	t.Parallel()
	foreign := session.Message{}
	foreign.ID = "foreign"
	unread := happened(t, "a", 1)[0]
	unread.Body = []byte("{")
	for name, tt := range map[string]struct {
		message session.Message
		want    string
	}{
		"of nobody":                   {foreign, "of no aggregate"},
		"that cannot be read":         {unread, "cannot be read"},
		"that a projection fails for": {message(t, "a", 1, "Doubled", `{"n":"x"}`), "Mend the projection"},
		"that nobody follows":         {message(t, "a", 1, "Unheard", `{}`), "no projection"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			letter := delivery.LetterOf(&tt.message, "")
			got, err := newReturning(t, readmodeltest.NewFake()).Judge(t.Context(), &letter, tt.message.Message)
			if err != nil || got.Fate != delivery.ReturnRefused || !strings.Contains(got.Reason, tt.want) {
				t.Errorf("got %v (%s) and %v, want it refused: %s", got.Fate, got.Reason, err, tt.want)
			}
		})
	}
}

// What an older release could not park, and had dead-lettered with its place kept,
// is put back where this one can.
func TestPutBack_AMessageTakesThePlaceThatWasKeptForIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := readmodeltest.NewFake()
		r := newReturning(t, store)
		messages := happened(t, "a", 1, 2)
		if _, err := store.Halt(t.Context(), delivery.Halt{Event: *readmodeltest.Event("a", 1), Reason: "because"}); err != nil {
			t.Fatal(err)
		}
		place := messages[0]
		place.Body, place.Properties = nil, nil
		for i, m := range []session.Message{place, messages[1]} {
			p := delivery.Parked{Message: m, Event: changeOf(t, messages[i]).Event, Reason: "because"}
			if err := store.Park(t.Context(), []delivery.Parked{p}); err != nil {
				t.Fatal(err)
			}
		}
		fates, why, redriven := r.run(t, messages[0])
		if !slices.Equal(fates, []delivery.ReturnFate{delivery.ReturnParked}) || len(redriven) != 1 || !redriven[0].Lifted {
			t.Errorf("got %v (%s) and %+v, want it put back and the halt lifted", fates, why, redriven)
		}
		if got := r.orders(t); got != `{"events":2}{"last":2}{"seen":[1,2]}` {
			t.Errorf("document: got %s, want both in order", got)
		}
	})
}

// changeOf is a message's change.
func changeOf(t *testing.T, m session.Message) *projection.Change {
	t.Helper()
	event, err := contract.Decode(m.Message, contract.DecodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	change, err := projection.Read(event)
	if err != nil {
		t.Fatal(err)
	}
	return change
}

// A redrive that began under another halt stops before what is being put back: its
// dead letter is still there.
func TestRedrive_StopsWhereDeadLettersAreBeingPutBackMeanwhile(t *testing.T) {
	t.Parallel()
	store := readmodeltest.NewFake()
	r := newReturning(t, store)
	letter := r.letters.put(happened(t, "a", 1)...)[0]
	park := delivery.Parked{Message: r.letters[letter.SequenceNumber], Event: letter.Event, Returned: true}
	if _, err := store.Halt(t.Context(), delivery.Halt{Event: letter.Event, Reason: "because"}); err != nil {
		t.Fatal(err)
	}
	store.Fail = func(operation string) error {
		if operation != "next" {
			return nil
		}
		store.Fail = nil
		lifted, err := store.Lift(t.Context(), "a")
		if err != nil || !lifted {
			return fmt.Errorf("lift: %t, %w", lifted, err)
		}
		_, err = store.Halt(t.Context(), delivery.Halt{Event: letter.Event, Reason: delivery.ReturnHalt})
		return errors.Join(err, store.Park(t.Context(), []delivery.Parked{park}))
	}
	done, err := delivery.Redrive(t.Context(), r.Decider, store, store, delivery.Gaps{}, "a")
	if err != nil || done.Applied != 0 || done.Lifted || !strings.Contains(done.Reason, "projector dlq redrive --all finishes it") {
		t.Errorf("got %+v and %v, want nothing applied, and who finishes it", done, err)
	}
	if parked, err := store.Parked(t.Context(), "a"); err != nil || len(parked) != 1 {
		t.Errorf("parked: got %v and %v, want the message kept", parked, err)
	}
}

// A projection that has passed a later event by has passed this one by as well: what
// the others have applied is applied.
func TestPutBack_WhatIsAppliedOrPassedByIsAppliedAlready(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const apart = `projections:
  - {name: one, version: 1, collection: one, on: {Happened: {inc: {events: 1}}}}
  - {name: two, version: 1, collection: two, key: '"all"', on: {Doubled: {inc: {events: 1}}}}
`
		store := readmodeltest.NewFake()
		r := newReturning(t, store)
		r.Decider = parse(t, apart)
		first := happened(t, "a", 1)
		if _, err := newReplica(t, store, apart).Hold("a").Apply(t.Context(), append(first, message(t, "a", 2, "Doubled", `{}`))); err != nil {
			t.Fatal(err)
		}
		fates, why, redriven := r.run(t, first...)
		if !slices.Equal(fates, []delivery.ReturnFate{delivery.ReturnApplied}) || !slices.Equal(r.removed, []string{"a-1"}) {
			t.Errorf("got %v (%s), %v removed, %+v; want it applied already, and taken away", fates, why, r.removed, redriven)
		}
	})
}

// A message that was dead-lettered since its event could not be applied may be settled: the
// event was applied after all, and later ones over it, or its record is gone with a rebuild.
// It says so, stays, and holds up none of its aggregate. While a record says that a
// projection lacks the event it is refused.
func TestPutBack_WhatNoProjectionLacksIsSettled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := readmodeltest.NewFake()
		r := newReturning(t, store)
		if _, err := newReplica(t, store, counting).Hold("a").Apply(t.Context(), happened(t, "a", 1, 2)); err != nil {
			t.Fatal(err)
		}
		messages := happened(t, "a", 1, 3)
		put := r.letters.put(messages...)
		put[0].Reason, put[1].Reason = delivery.ReasonNotApplied, delivery.ReasonNotApplied
		judged := func() delivery.Return {
			t.Helper()
			one, err := r.Judge(t.Context(), &put[0], messages[0].Message)
			if err != nil {
				t.Fatal(err)
			}
			return one
		}
		event := changeOf(t, messages[0]).Event
		if _, err := store.Write(t.Context(), []projection.Write{{Projection: "left", Passed: true, Event: &event, Skipped: &projection.Skipped{Action: projection.Skip}}}); err != nil {
			t.Fatal(err)
		}
		if one := judged(); one.Fate != delivery.ReturnRefused {
			t.Errorf("with a record: got %v, want it refused", one.Fate)
		}
		mends := projection.Write{Projection: "left", Collection: "left", ID: "a", Event: &event, Mends: true}
		if _, err := store.Write(t.Context(), []projection.Write{mends}); err != nil {
			t.Fatal(err)
		}
		if one := judged(); one.Fate != delivery.ReturnSettled || !strings.Contains(one.Reason, "projector dlq discard") {
			t.Errorf("without one: got %v (%s), want it settled", one.Fate, one.Reason)
		}
		returns, redriven, err := r.Run(t.Context(), [][]delivery.Letter{put}, r.remove)
		if err != nil || len(returns) != 2 || returns[0].Fate != delivery.ReturnSettled || returns[1].Fate != delivery.ReturnParked || len(redriven) != 1 || !redriven[0].Lifted {
			t.Errorf("got %+v, %+v and %v, want the next one put back behind it", returns, redriven, err)
		}
	})
}

// A dead letter whose event was applied when its message came again takes the record of it
// along.
func TestPutBack_WhatIsAppliedAlreadyIsRecordedNoMore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := readmodeltest.NewFake()
		r := newReturning(t, store)
		event := changeOf(t, happened(t, "a", 1)[0]).Event
		skipped := projection.Write{Projection: "orders", Passed: true, Event: &event, Skipped: &projection.Skipped{Action: projection.DeadLetter}}
		if _, err := store.Write(t.Context(), []projection.Write{skipped}); err != nil {
			t.Fatal(err)
		}
		if _, err := newReplica(t, store, counting).Hold("a").Apply(t.Context(), happened(t, "a", 1)); err != nil {
			t.Fatal(err)
		}
		fates, why, _ := r.run(t, happened(t, "a", 1)...)
		if records := store.Skips("a-1"); !slices.Equal(fates, []delivery.ReturnFate{delivery.ReturnApplied}) || len(records) != 0 {
			t.Errorf("got %v (%s) and records %v, want it applied already, and none", fates, why, records)
		}
	})
}

// continued is a read model whose documents have come further in a source that continues
// the events'.
type continued struct{ delivery.ParkedMessages }

func (continued) Position(context.Context, *projection.Write) (delivery.Position, error) {
	return delivery.Position{Sequence: "0000000000000000009", EventID: "b-9", Continued: true}, nil
}

// Where a source goes on with another's aggregates, its position has all events of before,
// but not one of which a record says that the projection lacks it.
func TestPutBack_WhatAContinuedSourceLacksIsNotTakenForApplied(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := readmodeltest.NewFake()
		r := newReturning(t, store)
		r.ParkedMessages = continued{r.ParkedMessages}
		messages := happened(t, "a", 1)
		put := r.letters.put(messages...)
		put[0].Reason = delivery.ReasonNotApplied
		event := changeOf(t, messages[0]).Event
		for _, want := range []delivery.ReturnFate{delivery.ReturnApplied, delivery.ReturnRefused} {
			if one, err := r.Judge(t.Context(), &put[0], messages[0].Message); err != nil || one.Fate != want {
				t.Errorf("got %v (%s) and %v, want %v", one.Fate, one.Reason, err, want)
			}
			skipped := projection.Write{Projection: "orders", Passed: true, Event: &event, Skipped: &projection.Skipped{Action: projection.DeadLetter}}
			if _, err := store.Write(t.Context(), []projection.Write{skipped}); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// Who removes the dead letter of an event that was overtaken has a rebuild bring the event: a
// dead letter stands in the way of that, unless it is one that a projection could not apply.
func TestPutBack_SaysWhatComesFirstWhereAnEventWasOvertaken(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := readmodeltest.NewFake()
		r := newReturning(t, store)
		if _, err := newReplica(t, store, counting).Hold("a").Apply(t.Context(), happened(t, "a", 3)); err != nil {
			t.Fatal(err)
		}
		put := r.letters.put(happened(t, "a", 2)...)
		event := put[0].Event
		if _, err := store.Write(t.Context(), []projection.Write{{Projection: "left", Passed: true, Event: &event, Skipped: &projection.Skipped{Action: projection.DeadLetter}}}); err != nil {
			t.Fatal(err)
		}
		for reason, discardFirst := range map[string]bool{"TTLExpiredException": true, delivery.ReasonNotApplied: false} {
			put[0].Reason = reason
			one, err := r.Judge(t.Context(), &put[0], r.letters[2].Message)
			discard, rebuild := strings.Index(one.Reason, "projector dlq discard 2"), strings.Index(one.Reason, "projector rebuild --projection NAME")
			if err != nil || one.Fate != delivery.ReturnRefused || discard < 0 || rebuild < 0 || (discard < rebuild) != discardFirst {
				t.Errorf("%s: got %v (%s) and %v, want it refused, and first the discard: %v", reason, one.Fate, one.Reason, err, discardFirst)
			}
		}
	})
}
