package bsonkit_test

import (
	"math"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"pgregory.net/rapid"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
)

// document reads relaxed or canonical extended JSON.
func document(t testing.TB, json string) bson.Raw {
	t.Helper()
	var d bson.D
	if err := bson.UnmarshalExtJSON([]byte(json), false, &d); err != nil {
		t.Fatalf("extended JSON %s: %v", json, err)
	}
	raw, err := bson.Marshal(d)
	if err != nil {
		t.Fatalf("marshal %s: %v", json, err)
	}
	return raw
}

// value reads one value of extended JSON.
func value(t testing.TB, json string) bson.RawValue {
	t.Helper()
	v, _ := bsonkit.Get(document(t, `{"v":`+json+`}`), "v")
	return v
}

// anyNumber draws numbers of all types, near each other often enough to collide.
func anyNumber() *rapid.Generator[bson.RawValue] {
	small := rapid.Int64Range(-3, 3)
	edges := rapid.SampledFrom([]int64{math.MinInt64, math.MinInt64 + 1, -1 << 53, 1<<53 + 1, 1 << 53, math.MaxInt64 - 1, math.MaxInt64})
	whole := rapid.OneOf(small, edges, rapid.Int64())
	float := rapid.OneOf(
		rapid.Map(whole, func(i int64) float64 { return float64(i) }),
		rapid.Map(small, func(i int64) float64 { return float64(i) + 0.5 }),
		rapid.SampledFrom([]float64{0.1, -0.1, 1e300, -1e300, 5e-324, math.MaxFloat64, math.Inf(1), math.Inf(-1), math.NaN(), math.Copysign(0, -1)}),
		rapid.Float64(),
	)
	decimal := rapid.OneOf(
		rapid.SampledFrom([]string{
			"0.1", "0.10", "0.1000000000000000055511151231257827", "1E+3", "1000", "-1", "-1.0", "NaN", "Infinity", "-Infinity", "0", "-0", "0E+100",
			"9223372036854775807", "9223372036854775807.5", "9223372036854775808", "1E+6144", "-1E-6176", "9007199254740992.5",
			"18446744073709551616", "18446744073709551617",
		}),
		rapid.StringMatching(`-?[0-9]{1,20}\.[0-9]{1,12}`),
		rapid.StringMatching(`-?[0-9]{1,5}E-?[0-9]{1,2}`),
	)
	return rapid.OneOf(
		rapid.Map(rapid.OneOf(rapid.Int32Range(-3, 3), rapid.Int32()), bsonkit.Int32),
		rapid.Map(whole, bsonkit.Int64),
		rapid.Map(float, bsonkit.Double),
		rapid.Map(decimal, func(s string) bson.RawValue {
			d, err := bson.ParseDecimal128(s)
			if err != nil {
				return bsonkit.Null() // more digits than a decimal has
			}
			return bsonkit.Decimal(d)
		}),
	)
}

func encode(v any) bson.RawValue {
	t, b, err := bson.MarshalValue(v)
	if err != nil {
		panic(err)
	}
	return bson.RawValue{Type: t, Value: b}
}

