package payload

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// walk calls each for every field and element of a payload.
func walk(v any, each func(name string, v any)) {
	switch v := v.(type) {
	case bson.D:
		for _, e := range v {
			each(e.Key, e.Value)
			walk(e.Value, each)
		}
	case bson.A:
		for _, e := range v {
			each("", e)
			walk(e, each)
		}
	}
}

func TestNew_MakesEveryTypeAndEveryName(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 1))
	kinds, seen := map[string]bool{}, map[string]bool{}
	for range 20_000 {
		walk(New(rng, AnyName), func(name string, v any) { kinds[fmt.Sprintf("%T", v)] = true; seen[name] = true })
	}
	for _, want := range []any{
		"", int32(0), int64(0), 0.0, bson.Decimal128{}, bson.DateTime(0), bson.ObjectID{}, bson.Binary{}, true, nil, bson.Timestamp{}, bson.Regex{}, bson.D{}, bson.A{},
	} {
		if !kinds[fmt.Sprintf("%T", want)] {
			t.Errorf("type %T: none of it", want)
		}
	}
	for _, name := range slices.Concat(names, reserved) {
		if !seen[name] {
			t.Errorf("name %q: none of it", name)
		}
	}
}

func TestNew_MakesTheSameOfTheSameSeed(t *testing.T) {
	t.Parallel()
	for seed := range uint64(50) {
		a, _ := bson.Marshal(New(rand.New(rand.NewPCG(seed, 1)), AnyName))
		b, _ := bson.Marshal(New(rand.New(rand.NewPCG(seed, 1)), AnyName))
		if !reflect.DeepEqual(a, b) {
			t.Errorf("seed %d: got two payloads", seed)
		}
	}
}

func TestNew_LeavesOutNamesThatNoReadModelCanHold(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 1))
	for range 5000 {
		walk(New(rng, StorableNames), func(name string, _ any) {
			if strings.HasPrefix(name, "$") {
				t.Fatalf("name %q: got it, want none that begins with $", name)
			}
		})
	}
}
