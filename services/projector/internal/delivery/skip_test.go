package delivery_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/delivery"
	"changerelay/services/projector/internal/projection"
	"changerelay/services/projector/internal/readmodel/readmodeltest"
	"changerelay/services/projector/internal/session"
)

// under has projections decide under a policy.
func under(t *testing.T, policy string) setting {
	t.Helper()
	standard, err := projection.ParsePolicy(policy)
	if err != nil {
		t.Fatal(err)
	}
	return func(_ *delivery.Config, d *delivery.Deps) {
		d.Policed = projection.Policed{Projections: d.Decider.(projection.Projections), Default: standard}
	}
}

// withBrake has a brake that so many halts and skips switch on.
func withBrake(limit int) setting {
	return func(_ *delivery.Config, d *delivery.Deps) {
		d.Brake = delivery.NewBrake(d.Store.(delivery.HaltTimes), limit, time.Hour, zerolog.Nop())
	}
}

// What becomes of a batch with an event that fails in its middle, by the policy for it:
// the verdicts over all, what is stored of them, and what is recorded.
func TestSkip_ABatchGoesOnBehindWhatIsSkipped(t *testing.T) {
	t.Parallel()
	for policy, want := range map[string]struct {
		verdicts, dead int
		fields         string
		action         projection.Action
		parked, halts  int
	}{
		"halt":       {4, 0, `{"events":1}{"last":1}{"seen":[1]}`, "", 3, 1},
		"skip":       {4, 0, `{"events":3}{"last":4}{"seen":[1,3,4]}`, projection.Skip, 0, 0},
		"deadletter": {4, 1, `{"events":3}{"last":4}{"seen":[1,3,4]}`, projection.DeadLetter, 0, 0},
		"stop":       {1, 0, `{"events":1}{"last":1}{"seen":[1]}`, "", 0, 0},
	} {
		t.Run(policy, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t, withBrake(0), under(t, policy))
				messages := append(happened(t, "a", 1), message(t, "a", 2, "Doubled", `{"n":"x"}`))
				messages = append(messages, happened(t, "a", 3, 4)...)
				verdicts, err := f.Hold("a").Apply(t.Context(), messages)
				if stops := policy == "stop"; errors.Is(err, session.ErrPaused) != stops || !stops && err != nil {
					t.Errorf("got %v", err)
				}
				dead := 0
				for i, v := range verdicts {
					if v.DeadLetter {
						dead++
						if i != 1 || v.Reason != "NotApplied" || !strings.HasPrefix(v.Description, `evaluate: projection "orders"`) {
							t.Errorf("message %d is dead-lettered with %+v, want the second alone, and why", i, v)
						}
					}
				}
				if len(verdicts) != want.verdicts || dead != want.dead {
					t.Errorf("got %d verdicts and %d dead letters, want %d and %d", len(verdicts), dead, want.verdicts, want.dead)
				}
				if got := f.fields(t, "orders", "a"); got != want.fields {
					t.Errorf("document: got %s, want %s", got, want.fields)
				}
				record, recorded := f.store.Skips("a-2")["orders"]
				if recorded != (want.action != "") || record.Action != want.action {
					t.Errorf("got record %+v, want one of %q", record, want.action)
				}
				if recorded && (record.Message == nil || record.Message.ID != "a-2") {
					t.Errorf("the record has message %v, want the event's", record.Message)
				}
				if parked := f.parked(t, "a"); len(parked) != want.parked || f.Counts().Halts.Load() != int64(want.halts) {
					t.Errorf("%v are parked and %d halted, want %d and %d", parked, f.Counts().Halts.Load(), want.parked, want.halts)
				}
			})
		})
	}
}

// evaluating refuses only what projections cannot make of a document.
type evaluating struct{ delivery.Store }

func (s evaluating) Write(ctx context.Context, writes []projection.Write) ([]delivery.Outcome, error) {
	outcomes, err := s.Store.Write(ctx, writes)
	if rejected, is := errors.AsType[*delivery.RejectedError](err); is {
		rejected.Class = projection.Evaluate
	}
	return outcomes, err
}

