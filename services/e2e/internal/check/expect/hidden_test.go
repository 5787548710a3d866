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

// A change hides the same of the document before and after it, and of what an update says.
func TestHidden_LeavesOutAndMasksWhatAChangeSays(t *testing.T) {
	t.Parallel()
	images := Images{Full: Required, Before: true, Hidden: Hidden{Dropped: []string{"steps", "data.laden"}, Masked: []string{"once", "data.note"}}}
	data := bson.D{{Key: "laden", Value: int32(1)}, {Key: "note", Value: "x"}, {Key: "price", Value: int64(5)}}
	whole := bson.D{{Key: "_id", Value: "a"}, {Key: "data", Value: data}, {Key: "steps", Value: bson.A{int64(1)}}, {Key: "once", Value: int64(1)}}
	change, err := bson.Marshal(bson.D{
		{Key: "_id", Value: bson.D{{Key: "_data", Value: "82AB"}}},
		{Key: "operationType", Value: "update"},
		{Key: "clusterTime", Value: bson.Timestamp{T: 5, I: 1}},
		{Key: "documentKey", Value: bson.D{{Key: "_id", Value: "a"}}},
		{Key: "fullDocument", Value: whole},
		{Key: "fullDocumentBeforeChange", Value: whole},
		{Key: "updateDescription", Value: bson.D{
			{Key: "updatedFields", Value: bson.D{{Key: "data", Value: data}, {Key: "steps.1", Value: int64(2)}, {Key: "once", Value: int64(2)}, {Key: "data.note", Value: "y"}, {Key: "data.laden.x", Value: "y"}, {Key: "kind", Value: "z"}}},
			{Key: "removedFields", Value: bson.A{"once", "steps.0", "data.laden.plain", "kind"}},
			{Key: "truncatedArrays", Value: bson.A{bson.D{{Key: "field", Value: "steps"}, {Key: "newSize", Value: int32(1)}}}},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	c, is, err := OfChange("shop", "orders", change, images)
	if err != nil || !is {
		t.Fatalf("got %t, %v", is, err)
	}
	shownData := bson.D{{Key: "note", Value: mask}, {Key: "price", Value: int64(5)}}
	shown := bson.D{{Key: "_id", Value: "a"}, {Key: "data", Value: shownData}, {Key: "once", Value: mask}}
	want, err := bson.Marshal(bson.D{
		{Key: "document", Value: shown},
		{Key: "changed", Value: bson.D{{Key: "data", Value: shownData}, {Key: "once", Value: mask}, {Key: "data.note", Value: mask}, {Key: "kind", Value: "z"}}},
		{Key: "removed", Value: bson.A{"once", "kind"}},
		{Key: "before", Value: shown},
	})
	if err != nil {
		t.Fatal(err)
	}
	rest, document, err := parted(want)
	if err != nil || c.Message[Data] != rest || c.Message[Shown] != document {
		t.Errorf("got  %s\n     %s\nwant %s\n     %s, %v", c.Message[Data], c.Message[Shown], rest, document, err)
	}
}
