package orders

import (
	"reflect"
	"testing"
	"time"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func take(seed uint64, aggregates, n int) []Event {
	g := NewGenerator(seed, aggregates)
	events := make([]Event, n)
	for i := range events {
		events[i] = g.Next(noon)
	}
	return events
}

func TestGenerator_TheSameSeedMakesTheSameEvents(t *testing.T) {
	t.Parallel()
	if a, b := take(7, 50, 2000), take(7, 50, 2000); !reflect.DeepEqual(a, b) {
		t.Error("two generators with seed 7 made different events")
	}
	if a, b := take(7, 50, 2000), take(8, 50, 2000); reflect.DeepEqual(a, b) {
		t.Error("seeds 7 and 8 made the same events")
	}
}

func TestGenerator_VersionsOfAnOrderCountUpFromOne(t *testing.T) {
	t.Parallel()
	last := map[string]int64{}
	for _, e := range take(1, 30, 5000) {
		if got, want := e.Version, last[e.Aggregate]+1; got != want {
			t.Fatalf("version of %s: got %d, want %d", e.Aggregate, got, want)
		}
		last[e.Aggregate] = e.Version
	}
	if got, want := len(last), 30; got != want {
		t.Errorf("orders with events: got %d, want %d", got, want)
	}
}

func TestGenerator_EveryTypeOfEventHappens(t *testing.T) {
	t.Parallel()
	count := map[string]int{}
	for _, e := range take(1, 30, 5000) {
		count[e.Type]++
	}
	for _, want := range []string{Placed, Added, Removed, Paid, Shipped, Cancelled} {
		if count[want] == 0 {
			t.Errorf("events of type %s: got 0, want some", want)
		}
	}
}

func TestGenerator_OrdersAreErasedOnlyWhenTheyAreOverAndWhereAskedTo(t *testing.T) {
	t.Parallel()
	g := NewGenerator(1, 30)
	g.Erasing = 0.5
	last, erased := map[string]string{}, 0
	for range 5000 {
		e := g.Next(noon)
		before := last[e.Aggregate]
		last[e.Aggregate] = e.Type
		if e.Type != Erased {
			continue
		}
		erased++
		if before != Shipped && before != Cancelled {
			t.Fatalf("%s was erased after %q, want %s or %s", e.Aggregate, before, Shipped, Cancelled)
		}
	}
	if erased == 0 {
		t.Error("no order was erased, want some")
	}
	for _, e := range take(1, 30, 5000) {
		if e.Type == Erased {
			t.Fatalf("%s was erased, though nobody asked for it", e.Aggregate)
		}
	}
}

func TestGenerator_SomeOrdersAreHot(t *testing.T) {
	t.Parallel()
	events := take(1, 1000, 20_000)
	hot := 0
	for _, e := range events {
		if e.Aggregate < AggregateID(10) {
			hot++
		}
	}
	if share := float64(hot) / float64(len(events)); share < 0.05 || share > 0.2 {
		t.Errorf("share of the ten hot orders: got %.3f, want about 0.1", share)
	}
}

func TestGenerator_OneOrderIsEnough(t *testing.T) {
	t.Parallel()
	for _, e := range take(1, 1, 1000) {
		if e.Aggregate != AggregateID(0) {
			t.Fatalf("aggregate: got %s, want %s", e.Aggregate, AggregateID(0))
		}
	}
}

func TestGenerator_IDsOfAnOrderSortByVersion(t *testing.T) {
	t.Parallel()
	low := Event{Aggregate: "a", Version: 9}
	high := Event{Aggregate: "a", Version: 10}
	if low.ID() >= high.ID() {
		t.Errorf("ids: got %q not below %q", low.ID(), high.ID())
	}
}