// A projection in Go is asked once about an event that it cannot decide about, wherever the
// event stands in its batch: it may take its whole time to fail.
func TestSkip_ADecisionThatFailsIsTriedOnce(t *testing.T) {
	t.Parallel()
	for name, state := range map[string]bool{"of the event alone": false, "of the document as it is": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				asked := 0
				coded, err := projection.NewCoded(projection.Code{Name: "coded", Collection: "coded", Revision: "1", State: state, Decide: func(c *projection.Change, _ bson.Raw) ([]projection.Write, error) {
					if c.Version.Number == 3 {
						asked++
						return nil, errors.New("never")
					}
					update, err := projection.Update([]projection.Operand{{Operator: "set", Path: "last", Value: c.Version.Number}})
					return []projection.Write{{ID: c.AggregateID, Update: update}}, err
				}})
				if err != nil {
					t.Fatal(err)
				}
				f := newFixture(t, func(_ *delivery.Config, d *delivery.Deps) {
					d.Decider, d.Store = projection.Projections{coded}, evaluating{d.Store}
				}, under(t, "skip"))
				hold := f.Hold("a")
				if verdicts, err := hold.Apply(t.Context(), happened(t, "a", 1, 2, 3, 4)); err != nil || len(verdicts) != 4 {
					t.Errorf("got %v and %v, want all completed", verdicts, err)
				}
				if got := f.fields(t, "coded", "a"); asked != 1 || got != `{"last":4}` {
					t.Errorf("asked %d times, and the document is %s; want once, and all others applied", asked, got)
				}
				if _, recorded := f.store.Skips("a-3")["coded"]; !recorded {
					t.Error("the event is not recorded")
				}
			})
		})
	}
}

// Messages that come later may be where those were that a batch has left behind. They are
// decided about by what they are.
func TestSkip_WhatWasDecidedGoesWithItsMessage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, under(t, "skip"))
		hold := f.Hold("a")
		messages := append(happened(t, "a", 1), message(t, "a", 2, "Doubled", `{"n":"x"}`))
		f.store.Fail = func(operation string) error {
			if operation == "write" {
				return errors.New("not now")
			}
			return nil
		}
		if verdicts, err := hold.Apply(t.Context(), messages); err == nil || len(verdicts) != 0 {
			t.Fatalf("got %v and %v, want that nothing can be stored", verdicts, err)
		}
		f.store.Fail = nil
		copy(messages, happened(t, "a", 1, 2))
		if verdicts, err := hold.Apply(t.Context(), messages); err != nil || len(verdicts) != 2 {
			t.Errorf("got %v and %v, want both completed", verdicts, err)
		}
		if got := f.fields(t, "orders", "a"); got != `{"events":2}{"last":2}{"seen":[1,2]}` || len(f.store.Skips("a-2")) != 0 {
			t.Errorf("document: got %s, want both events, and none skipped", got)
		}
	})
}

// A message that comes again is skipped again, and recorded and counted once.
func TestSkip_ARepeatIsRecordedOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, under(t, "skip"))
		for range 3 {
			if verdicts, err := f.Hold("a").Apply(t.Context(), []session.Message{message(t, "a", 1, "Doubled", `{"n":"x"}`)}); err != nil || len(verdicts) != 1 || verdicts[0].DeadLetter {
				t.Fatalf("got %v and %v, want it completed", verdicts, err)
			}
		}
		if n := f.Counts().Skipped.Load(); n != 1 {
			t.Errorf("%d are counted, want one", n)
		}
	})
}

// A skipped event is no missing version: with ON_GAP=wait what follows is applied, and a
// version that is missing before the one that fails is waited for first.
func TestSkip_IsNoGapAndHidesNone(t *testing.T) {
	t.Parallel()
	for _, policy := range []string{"skip", "deadletter"} {
		t.Run(policy, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t, waiting(time.Minute), under(t, policy))
				apply := func(want int, messages ...session.Message) {
					t.Helper()
					for i := range messages {
						messages[i].EnqueuedAt = time.Now()
					}
					verdicts, err := f.Hold("a").Apply(t.Context(), messages)
					if len(verdicts) != want || (err == nil) != (want == len(messages)) {
						t.Errorf("got %d verdicts and %v, want %d", len(verdicts), err, want)
					}
				}
				apply(2, happened(t, "a", 1)[0], message(t, "a", 2, "Doubled", `{"n":"x"}`))
				apply(1, happened(t, "a", 3)...)
				apply(0, message(t, "a", 5, "Doubled", `{"n":"x"}`))
				if records := f.store.Skips("a-5"); len(records) != 0 {
					t.Errorf("the one behind the gap is recorded: %v", records)
				}
				apply(2, happened(t, "a", 4)[0], message(t, "a", 5, "Doubled", `{"n":"x"}`))
				if got := f.fields(t, "orders", "a"); got != `{"events":3}{"last":4}{"seen":[1,3,4]}` {
					t.Errorf("document: got %s", got)
				}
			})
		})
	}
}

