// Package payload makes payloads that are hard to carry: every BSON type that
// applications use, numbers at their ends, dates before 1970, Unicode, nesting,
// and field names that mean something to MongoDB, to JSON, or to nobody.
package payload

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// names are field names that are hard to carry.
var names = []string{
	"plain", "a.b", ".", "$x", "$each", "$set", "x$", "", " ", "_id", "_relay", "data", "__proto__", "0", "Grüße", "名前", "\"quoted\"", "back\\slash", "tab\there",
	"line\u2028end", "🙂", "constructor", strings.Repeat("n", 300),
}

// reserved are names that Extended JSON gives a meaning.
var reserved = []string{"$oid", "$date", "$numberLong", "$numberDecimal", "$binary", "$timestamp", "$code", "$undefined", "$minKey"}

// texts are strings that are hard to carry.
var texts = []string{
	"", " ", "Ünïcödé", "日本語", "👩‍👩‍👧‍👦", "null", "true", "1", "1e3", "$name", "a.b", "\x00inside\x00", "\u2028\u2029", "\ufeffmark", "</script>", `"\`, "\r\n\t",
	"\u202eright to left",
}

const (
	// deepest and widest bound a payload.
	deepest = 4
	widest  = 4
)

// Names says which field names a payload may have.
type Names int

const (
	// AnyName is any name that a server takes in an insert.
	AnyName Names = iota
	// StorableNames do not begin with $: a server before 5.0 takes those in an insert,
	// and refuses them in an update, so no read model can hold them.
	StorableNames
)

// New returns a payload of up to widest fields a level.
func New(rng *rand.Rand, names Names) bson.D { return document(rng, names, 0) }

func document(rng *rand.Rand, names Names, depth int) bson.D {
	d := bson.D{}
	taken := make(map[string]bool)
	for range rng.IntN(widest + 1) {
		name := fieldName(rng)
		if taken[name] || names == StorableNames && strings.HasPrefix(name, "$") {
			continue
		}
		taken[name] = true
		d = append(d, bson.E{Key: name, Value: value(rng, names, depth)})
	}
	return d
}

func fieldName(rng *rand.Rand) string {
	i := rng.IntN(len(names) + len(reserved))
	if i >= len(names) {
		return reserved[i-len(names)]
	}
	return names[i]
}

// makers make one value each, of one type each.
var makers = []func(rng *rand.Rand) any{
	func(rng *rand.Rand) any { return texts[rng.IntN(len(texts))] },
	func(rng *rand.Rand) any { return pick[int32](rng, 0, 1, -1, math.MaxInt32, math.MinInt32) },
	func(rng *rand.Rand) any {
		return pick[int64](rng, 0, 5, -5, 1<<31, 1<<53, 1<<53+1, math.MaxInt64, math.MinInt64)
	},
	func(rng *rand.Rand) any {
		return pick(rng, 0, 1, -1, 0.1, 5e-324, math.MaxFloat64, 1<<53, math.Inf(1), math.Inf(-1), math.NaN(), math.Copysign(0, -1), 1e21, 123456789.125)
	},
	func(rng *rand.Rand) any { return decimal(rng) },
	func(rng *rand.Rand) any { return date(rng) },
	func(rng *rand.Rand) any {
		var id bson.ObjectID
		for i := range id {
			id[i] = byte(rng.Uint32())
		}
		return id
	},
	func(rng *rand.Rand) any { return binary(rng) },
	func(rng *rand.Rand) any { return rng.IntN(2) == 0 },
	func(*rand.Rand) any { return nil },
	func(rng *rand.Rand) any { return bson.Timestamp{T: rng.Uint32(), I: rng.Uint32()} },
	func(*rand.Rand) any { return bson.Regex{Pattern: `^a/b\.c$`, Options: "im"} },
}

// value draws a value; one in six nests others, down to deepest.
func value(rng *rand.Rand, names Names, depth int) any {
	const nesting = 1.0 / 6
	if depth == deepest || rng.Float64() >= nesting {
		return makers[rng.IntN(len(makers))](rng)
	}
	if rng.IntN(2) == 0 {
		return document(rng, names, depth+1)
	}
	list := bson.A{}
	for range rng.IntN(widest + 1) {
		list = append(list, value(rng, names, depth+1))
	}
	return list
}

func pick[T any](rng *rand.Rand, choices ...T) T { return choices[rng.IntN(len(choices))] }

func decimal(rng *rand.Rand) bson.Decimal128 {
	text := pick(rng, "0", "1.50", "-1.5E-10", "9.999999999999999999999999999999999E+6144", "NaN", "Infinity", "-Infinity", "0.10", "12345678901234567890.123")
	d, err := bson.ParseDecimal128(text)
	if err != nil {
		panic(fmt.Sprintf("payload: %q is no decimal: %v", text, err))
	}
	return d
}

func date(rng *rand.Rand) bson.DateTime {
	return bson.NewDateTimeFromTime(pick(rng,
		time.Unix(0, 0),
		time.Date(1815, 6, 18, 11, 30, 0, 1e6, time.UTC),
		time.Date(1969, 12, 31, 23, 59, 59, 999e6, time.UTC),
		time.Date(2024, 2, 29, 12, 0, 0, 0, time.UTC),
		time.Date(9999, 12, 31, 23, 59, 59, 999e6, time.UTC),
		time.Date(12_345, 1, 1, 0, 0, 0, 0, time.UTC),
		time.UnixMilli(rng.Int64N(4e12)-2e12),
	))
}

func binary(rng *rand.Rand) bson.Binary {
	data := make([]byte, pick(rng, 0, 1, 16, 300))
	for i := range data {
		data[i] = byte(rng.Uint32())
	}
	subtype := pick[byte](rng, 0, 5, 128)
	if len(data) == 16 {
		subtype = 4
	}
	return bson.Binary{Subtype: subtype, Data: data}
}
