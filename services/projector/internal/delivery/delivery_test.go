package delivery_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/delivery"
	"changerelay/services/projector/internal/projection"
	"changerelay/services/projector/internal/readmodel/readmodeltest"
	"changerelay/services/projector/internal/session"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const counting = `
projections:
- name: orders
  collection: orders
  on:
    Happened:
      set: {last: data.n}
      inc: {events: 1}
      push: {seen: {value: data.n, last: 50}}
    Doubled:
      inc: {events: data.n * 2}
    Broken:
      push: {last: data.n}
    Ended:
      delete: true
- name: totals
  collection: totals
  on:
    Happened:
      inc: {sum: data.n}
`

func parse(t *testing.T, source string) projection.Projections {
	t.Helper()
	projections, err := projection.Parse("test.yaml", []byte(source))
	if err != nil {
		t.Fatal(err)
	}
	return projections
}

// message is the nth message of an aggregate.
func message(t *testing.T, aggregate string, n int64, kind, data string) session.Message {
	t.Helper()
	e := *readmodeltest.Event(aggregate, n)
	e.Type, e.ContentType, e.Data = kind, contract.ContentTypeJSON, []byte(data)
	m, err := contract.Encode(e, contract.EncodeOptions{})
	if err != nil {
		t.Fatalf("encode: %v", err)
	}
	return session.Message{Message: m, SequenceNumber: n}
}

func happened(t *testing.T, aggregate string, versions ...int64) []session.Message {
	t.Helper()
	messages := make([]session.Message, len(versions))
	for i, n := range versions {
		messages[i] = message(t, aggregate, n, "Happened", fmt.Sprintf(`{"n":%d}`, n))
	}
	return messages
}

// observer notes what became readable.
type observer struct {
	mu       sync.Mutex
	readable []string
}

func (*observer) Stored(int, time.Duration) {}

func (o *observer) Readable(e *contract.Event) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.readable = append(o.readable, e.ID)
}

type fixture struct {
	*delivery.Handler
	store    *readmodeltest.Fake
	halts    *delivery.Halts
	observer *observer
}

func newFixture(t *testing.T, with ...setting) *fixture {
	t.Helper()
	return newFixtureOf(t, parse(t, counting), with...)
}

func newFixtureOf(t *testing.T, projections projection.Projections, with ...setting) *fixture {
	t.Helper()
	f := &fixture{store: readmodeltest.NewFake(), observer: &observer{}}
	f.halts = delivery.NewHalts(f.store)
	with = append(with, func(_ *delivery.Config, d *delivery.Deps) { d.Halts, d.Observer = f.halts, f.observer })
	f.Handler = newHandler(projections, f.store, with...)
	return f
}

// setting changes one thing of a handler.
type setting func(*delivery.Config, *delivery.Deps)

// database is all that a handler needs of one.
type database interface {
	delivery.Store
	delivery.Parking
	delivery.HaltedAggregates
}

func newHandler(decider delivery.Decider, store database, with ...setting) *delivery.Handler {
	config := delivery.Config{}
	deps := delivery.Deps{
		Decider: decider, Store: store, Parking: store, Halts: delivery.NewHalts(store), Observer: &observer{}, Log: zerolog.Nop(),
	}
	for _, set := range with {
		set(&config, &deps)
	}
	return delivery.New(config, deps)
}

// waiting has missing versions waited for.
func waiting(wait time.Duration) setting {
	return func(c *delivery.Config, d *delivery.Deps) {
		c.GapWait = wait
		d.Versions, d.Parked = d.Store.(delivery.Versions), d.Store.(delivery.ParkedMessages)
	}
}

// group has resends for a group meant.
func group(name string) setting {
	return func(c *delivery.Config, _ *delivery.Deps) { c.Group = name }
}

// careful has messages parked that limit processes died of.
func careful(care delivery.Care, limit int) setting {
	return func(c *delivery.Config, d *delivery.Deps) { c.CrashLimit, d.Care = limit, care }
}

