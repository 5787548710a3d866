package mapping_test

import (
	"reflect"
	"slices"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/publisher/internal/mapping"
)

func TestLaterSpellings_AreTheSameTextInATypeThatSortsBehind(t *testing.T) {
	t.Parallel()
	object, uuid := bson.ObjectID{0xAB, 1}, bson.Binary{Subtype: bson.TypeBinaryUUID, Data: []byte{0xAB, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}}
	for name, tt := range map[string]struct {
		id   any
		want []any
	}{
		"a 32-bit integer has a string":         {int32(42), []any{"42"}},
		"a 64-bit integer has a string":         {int64(-7), []any{"-7"}},
		"a string of digits has none":           {"42", nil},
		"any other string has none":             {"order-1", nil},
		"24 hex digits have an ObjectId":        {object.Hex(), []any{object}},
		"upper-case digits are another text":    {"AB0100000000000000000000", nil},
		"the text of a UUID has one":            {"ab010203-0405-0607-0809-0a0b0c0d0e0f", []any{uuid}},
		"a UUID in other groups is another one": {"ab0102030405-0607-0809-0a0b0c0d-0e0f", nil},
		"an ObjectId has none":                  {object, nil},
		"a UUID has none":                       {uuid, nil},
		"what is no id has none":                {4.5, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var want []bson.RawValue
			for _, one := range tt.want {
				want = append(want, raw(t, one))
			}
			if got := mapping.LaterSpellings(raw(t, tt.id)); !slices.EqualFunc(got, want, bson.RawValue.Equal) {
				t.Errorf("got %v, want %v", got, want)
			}
		})
	}
}

func TestEarlierSpellings_AreTheSameTextInATypeThatSortsBefore(t *testing.T) {
	t.Parallel()
	object := bson.ObjectID{0xAB, 1}
	for name, tt := range map[string]struct {
		id   any
		want []any
	}{
		"an integer has none":             {int64(42), nil},
		"a string of digits has one":      {"42", []any{int64(42)}},
		"any other string has none":       {"order-1", nil},
		"an ObjectId has a string":        {object, []any{object.Hex()}},
		"what is no UUID is no id at all": {bson.Binary{Data: []byte{1}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var want []bson.RawValue
			for _, one := range tt.want {
				want = append(want, raw(t, one))
			}
			if got := mapping.EarlierSpellings(raw(t, tt.id)); !slices.EqualFunc(got, want, bson.RawValue.Equal) {
				t.Errorf("got %v, want %v", got, want)
			}
		})
	}
}

func TestIDValues_AreThoseThatHaveJustThatText(t *testing.T) {
	t.Parallel()
	object := bson.ObjectID{0xAB, 1}
	uuid := bson.Binary{Subtype: bson.TypeBinaryUUID, Data: []byte{0xAB, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}}
	for text, want := range map[string]bson.A{
		"7":                                    {"7", int64(7)},
		"007":                                  {"007"},
		"+7":                                   {"+7"},
		"-0":                                   {"-0"},
		object.Hex():                           {object.Hex(), object},
		"AB0100000000000000000000":             {"AB0100000000000000000000"},
		"ab010203-0405-0607-0809-0a0b0c0d0e0f": {"ab010203-0405-0607-0809-0a0b0c0d0e0f", uuid},
		"AB010203-0405-0607-0809-0A0B0C0D0E0F": {"AB010203-0405-0607-0809-0A0B0C0D0E0F"},
	} {
		if got := mapping.IDValues(text); !reflect.DeepEqual(got, want) {
			t.Errorf("%s has the values %v, want %v", text, got, want)
		}
	}
}

func raw(t *testing.T, v any) bson.RawValue {
	t.Helper()
	kind, data, err := bson.MarshalValue(v)
	if err != nil {
		t.Fatal(err)
	}
	return bson.RawValue{Type: kind, Value: data}
}
