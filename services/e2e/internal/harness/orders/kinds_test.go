package orders

import (
	"reflect"
	"testing"
)

func TestKinds_AreOfAllAggregatesTogether(t *testing.T) {
	t.Parallel()
	got := Kinds{}
	got.Apply("order-12", "insert")
	got.Apply("order-912", "insert")
	got.Apply("order-13", "insert")
	got.Apply("order-13", "update")
	counts := func(n int64) Document { return Document{"changes": n} }
	want := Kinds{"insert": counts(3), "insert/12": counts(2), "insert/13": counts(1), "update": counts(1), "update/13": counts(1)}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
