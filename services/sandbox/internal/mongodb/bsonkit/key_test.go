package bsonkit_test

import (
	"bytes"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"pgregory.net/rapid"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
)

func TestKey_KeysSortLikeTheServersOrder(t *testing.T) {
	t.Parallel()
	lines := ascending(t)
	for i, line := range lines {
		for j, other := range lines {
			for _, a := range line {
				for _, b := range other {
					if got, want := bytes.Compare(bsonkit.AppendKey(nil, a), bsonkit.AppendKey(nil, b)), sign(i-j); got != want {
						t.Errorf("keys of %s and %s: got %d, want %d", bsonkit.Describe(a), bsonkit.Describe(b), got, want)
					}
				}
			}
		}
	}
}

func TestKey_KeysAgreeWithCompare(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, b := anyValue().Draw(t, "a"), anyValue().Draw(t, "b")
		want := bsonkit.Compare(a, b)
		x, y := bsonkit.AppendKey(nil, a), bsonkit.AppendKey(nil, b)
		if got := bytes.Compare(x, y); got != want {
			t.Fatalf("ascending: got %d, want %d: %x and %x", got, want, x, y)
		}
		if got := bytes.Compare(bsonkit.AppendKeyDesc(nil, a), bsonkit.AppendKeyDesc(nil, b)); got != -want {
			t.Fatalf("descending: got %d, want %d", got, -want)
		}
		if want != 0 && (bytes.HasPrefix(x, y) || bytes.HasPrefix(y, x)) {
			t.Fatalf("the key of one value begins that of another: %x and %x", x, y)
		}
	})
}

func TestKey_JoinedKeysSortFieldByField(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var a, b, c, d bson.RawValue
		for name, v := range map[string]*bson.RawValue{"a": &a, "b": &b, "c": &c, "d": &d} {
			*v = anyValue().Draw(t, name)
		}
		want := bsonkit.Compare(a, c)
		if want == 0 {
			want = -bsonkit.Compare(b, d)
		}
		x := bsonkit.AppendKeyDesc(bsonkit.AppendKey(nil, a), b)
		y := bsonkit.AppendKeyDesc(bsonkit.AppendKey(nil, c), d)
		if got := bytes.Compare(x, y); got != want {
			t.Fatalf("got %d, want %d", got, want)
		}
	})
}

func TestKey_KeyAfterIsBehindEverythingThatBeginsWithTheKey(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.SliceOfN(rapid.SampledFrom([]byte{0, 1, 0xfe, 0xff}), 1, 3).Draw(t, "key")
		other := rapid.SliceOfN(rapid.SampledFrom([]byte{0, 1, 0xfe, 0xff}), 0, 5).Draw(t, "other")
		after := bsonkit.KeyAfter(key)
		within := bytes.Compare(other, key) >= 0 && (after == nil || bytes.Compare(other, after) < 0)
		if begins := bytes.HasPrefix(other, key); within != begins {
			t.Fatalf("key %x, after %x, other %x: within %v, begins %v", key, after, other, within, begins)
		}
	})
}
