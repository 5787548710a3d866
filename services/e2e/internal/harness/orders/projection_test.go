package orders

import (
	"reflect"
	"testing"
)

func TestProjection_Recomputation(t *testing.T) {
	t.Parallel()
	placed := Event{Type: Placed, Data: Data{"customer": "c1", "channel": "web"}}
	added := func(sku string, price int64) Event {
		return Event{Type: Added, Data: Data{"sku": sku, "price": price}}
	}
	tests := []struct {
		name   string
		events []Event
		want   Document
	}{
		{
			name:   "a placed order has its customer and counts one event",
			events: []Event{placed},
			want: Document{
				"status": "placed", "customer": "c1", "channel": "web",
				"rounds": int64(1), "events": int64(1), "history": []any{Placed},
			},
		},
		{
			name:   "items add up, and the cheapest and dearest price ever added stay",
			events: []Event{placed, added("a", 500), added("b", 200), added("a", 500), {Type: Removed, Data: Data{"sku": "b", "price": int64(200)}}},
			want: Document{
				"status": "placed", "customer": "c1", "channel": "web",
				"rounds": int64(1), "events": int64(5), "items": int64(2), "total": int64(1000),
				"cheapest": int64(200), "dearest": int64(500), "skus": []any{"a", "b"},
				"history": []any{Placed, Added, Added, Added, Removed},
			},
		},
		{
			name: "placing again forgets how the last round ended",
			events: []Event{
				placed,
				{Type: Paid, Data: Data{"method": "card", "amount": int64(70)}},
				{Type: Shipped, Data: Data{"carrier": "river", "tracking": "T1"}},
				placed,
			},
			want: Document{
				"status": "placed", "customer": "c1", "channel": "web", "paid": int64(70),
				"rounds": int64(2), "events": int64(4), "history": []any{Placed, Paid, Shipped, Placed},
			},
		},
		{
			name:   "a cancelled order says why",
			events: []Event{placed, {Type: Cancelled, Data: Data{"reason": "too late"}}},
			want: Document{
				"status": "cancelled", "reason": "too late", "customer": "c1", "channel": "web",
				"rounds": int64(1), "events": int64(2), "history": []any{Placed, Cancelled},
			},
		},
		{
			name:   "a type that the projection does not name leaves no trace",
			events: []Event{placed, {Type: "OrderPraised", Data: Data{"stars": int64(5)}}},
			want: Document{
				"status": "placed", "customer": "c1", "channel": "web",
				"rounds": int64(1), "events": int64(1), "history": []any{Placed},
			},
		},
		{
			name:   "an erased order leaves nothing",
			events: []Event{placed, {Type: Erased, Data: Data{"request": "R1"}}},
		},
		{
			name:   "an order that is placed after it was erased begins anew",
			events: []Event{placed, added("a", 500), {Type: Erased, Data: Data{"request": "R1"}}, placed},
			want: Document{
				"status": "placed", "customer": "c1", "channel": "web",
				"rounds": int64(1), "events": int64(1), "history": []any{Placed},
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			m := Model{}
			for _, e := range tt.events {
				e.Aggregate = "o"
				m.Apply(e)
			}
			if got := m["o"]; !reflect.DeepEqual(got, tt.want) {
				t.Errorf("document:\ngot  %v\nwant %v", got, tt.want)
			}
		})
	}
}

func TestProjection_HistoryKeepsTheLatestTypesOnly(t *testing.T) {
	t.Parallel()
	m := Model{}
	for range 25 {
		m.Apply(Event{Aggregate: "o", Type: Added, Data: Data{"sku": "a", "price": int64(1)}})
	}
	m.Apply(Event{Aggregate: "o", Type: Paid, Data: Data{}})
	history := m["o"]["history"].([]any)
	if got, want := len(history), historyKept; got != want {
		t.Fatalf("history: got %d types, want %d", got, want)
	}
	if got, want := history[historyKept-1], any(Paid); got != want {
		t.Errorf("last of the history: got %v, want %v", got, want)
	}
}

func TestProjection_LatestKeepsTheDataOfTheLastEvent(t *testing.T) {
	t.Parallel()
	l := Latest{}
	l.Apply(Event{Aggregate: "a", Version: 1, Data: Data{"n": int64(1)}})
	l.Apply(Event{Aggregate: "a", Version: 2, Data: Data{"n": int64(2)}})
	if got, want := l["a"], any(Data{"n": int64(2)}); !reflect.DeepEqual(got, want) {
		t.Errorf("latest: got %v, want %v", got, want)
	}
}
