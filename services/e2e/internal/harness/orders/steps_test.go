package orders

import (
	"reflect"
	"testing"
)

func TestSteps_HaveTwoDocumentsForEachEvent(t *testing.T) {
	t.Parallel()
	got := Steps{}
	for version := range int64(4) {
		got.Apply(Event{Aggregate: "o", Version: version + 1, Type: Added})
	}
	want := Steps{
		"o/" + Added: {"events": int64(4), "sum": int64(10), "latest": int64(4)},
		"o/0":        {"events": int64(1), "sum": int64(3), "latest": int64(3)},
		"o/1":        {"events": int64(2), "sum": int64(5), "latest": int64(4)},
		"o/2":        {"events": int64(1), "sum": int64(2), "latest": int64(2)},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