func (f *fixture) fields(t *testing.T, collection, id string) string {
	t.Helper()
	text, err := f.store.Fields(t.Context(), collection, id)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func (f *fixture) parked(t *testing.T, aggregate string) []int64 {
	t.Helper()
	sequences, err := f.store.Parked(t.Context(), aggregate)
	if err != nil {
		t.Fatal(err)
	}
	var versions []int64
	for _, s := range sequences {
		var n int64
		if _, err := fmt.Sscanf(string(s), "%d", &n); err != nil {
			t.Fatal(err)
		}
		versions = append(versions, n)
	}
	return versions
}

func TestDelivery_AppliedAndRepeatedMessagesAreCompleted(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for range 2 {
		verdicts, err := f.Hold("a").Apply(t.Context(), append(happened(t, "a", 1, 2, 3), message(t, "a", 4, "NotFollowed", `{}`)))
		if err != nil || !slices.Equal(verdicts, make([]session.Verdict, 4)) {
			t.Fatalf("got %v and %v, want four completed", verdicts, err)
		}
	}
	c := f.Counts()
	if c.Applied.Load() != 3 || c.Repeated.Load() != 3 || c.PassedBy.Load() != 2 {
		t.Errorf("applied %d, repeated %d, passed by %d; want 3, 3, 2", c.Applied.Load(), c.Repeated.Load(), c.PassedBy.Load())
	}
	if got, want := f.fields(t, "orders", "a"), `{"events":3}{"last":3}{"seen":[1,2,3]}`; got != want {
		t.Errorf("document: got %s, want %s", got, want)
	}
	if !slices.Equal(f.observer.readable, []string{"a-1", "a-2", "a-3"}) {
		t.Errorf("readable: got %v, want each once", f.observer.readable)
	}
}

// broken is the second message of aggregate a, changed.
func broken(t *testing.T, change func(m *session.Message)) session.Message {
	t.Helper()
	m := message(t, "a", 2, "Happened", `{"n":2}`)
	change(&m)
	return m
}

func TestDeadLetter_AMessageOfNoAggregateIsDeadLettered(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name         string
		message      session.Message
		reason, says string
	}{
		{"a foreign message", session.Message{Message: contract.Message{ID: "x", SessionID: "a", Body: []byte("hello")}}, "ForeignMessage", "specversion: is missing"},
		{"no sequence", broken(t, func(m *session.Message) { delete(m.Properties, "cloudEvents_sequence") }), "InvalidMessage", "sequence: is missing"},
		{"a sequence that is no text", broken(t, func(m *session.Message) { m.Properties["cloudEvents_sequence"] = int64(2) }), "InvalidMessage", "sequence: is of type int64"},
		{"no id", broken(t, func(m *session.Message) { m.ID = ""; delete(m.Properties, "cloudEvents_id") }), "InvalidMessage", "id: is missing"},
		{"another id", broken(t, func(m *session.Message) { m.ID = "b-2" }), "InvalidMessage", "messageId: "},
		{"another session", broken(t, func(m *session.Message) { m.SessionID = "b" }), "InvalidMessage", "sessionId: "},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			messages := append(happened(t, "a", 1), tt.message)
			messages = append(messages, happened(t, "a", 3)...)
			verdicts, err := f.Hold("a").Apply(t.Context(), messages)
			if err != nil || len(verdicts) != 3 {
				t.Fatalf("got %v and %v, want three verdicts", verdicts, err)
			}
			v := verdicts[1]
			if !v.DeadLetter || v.Reason != tt.reason || !strings.Contains(v.Description, tt.says) || strings.Contains(v.Description, "\n") {
				t.Errorf("verdict: got %+v, want %s saying %q", v, tt.reason, tt.says)
			}
			if verdicts[0].DeadLetter || verdicts[2].DeadLetter {
				t.Errorf("the others: got %+v, want them completed", verdicts)
			}
			if got, want := f.fields(t, "orders", "a"), `{"events":2}{"last":3}{"seen":[1,3]}`; got != want {
				t.Errorf("document: got %s, want %s", got, want)
			}
		})
	}
}