// While the brake is on nothing more is skipped, by one batch or by many, and all that
// stands before is stored.
func TestSkip_TheBrakeCountsEachEvent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, withBrake(2), under(t, "skip"))
		messages := happened(t, "a", 1)
		for n := int64(2); n < 8; n++ {
			messages = append(messages, message(t, "a", n, "Doubled", `{"n":"x"}`))
		}
		verdicts, err := f.Hold("a").Apply(t.Context(), messages)
		if len(verdicts) != 3 || !errors.Is(err, session.ErrPaused) {
			t.Errorf("got %d verdicts and %v, want those of one that is applied and two that are skipped", len(verdicts), err)
		}
		if n, err := f.store.AcceptSkips(t.Context()); err != nil || n != 2 {
			t.Errorf("%d are recorded, %v, want two", n, err)
		}
		if verdicts, err := f.Hold("a").Apply(t.Context(), messages[3:]); len(verdicts) != 2 || !errors.Is(err, session.ErrPaused) {
			t.Errorf("accepted: got %d verdicts and %v, want two more", len(verdicts), err)
		}
	})
}

// An event counts once, however many projections skip it.
func TestSkip_TheBrakeCountsAnEventOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const both = `projections:
  - {name: one, collection: one, on: {Doubled: {inc: {sum: data.n * 2}}}}
  - {name: two, collection: two, on: {Doubled: {inc: {sum: data.n * 2}}}}
`
		f := newFixtureOf(t, parse(t, both), withBrake(2), under(t, "skip"))
		var messages []session.Message
		for n := int64(1); n < 4; n++ {
			messages = append(messages, message(t, "a", n, "Doubled", `{"n":"x"}`))
		}
		if verdicts, err := f.Hold("a").Apply(t.Context(), messages); len(verdicts) != 2 || !errors.Is(err, session.ErrPaused) {
			t.Errorf("got %d verdicts and %v, want two events skipped", len(verdicts), err)
		}
	})
}

// What cannot be recorded is not settled, and nothing of the event is applied by anyone.
func TestSkip_NothingIsSettledWithoutItsRecord(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, withBrake(2), under(t, "skip"))
		failing := errors.New("no record")
		f.store.Fail = func(operation string) error {
			if operation == "write" {
				return failing
			}
			return nil
		}
		verdicts, err := f.Hold("a").Apply(t.Context(), []session.Message{message(t, "a", 1, "Doubled", `{"n":"x"}`)})
		if len(verdicts) != 0 || !errors.Is(err, failing) {
			t.Errorf("got %v and %v, want no verdict", verdicts, err)
		}
	})
}

// A message that has killed processes is skipped without being tried, and one that
// cannot be read is halted whatever the policy is: an upgrade reads it.
func TestSkip_WhatKillsIsNotTriedAndWhatCannotBeReadHalts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		deaths := killing{"a-2"}
		f := newFixture(t, withCrashNotes(deaths, 2), under(t, "crash=skip"), func(_ *delivery.Config, d *delivery.Deps) {
			d.Decider = untried{d.Decider, t, "a-2"}
		})
		messages := happened(t, "a", 2, 3)
		for range 2 { // the first goes alone
			verdicts, err := f.Hold("a").Apply(t.Context(), messages)
			if err != nil || len(verdicts) == 0 {
				t.Fatalf("got %v and %v, want it dealt with", verdicts, err)
			}
			if messages = messages[len(verdicts):]; len(messages) == 0 {
				break
			}
		}
		if record := f.store.Skips("a-2")["orders"]; record.Class != projection.Crash || !strings.Contains(record.Reason, "2 processes have died") {
			t.Errorf("got record %+v, want what it died of", record)
		}
		if got := f.fields(t, "orders", "a"); got != `{"events":1}{"last":3}{"seen":[3]}` {
			t.Errorf("document: got %s, want what follows", got)
		}
		broken := happened(t, "b", 1)
		broken[0].Body = []byte("{")
		if _, err := f.Hold("b").Apply(t.Context(), broken); err != nil {
			t.Fatal(err)
		}
		if parked := f.parked(t, "b"); !slices.Equal(parked, []int64{1}) {
			t.Errorf("%v are parked, want what cannot be read", parked)
		}
	})
}

// killing is an event that two processes have died of alone.
type killing struct{ event string }

func (d killing) CrashedLately() bool { return true }

func (d killing) Deaths(context.Context, string) ([]delivery.Death, error) {
	alone := delivery.Death{Messages: []string{d.event}, Alone: true}
	return []delivery.Death{alone, alone}, nil
}

func (d killing) Note(context.Context, string, []string, bool) error { return nil }
func (d killing) Clear(context.Context, string, []string) error      { return nil }

// untried is a decider that must not see an event.
type untried struct {
	delivery.Decider
	t     *testing.T
	event string
}

