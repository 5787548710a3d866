package plain

import (
	"reflect"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

func TestPlain_Document(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 1, 12, 0, 0, int(7*time.Millisecond), time.UTC)
	tests := []struct {
		name string
		in   bson.D
		want map[string]any
	}{
		{name: "whole numbers of any type are one type", in: bson.D{{Key: "a", Value: int32(3)}, {Key: "b", Value: int64(3)}, {Key: "c", Value: 3.0}}, want: map[string]any{"a": int64(3), "b": int64(3), "c": int64(3)}},
		{name: "fractions stay", in: bson.D{{Key: "a", Value: 0.5}}, want: map[string]any{"a": 0.5}},
		{name: "doubles beyond exact integers stay", in: bson.D{{Key: "a", Value: 1e300}}, want: map[string]any{"a": 1e300}},
		{name: "documents and arrays nest", in: bson.D{{Key: "a", Value: bson.A{bson.D{{Key: "b", Value: int32(1)}}, "x", nil}}}, want: map[string]any{"a": []any{map[string]any{"b": int64(1)}, "x", nil}}},
		{name: "dates are times in UTC", in: bson.D{{Key: "a", Value: at}}, want: map[string]any{"a": at}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			raw, err := bson.Marshal(tt.in)
			if err != nil {
				t.Fatal(err)
			}
			got, err := Document(raw)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, tt.want) {
				t.Errorf("document: got %#v, want %#v", got, tt.want)
			}
		})
	}
}

func TestPlain_BrokenBSONIsAnError(t *testing.T) {
	t.Parallel()
	if got, err := Document(bson.Raw{5, 0, 0}); err == nil {
		t.Errorf("document: got %v, want an error", got)
	}
}
