package delivery_test

import (
	"fmt"
	"sync"
	"testing"
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
	m, err := encoded(aggregate, n, kind, data)
	if err != nil {
		t.Fatalf("encode: %v", err)
	}
	return m
}

func encoded(aggregate string, n int64, kind, data string) (session.Message, error) {
	e := *readmodeltest.Event(aggregate, n)
	e.Type, e.ContentType, e.Data = kind, contract.ContentTypeJSON, []byte(data)
	m, err := contract.Encode(e, contract.EncodeOptions{})
	return session.Message{Message: m, SequenceNumber: n}, err
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
	mu                          sync.Mutex
	readable, projected, halted []string
}

func (*observer) Stored(int, time.Duration) {}

func (o *observer) Readable(e *contract.Event) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.readable = append(o.readable, e.ID)
}

// Projected implements delivery.Observer.
func (o *observer) Projected(e *contract.Event, fills bool, writes []projection.Write, outcomes []delivery.Outcome) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := range writes {
		o.projected = append(o.projected, fmt.Sprintf("%s %s %d %t", e.ID, writes[i].Projection, outcomes[i], fills))
	}
}

// Halted implements delivery.Observer.
func (o *observer) Halted(name string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.halted = append(o.halted, name)
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

// withCrashNotes has messages parked that limit processes died of.
func withCrashNotes(notes delivery.CrashNotes, limit int) setting {
	return func(c *delivery.Config, d *delivery.Deps) { c.CrashLimit, d.CrashNotes = limit, notes }
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