// Whatever is wrong with a message whose place is known, nothing that comes
// after it is applied before it.
func TestHalt_AMessageThatCannotBeReadHaltsItsAggregate(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		change func(m *session.Message)
		says   string
	}{
		{"a missing position", func(m *session.Message) { delete(m.Properties, "cloudEvents_position") }, "position: is missing"},
		{"a body that is no JSON", func(m *session.Message) { m.Body = []byte(`{"n":`) }, "body: is not application/json"},
		{"a body that is no value of the format", func(m *session.Message) { m.Body = []byte(`{"$oid":"x"}`) }, "body: is not application/json"},
		{"a body that is no gzip", func(m *session.Message) { m.ContentEncoding = "gzip" }, "body: is not gzip"},
		{"an unknown encoding", func(m *session.Message) { m.ContentEncoding = "zstd" }, `contentEncoding: is "zstd"`},
		{"an unknown content type", func(m *session.Message) { m.ContentType = "application/cbor" }, `contentType: is "application/cbor"`},
		{"a newer contract", func(m *session.Message) { m.Properties["cloudEvents_contractversion"] = "2" }, "contractversion: "},
		{"an unknown operation", func(m *session.Message) { m.Properties["cloudEvents_operation"] = "merge" }, "operation: "},
		{"a later version without the copies of id and session", func(m *session.Message) {
			delete(m.Properties, "cloudEvents_id")
			delete(m.Properties, "cloudEvents_subject")
			m.Properties["cloudEvents_contractversion"] = "2"
		}, "contractversion: "},
	}
	for _, tt := range tests {
		for _, wait := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, waiting for versions %t", tt.name, wait), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					var with []setting
					if wait {
						with = append(with, waiting(time.Second))
					}
					f := newFixture(t, with...)
					messages := append(happened(t, "a", 1), broken(t, tt.change))
					messages = append(messages, happened(t, "a", 3, 4)...)
					for i := range messages {
						messages[i].EnqueuedAt = time.Now()
					}
					verdicts, err := f.Hold("a").Apply(t.Context(), messages)
					if err != nil || !slices.Equal(verdicts, make([]session.Verdict, 4)) {
						t.Fatalf("got %v and %v, want all completed", verdicts, err)
					}
					if got := f.parked(t, "a"); !slices.Equal(got, []int64{2, 3, 4}) {
						t.Errorf("parked: got %v, want 2, 3 and 4", got)
					}
					mark, err := f.store.Mark(t.Context(), "a")
					if err != nil || mark == nil || !strings.Contains(mark.Reason, tt.says) || strings.Contains(mark.Reason, "\n") {
						t.Errorf("halt: got %+v and %v, want a reason saying %q", mark, err, tt.says)
					}
					if got, want := f.fields(t, "orders", "a"), `{"events":1}{"last":1}{"seen":[1]}`; got != want {
						t.Errorf("document: got %s, want %s", got, want)
					}
					// A redrive stops there again: nothing is done behind its back.
					done, err := delivery.Redrive(t.Context(), parse(t, counting), f.store, f.store, delivery.Gaps{}, "a")
					if err != nil || done.Lifted || done.Applied != 0 || done.FailedEventID != "a-2" {
						t.Errorf("redrive: got %+v and %v, want it to stop at the message", done, err)
					}
				})
			})
		}
	}
}

