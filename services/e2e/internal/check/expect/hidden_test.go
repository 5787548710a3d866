package expect

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

func TestHidden_LeavesOutAndMasksWhatItNames(t *testing.T) {
	t.Parallel()
	h := Hidden{Dropped: []string{"data.a", "data.in.x", "data.none.x"}, Masked: []string{"data.b", "data.in.y"}}
	inner := func(more ...bson.E) bson.D { return append(bson.D{{Key: "z", Value: int32(1)}}, more...) }
	whole := inner(bson.E{Key: "x", Value: true}, bson.E{Key: "y", Value: bson.D{{Key: "x", Value: nil}}})
	left := inner(bson.E{Key: "y", Value: mask})
	got, err := h.Of(document(t, bson.D{
		{Key: "a", Value: "left out"},
		{Key: "a.b", Value: "another name"},
		{Key: "b", Value: bson.A{int32(1)}},
		{Key: "in", Value: bson.A{whole, bson.A{whole}, "x"}},
		{Key: "x", Value: "elsewhere"},
		{Key: "$date", Value: int64(5)},
	}))
	if err != nil {
		t.Fatal(err)
	}
	want := document(t, bson.D{
		{Key: "a.b", Value: "another name"},
		{Key: "b", Value: mask},
		{Key: "in", Value: bson.A{left, bson.A{left}, "x"}},
		{Key: "x", Value: "elsewhere"},
		{Key: "$date", Value: int64(5)},
	})
	if got.String() != want.String() {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// What hides a field that Extended JSON cannot carry makes data JSON again.
func TestHidden_DecidesHowDataIsCarried(t *testing.T) {
	t.Parallel()
	raw := document(t, bson.D{{Key: "laden", Value: bson.D{{Key: "$date", Value: "x"}}}})
	for name, tt := range map[string]struct {
		h    Hidden
		want string
	}{
		"nothing": {Hidden{}, bsonContent},
		"masked":  {Hidden{Masked: []string{"data.laden"}}, jsonContent},
		"dropped": {Hidden{Dropped: []string{"data.laden"}}, jsonContent},
	} {
		shown, err := tt.h.Of(raw)
		if err != nil {
			t.Fatal(err)
		}
		m, err := Of("shop", "events", shown)
		if err != nil || m[ContentType] != tt.want {
			t.Errorf("%s: got %q, error %v, want %q", name, m[ContentType], err, tt.want)
		}
	}
}
