package changestream

import (
	"errors"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

func part(t *testing.T, n, of int, fields ...bson.E) bson.Raw {
	t.Helper()
	raw, err := bson.Marshal(append(bson.D{
		{Key: "_id", Value: bson.D{{Key: "_data", Value: n}}},
		{Key: "splitEvent", Value: bson.D{{Key: "fragment", Value: n}, {Key: "of", Value: of}}},
	}, fields...))
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func TestSplit_TheFragmentsOfAChangeBecomeOneWithTheLastToken(t *testing.T) {
	t.Parallel()
	var f fragments
	for _, raw := range []bson.Raw{
		part(t, 1, 3, bson.E{Key: "operationType", Value: "update"}),
		part(t, 2, 3, bson.E{Key: "fullDocument", Value: bson.D{{Key: "text", Value: "after"}}}),
	} {
		if whole, err := f.add(raw); whole != nil || err != nil {
			t.Fatalf("add = %v, %v, want nothing yet", whole, err)
		}
	}
	whole, err := f.add(part(t, 3, 3, bson.E{Key: "fullDocumentBeforeChange", Value: bson.D{{Key: "text", Value: "before"}}}))
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"operationType": "update","fullDocument": {"text": "after"},"_id": {"_data": {"$numberInt":"3"}},"fullDocumentBeforeChange": {"text": "before"}}`
	if err := whole.Validate(); err != nil || whole.String() != want {
		t.Errorf("the change is %s, %v, want %s", whole, err, want)
	}
	plain, _ := bson.Marshal(bson.D{{Key: "operationType", Value: "insert"}})
	if got, err := f.add(plain); err != nil || got.String() != bson.Raw(plain).String() {
		t.Errorf("the next change is %s, %v, want it as it is", got, err)
	}
}

func TestSplit_FragmentsThatDoNotFollowEachOtherAreRefused(t *testing.T) {
	t.Parallel()
	plain, _ := bson.Marshal(bson.D{{Key: "operationType", Value: "insert"}})
	for name, raws := range map[string][]bson.Raw{
		"begins in the middle":         {part(t, 2, 3)},
		"one is missing":               {part(t, 1, 3), part(t, 3, 3)},
		"another change is in between": {part(t, 1, 2), plain},
		"more than there are":          {part(t, 1, 0)},
	} {
		var f fragments
		var err error
		for _, raw := range raws {
			_, err = f.add(raw)
		}
		if !errors.Is(err, errFragments) {
			t.Errorf("%s: add = %v, want it refused", name, err)
		}
	}
}
