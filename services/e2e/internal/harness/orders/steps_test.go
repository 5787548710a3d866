package orders

import (
	"reflect"
	"testing"
)

func TestSteps_HaveTwoDocumentsForEachEvent(t *testing.T) {
	t.Parallel()
	// Their checksums are 3904355907, 1908338681, 112844655 and 2564639436.
	got, ids := Steps{}, []string{"a", "b", "c", "d"}
	for version := range int64(4) {
		got.Apply(Event{Aggregate: "o", Version: version + 1, Type: Added}, ids[version])
	}
	want := Steps{
		"o/" + Added: {"events": int64(4), "sum": int64(10), "ids": int64(8490178679), "latest": int64(4)},
		"o/0":        {"events": int64(1), "sum": int64(3), "ids": int64(112844655), "latest": int64(3)},
		"o/1":        {"events": int64(2), "sum": int64(5), "ids": int64(6468995343), "latest": int64(4)},
		"o/2":        {"events": int64(1), "sum": int64(2), "ids": int64(1908338681), "latest": int64(2)},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