func (u untried) Decide(c *projection.Change) ([]projection.Write, error) {
	if c.ID == u.event {
		u.t.Errorf("event %s is tried", c.ID)
	}
	return u.Decider.Decide(c)
}

// What puts the order of the aggregate in doubt halts, whatever the policy is.
func TestSkip_ADoubtAboutTheOrderHalts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, under(t, "skip"))
		twin := happened(t, "a", 1)
		if _, err := f.Hold("a").Apply(t.Context(), twin); err != nil {
			t.Fatal(err)
		}
		e := *readmodeltest.Event("a", 1)
		e.ID, e.ContentType, e.Data = "another", contract.ContentTypeJSON, []byte(`{"n":1}`)
		var err error
		if twin[0].Message, err = contract.Encode(e, contract.EncodeOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, err := f.Hold("a").Apply(t.Context(), twin); err != nil {
			t.Fatal(err)
		}
		if parked := f.parked(t, "a"); len(parked) != 1 || len(f.store.Skips("another")) != 0 {
			t.Errorf("%v are parked, want the second event of the same version, and no record", parked)
		}
	})
}

// What stands in the place of a refused write may be refused, too: then it is halted.
func TestSkip_WhatCannotBeSkippedHalts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, under(t, "skip"), func(_ *delivery.Config, d *delivery.Deps) { d.Store = refusing{} })
		if verdicts, err := f.Hold("a").Apply(t.Context(), happened(t, "a", 1)); err != nil || len(verdicts) != 1 {
			t.Fatalf("got %v and %v, want it parked", verdicts, err)
		}
		if parked := f.parked(t, "a"); len(parked) != 1 {
			t.Errorf("%v are parked, want the one", parked)
		}
	})
}

// refusing refuses whatever it is given.
type refusing struct{}

func (refusing) Write(_ context.Context, writes []projection.Write) ([]delivery.Outcome, error) {
	return make([]delivery.Outcome, len(writes)), &delivery.RejectedError{Class: projection.Store, Reason: "never"}
}

// A record has the whole message, and must fit into a document.
func TestSkip_WhatIsTooLargeToBeRecordedHalts(t *testing.T) {
	t.Parallel()
	large := `{"n":"x","text":"` + strings.Repeat("x", 15<<20) + `"}`
	for policy, parked := range map[string]int{"skip": 1, "deadletter": 0} {
		synctest.Test(t, func(t *testing.T) {
			f := newFixture(t, under(t, policy))
			verdicts, err := f.Hold("a").Apply(t.Context(), []session.Message{message(t, "a", 1, "Doubled", large)})
			if err != nil || len(verdicts) != 1 || verdicts[0].DeadLetter != (policy == "deadletter") {
				t.Fatalf("%s: got %v and %v, want one verdict", policy, verdicts, err)
			}
			record := f.store.Skips("a-1")["orders"]
			if got := f.parked(t, "a"); len(got) != parked || record.Message != nil || (record.Action != "") != (parked == 0) {
				t.Errorf("%s: got %v parked and record %+v, want it to halt where there would be nothing else of it", policy, got, record.Action)
			}
		})
	}
}

// A process may have died of an event that the projection had applied: its message is no
// dead letter, which would say that the event is not applied. One that was dead-lettered
// before, and comes again, is.
func TestSkip_WhatWasAppliedIsNotDeadLettered(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		if _, err := f.Hold("a").Apply(t.Context(), happened(t, "a", 1)); err != nil {
			t.Fatal(err)
		}
		deadly := func(n int64) session.Verdict {
			t.Helper()
			id := fmt.Sprint("a-", n)
			h := newHandler(parse(t, ordersAlone), f.store, withCrashNotes(killing{id}, 2), under(t, "crash=deadletter"), func(_ *delivery.Config, d *delivery.Deps) { d.Halts = f.halts })
			verdicts, err := h.Hold("a").Apply(t.Context(), happened(t, "a", n))
			if err != nil || len(verdicts) != 1 {
				t.Fatalf("got %v and %v, want one verdict", verdicts, err)
			}
			if n == 1 && h.Counts().Repeated.Load() != 1 {
				t.Error("it is counted for no repeat")
			}
			return verdicts[0]
		}
		if v := deadly(1); v.DeadLetter {
			t.Errorf("applied: got %+v, want it completed", v)
		}
		for range 2 {
			if v := deadly(2); !v.DeadLetter || v.Reason != "NotApplied" {
				t.Errorf("not applied: got %+v, want it dead-lettered", v)
			}
		}
	})
}

// ordersAlone is counting with one projection.
var ordersAlone, _, _ = strings.Cut(counting, "- name: totals")