func TestDelivery_WhatCanNotBeProjectedHaltsItsAggregateAlone(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		poison string // data of the third event, of type Doubled
		says   string
		// before are events that must be stored in every projection.
		wantOrders, wantTotals string
	}{
		{"by a projection", `{"n":"three"}`, `projection "orders", event type "Doubled": inc "events"`, `{"events":2}{"last":2}{"seen":[1,2]}`, `{"sum":3}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t)
				poison := message(t, "a", 3, "Doubled", tt.poison)
				verdicts, err := f.Hold("a").Apply(t.Context(), append(append(happened(t, "a", 1, 2), poison), happened(t, "a", 4, 5)...))
				if err != nil || !slices.Equal(verdicts, make([]session.Verdict, 5)) {
					t.Fatalf("got %v and %v, want all completed", verdicts, err)
				}
				if got := f.parked(t, "a"); !slices.Equal(got, []int64{3, 4, 5}) {
					t.Errorf("parked: got %v, want 3, 4 and 5", got)
				}
				if got := f.fields(t, "orders", "a"); got != tt.wantOrders {
					t.Errorf("orders: got %s, want %s", got, tt.wantOrders)
				}
				if got := f.fields(t, "totals", "a"); got != tt.wantTotals {
					t.Errorf("totals: got %s, want %s", got, tt.wantTotals)
				}
				// Later messages of the aggregate follow, those of others flow.
				if _, err := f.Hold("a").Apply(t.Context(), happened(t, "a", 6)); err != nil {
					t.Fatal(err)
				}
				if _, err := f.Hold("b").Apply(t.Context(), happened(t, "b", 1)); err != nil {
					t.Fatal(err)
				}
				if got := f.parked(t, "a"); !slices.Equal(got, []int64{3, 4, 5, 6}) {
					t.Errorf("parked: got %v, want 3 to 6", got)
				}
				if got := f.fields(t, "totals", "b"); got != `{"sum":1}` {
					t.Errorf("another aggregate: got %s, want its event applied", got)
				}
				c := f.Counts()
				if c.Halts.Load() != 1 || c.Parked.Load() != 4 || c.Applied.Load() != 3 {
					t.Errorf("halts %d, parked %d, applied %d; want 1, 4, 3", c.Halts.Load(), c.Parked.Load(), c.Applied.Load())
				}
			})
		})
	}
}

func TestDelivery_WhatTheStoreRejectsHaltsItsAggregateWithAllBeforeItStored(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		// The totals of the aggregate are in foreign hands.
		if err := f.store.PutForeign(t.Context(), "totals", "a"); err != nil {
			t.Fatal(err)
		}
		messages := append([]session.Message{message(t, "a", 1, "Doubled", `{"n":1}`)}, happened(t, "a", 2, 3)...)
		verdicts, err := f.Hold("a").Apply(t.Context(), messages)
		if err != nil || !slices.Equal(verdicts, make([]session.Verdict, 3)) {
			t.Fatalf("got %v and %v, want all completed", verdicts, err)
		}
		if got := f.parked(t, "a"); !slices.Equal(got, []int64{2, 3}) {
			t.Errorf("parked: got %v, want 2 and 3", got)
		}
		// Orders are written before totals, so the refusal comes before the
		// totals of the events in front of it.
		messages = append(happened(t, "b", 1, 2), message(t, "b", 3, "Broken", `{"n":1}`))
		if verdicts, err := f.Hold("b").Apply(t.Context(), messages); err != nil || len(verdicts) != 3 {
			t.Fatalf("got %v and %v, want all completed", verdicts, err)
		}
		if got := f.parked(t, "b"); !slices.Equal(got, []int64{3}) {
			t.Errorf("parked: got %v, want 3", got)
		}
		if got := f.fields(t, "totals", "b"); got != `{"sum":3}` {
			t.Errorf("totals of the events before it: got %s, want both", got)
		}
	})
}

// Where events write to several collections, a batch that fails is stored nowhere.
func TestDelivery_AFailureThatPassesStoresNothingOfABatchForSeveralCollections(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	down, writes := errors.New("not primary"), 0
	f.store.Fail = func(operation string) error {
		if operation == "write" {
			if writes++; writes > 5 { // 3 orders, 2 totals
				return down
			}
		}
		return nil
	}
	verdicts, err := f.Hold("a").Apply(t.Context(), happened(t, "a", 1, 2, 3))
	if !errors.Is(err, down) || len(verdicts) != 0 {
		t.Errorf("got %v and %v, want no verdict and the failure", verdicts, err)
	}
	if got := f.fields(t, "orders", "a") + f.fields(t, "totals", "a"); got != "" {
		t.Errorf("documents: got %s, want none", got)
	}
}

func TestDelivery_AFailureThatPassesGivesVerdictsOnlyForWhatIsStored(t *testing.T) {
	t.Parallel()
	f := newFixtureOf(t, parse(t, counting)[:1])
	down := errors.New("not primary")
	writes := 0
	f.store.Fail = func(operation string) error {
		if operation == "write" {
			if writes++; writes > 2 {
				return down
			}
		}
		return nil
	}
	hold := f.Hold("a")
	messages := happened(t, "a", 1, 2, 3)
	verdicts, err := hold.Apply(t.Context(), messages)
	if !errors.Is(err, down) || len(verdicts) != 2 {
		t.Fatalf("got %v and %v, want two verdicts and the failure", verdicts, err)
	}
	writes = 0
	verdicts, err = hold.Apply(t.Context(), messages[2:])
	if err != nil || len(verdicts) != 1 {
		t.Fatalf("again: got %v and %v, want the third", verdicts, err)
	}
	if got, want := f.fields(t, "orders", "a"), `{"events":3}{"last":3}{"seen":[1,2,3]}`; got != want {
		t.Errorf("documents: got %s, want %s", got, want)
	}
	if got := len(f.parked(t, "a")); got != 0 {
		t.Errorf("parked: got %d, want none: the failure passes", got)
	}
}

func TestDelivery_NoWriteBeginsAfterTheContextHasEnded(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("lock lost")
	f.store.Fail = func(operation string) error {
		if operation != "halted" {
			t.Errorf("%s after the context has ended", operation)
		}
		cancel(cause)
		return nil
	}
	if verdicts, err := f.Hold("a").Apply(ctx, happened(t, "a", 1)); !errors.Is(err, cause) || len(verdicts) != 0 {
		t.Errorf("got %v and %v, want no verdict and the cause", verdicts, err)
	}
}

func TestDelivery_MissingVersionsAreCountedWithinAHold(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		batches [][]int64
		want    int64
	}{
		{"none missing", [][]int64{{1, 2}, {3}}, 0},
		{"one in a batch", [][]int64{{1, 3}}, 1},
		{"three between batches", [][]int64{{1}, {5}}, 3},
		{"a rewind is no gap", [][]int64{{4, 5}, {2, 3, 4, 5, 6}}, 0},
		{"the first of a hold follows nothing", [][]int64{{7}}, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			hold := f.Hold("a")
			for _, batch := range tt.batches {
				if _, err := hold.Apply(t.Context(), happened(t, "a", batch...)); err != nil {
					t.Fatal(err)
				}
			}
			if got := f.Counts().VersionGaps.Load(); got != tt.want {
				t.Errorf("got %d, want %d", got, tt.want)
			}
		})
	}
}

// A message that cannot be kept leaves its place: what follows is not applied as
// if it had never been.
func TestPark_AMessageThatCannotBeKeptIsDeadLetteredAndItsPlaceKept(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		parks := 0
		f.store.Fail = func(operation string) error {
			if operation == "park" {
				if parks++; parks == 1 {
					return &delivery.RejectedError{Reason: "too large"}
				}
			}
			return nil
		}
		messages := append([]session.Message{message(t, "a", 1, "Doubled", `{"n":"x"}`)}, happened(t, "a", 2)...)
		verdicts, err := f.Hold("a").Apply(t.Context(), messages)
		if err != nil || len(verdicts) != 2 || !verdicts[0].DeadLetter || verdicts[1].DeadLetter {
			t.Fatalf("got %+v and %v, want the first dead-lettered", verdicts, err)
		}
		if got := f.parked(t, "a"); !slices.Equal(got, []int64{1, 2}) {
			t.Errorf("parked: got %v, want the place of the first, and the second", got)
		}
		done, err := delivery.Redrive(t.Context(), parse(t, counting), f.store, f.store, delivery.Gaps{}, "a")
		if err != nil || done.Lifted || done.Applied != 0 || done.FailedEventID != "a-1" {
			t.Errorf("redrive: got %+v and %v, want it to stop at the one that is not there", done, err)
		}
	})
}

func TestDelivery_AMessageThatCanNotBeParkedIsDeadLettered(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		f.store.Fail = func(operation string) error {
			if operation == "park" {
				return &delivery.RejectedError{Reason: "too large"}
			}
			return nil
		}
		verdicts, err := f.Hold("a").Apply(t.Context(), []session.Message{message(t, "a", 1, "Doubled", `{"n":"x"}`)})
		if err != nil || len(verdicts) != 1 || !verdicts[0].DeadLetter || !strings.Contains(verdicts[0].Description, "too large") {
			t.Errorf("got %+v and %v, want it dead-lettered with the reason", verdicts, err)
		}
	})
}
