package orders

import (
	"reflect"
	"testing"
)

func TestCustomers_AreOfAllTheirOrders(t *testing.T) {
	t.Parallel()
	placed := func(order string, version int64, customer, channel string) Event {
		return Event{Aggregate: order, Version: version, Type: Placed, Data: Data{"customer": customer, "channel": channel}}
	}
	got := Customers{}
	for _, e := range []Event{
		placed("a", 7, "c1", "web"),
		{Aggregate: "a", Version: 8, Type: Added, Data: Data{"sku": "s", "price": int64(1)}},
		placed("b", 1, "c1", "shop"),
		placed("c", 1, "c2", "web"),
		placed("b", 4, "c1", "web"),
	} {
		got.Apply(e)
	}
	want := Customers{
		"c1/web":  {"orders": int64(2), "sum": int64(11), "lowest": int64(4), "highest": int64(7), "channels": []any{"web"}},
		"c1/shop": {"orders": int64(1), "sum": int64(1), "lowest": int64(1), "highest": int64(1), "channels": []any{"shop"}},
		"c2/web":  {"orders": int64(1), "sum": int64(1), "lowest": int64(1), "highest": int64(1), "channels": []any{"web"}},
		"c1":      {"orders": int64(3), "sum": int64(12), "lowest": int64(1), "highest": int64(7), "channels": []any{"web", "shop"}},
		"c2":      {"orders": int64(1), "sum": int64(1), "lowest": int64(1), "highest": int64(1), "channels": []any{"web"}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