func anyScalar() *rapid.Generator[bson.RawValue] {
	text := rapid.StringOfN(rapid.SampledFrom([]rune{0, 1, 'a', 'b', 'é', 0xff}), 0, 4, -1)
	bytes := rapid.SliceOfN(rapid.Byte(), 0, 4)
	plain := rapid.StringMatching(`[ab]{0,3}`)
	return rapid.OneOf(
		anyNumber(),
		rapid.Map(text, bsonkit.String),
		rapid.Map(text, func(s string) bson.RawValue { return encode(bson.Symbol(s)) }),
		rapid.Map(text, func(s string) bson.RawValue { return encode(bson.JavaScript(s)) }),
		rapid.Map(rapid.Bool(), bsonkit.Boolean),
		rapid.Map(rapid.Int64(), bsonkit.DateMillis),
		rapid.Just(bsonkit.Null()),
		rapid.Just(bson.RawValue{}),
		rapid.Just(bson.RawValue{Type: bson.TypeUndefined}),
		rapid.Just(bson.RawValue{Type: bson.TypeMinKey}),
		rapid.Just(bson.RawValue{Type: bson.TypeMaxKey}),
		rapid.Custom(func(t *rapid.T) bson.RawValue {
			return bsonkit.Timestamp(bson.Timestamp{T: rapid.Uint32().Draw(t, "t"), I: rapid.Uint32().Draw(t, "i")})
		}),
		rapid.Custom(func(t *rapid.T) bson.RawValue {
			subtype := rapid.SampledFrom([]byte{0, 2, 4, 128}).Draw(t, "subtype")
			return encode(bson.Binary{Subtype: subtype, Data: bytes.Draw(t, "data")})
		}),
		rapid.Custom(func(t *rapid.T) bson.RawValue {
			return encode(bson.Regex{Pattern: plain.Draw(t, "pattern"), Options: rapid.SampledFrom([]string{"", "i", "im"}).Draw(t, "options")})
		}),
		rapid.Custom(func(t *rapid.T) bson.RawValue {
			var id bson.ObjectID
			id[11] = rapid.Byte().Draw(t, "last")
			return bsonkit.ObjectID(id)
		}),
		rapid.Custom(func(t *rapid.T) bson.RawValue {
			return encode(bson.DBPointer{DB: plain.Draw(t, "db"), Pointer: bson.ObjectID{1}})
		}),
		rapid.Custom(func(t *rapid.T) bson.RawValue {
			return encode(bson.CodeWithScope{Code: bson.JavaScript(plain.Draw(t, "code")), Scope: bson.D{{Key: "x", Value: 1}}})
		}),
	)
}

// anyValue draws values of every type, with documents and arrays in them.
func anyValue() *rapid.Generator[bson.RawValue] { return valueOfDepth(2) }

func valueOfDepth(depth int) *rapid.Generator[bson.RawValue] {
	if depth == 0 {
		return anyScalar()
	}
	inner := rapid.SliceOfN(valueOfDepth(depth-1), 0, 3)
	return rapid.OneOf(
		anyScalar(),
		rapid.Map(inner, bsonkit.Array),
		rapid.Custom(func(t *rapid.T) bson.RawValue {
			b := bsonkit.NewBuilder(nil)
			for _, v := range inner.Draw(t, "fields") {
				b.Append(rapid.SampledFrom([]string{"a", "ab", "b", ""}).Draw(t, "name"), v)
			}
			return bsonkit.Document(b.Finish())
		}),
	)
}

func TestValue_MadeValuesAreWhatTheDriverMakes(t *testing.T) {
	t.Parallel()
	id := bson.NewObjectID()
	now := time.UnixMilli(1_600_000_000_123)
	decimal, err := bson.ParseDecimal128("12.340")
	if err != nil {
		t.Fatal(err)
	}
	for name, pair := range map[string]struct {
		got  bson.RawValue
		want any
	}{
		"int32":     {bsonkit.Int32(-7), int32(-7)},
		"int64":     {bsonkit.Int64(-7), int64(-7)},
		"double":    {bsonkit.Double(1.5), 1.5},
		"decimal":   {bsonkit.Decimal(decimal), decimal},
		"boolean":   {bsonkit.Boolean(true), true},
		"string":    {bsonkit.String("h\x00é"), "h\x00é"},
		"date":      {bsonkit.Date(now), now},
		"timestamp": {bsonkit.Timestamp(bson.Timestamp{T: 5, I: 6}), bson.Timestamp{T: 5, I: 6}},
		"object id": {bsonkit.ObjectID(id), id},
		"array":     {bsonkit.Array([]bson.RawValue{bsonkit.Int32(1), {}, bsonkit.String("x")}), bson.A{int32(1), nil, "x"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if want := encode(pair.want); !pair.got.Equal(want) {
				t.Errorf("got %v of %v, want %v of %v", pair.got.Value, pair.got.Type, want.Value, want.Type)
			}
		})
	}
}
