package projection_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/projector/internal/projection"
)

type numbered int

func (n numbered) MarshalText() ([]byte, error) { return fmt.Appendf(nil, "n%d", n), nil }

// The driver encodes a map in the order in which Go walks through it, another each time.
func TestUpdate_EncodesAValueInOneWay(t *testing.T) {
	t.Parallel()
	value := map[string]any{
		"b": map[string]int{"y": 2, "x": 1, "z": 3}, "a": []any{bson.M{"2": 2, "1": nil}}, "c": struct{ M map[numbered]string }{map[numbered]string{2: "b", 1: "a"}},
	}
	const want = `{"$set":{"v":{"a":[{"1":null,"2":2}],"b":{"x":1,"y":2,"z":3},"c":{"m":{"n1":"a","n2":"b"}}}}}`
	for range 20 {
		update, err := projection.Update([]projection.Operand{{Operator: "set", Path: "v", Value: value}})
		if err != nil {
			t.Fatal(err)
		}
		got, err := bson.MarshalExtJSON(update, false, false)
		if err != nil || string(got) != want {
			t.Fatalf("got %s and %v, want %s", got, err, want)
		}
	}
	value["b"].(map[string]int)["x"] = 2
	update, err := projection.Update([]projection.Operand{{Operator: "push", Path: "v", Values: []any{value["b"]}, Last: 3}, {Operator: "set", Path: "nil", Value: map[string]int(nil)}})
	value["b"].(map[string]int)["x"] = 3
	got, _ := bson.MarshalExtJSON(update, false, false)
	if const1 := `{"$push":{"v":{"$each":[{"x":2,"y":2,"z":3}],"$slice":-3}},"$set":{"nil":null}}`; err != nil || string(got) != const1 {
		t.Errorf("changed after it was decided: got %s and %v, want %s", got, err, const1)
	}
}

// Numbers and times are what updates are folded by.
func TestUpdate_KeepsNumbersThatCanBeAdded(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 678e6, time.FixedZone("", 3600))
	update, err := projection.Update([]projection.Operand{
		{Operator: "inc", Path: "a", Value: 1},
		{Operator: "inc", Path: "b", Value: int64(1)},
		{Operator: "inc", Path: "c", Value: 1.5},
		{Operator: "inc", Path: "d", Value: uint8(4)},
		{Operator: "max", Path: "e", Value: at},
		{Operator: "max", Path: "f", Value: bson.NewDecimal128(0, 1)},
		{Operator: "unset", Path: "g"},
	})
	want := bson.D{
		{Key: "$inc", Value: bson.D{{Key: "a", Value: int32(1)}, {Key: "b", Value: int64(1)}, {Key: "c", Value: 1.5}, {Key: "d", Value: int32(4)}}},
		{Key: "$max", Value: bson.D{{Key: "e", Value: at.UTC()}, {Key: "f", Value: bson.NewDecimal128(0, 1)}}},
		{Key: "$unset", Value: bson.D{{Key: "g", Value: ""}}},
	}
	if got := fmt.Sprintf("%#v", update); err != nil || got != fmt.Sprintf("%#v", want) {
		t.Errorf("got %s and %v, want %#v", got, err, want)
	}
}

func TestUpdate_RefusesWhatNoUpdateMaySay(t *testing.T) {
	t.Parallel()
	set := func(path string, value any) projection.Operand {
		return projection.Operand{Operator: "set", Path: path, Value: value}
	}
	for name, tt := range map[string]struct {
		operands []projection.Operand
		want     string
	}{
		"the key":              {[]projection.Operand{set("_id", 1)}, "the document's key cannot be changed"},
		"the bookkeeping":      {[]projection.Operand{set("_relay.sequence", 1)}, "the projector's own"},
		"an empty path":        {[]projection.Operand{set("", 1)}, "empty"},
		"an operator":          {[]projection.Operand{set("a.$set", 1)}, "begins with $"},
		"a field twice":        {[]projection.Operand{set("a", 1), set("a", 2)}, "changed twice"},
		"a field and its part": {[]projection.Operand{set("a.b", 1), {Operator: "unset", Path: "a"}}, "changed twice"},
		"a sum of texts":       {[]projection.Operand{{Operator: "inc", Path: "a", Value: "1"}}, "of type string, not a number"},
		"a sum of nothing":     {[]projection.Operand{{Operator: "inc", Path: "a"}}, "not a number"},
		"none that are kept":   {[]projection.Operand{{Operator: "push", Path: "a", Last: -1}}, "less than one element"},
		"keys that are alike":  {[]projection.Operand{set("a", map[alike]int{1: 1, 2: 2})}, "two keys of a map have one text"},
		"keys without a text":  {[]projection.Operand{set("a", map[float64]int{1: 1})}, "keys of type float64"},
		"a number too large":   {[]projection.Operand{set("a", uint64(math.MaxUint64))}, "overflow"},
		"a key with a NUL":     {[]projection.Operand{set("a", map[string]int{"a\x00": 1})}, ""},
	} {
		if update, err := projection.Update(tt.operands); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v and %v, want %s", name, update, err, tt.want)
		}
	}
}

type alike int

func (alike) MarshalText() ([]byte, error) { return []byte("a"), nil }
