package mapping

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"pgregory.net/rapid"
)

// oracle is the driver's own writer, with integers of 64 bits spelled out.
func oracle(document []byte) ([]byte, error) {
	var d bson.D
	if err := bson.Unmarshal(document, &d); err != nil {
		return nil, err
	}
	return bson.MarshalExtJSON(spelled(d), false, false)
}

func spelled(v any) any {
	switch v := v.(type) {
	case bson.D:
		for i := range v {
			v[i].Value = spelled(v[i].Value)
		}
	case bson.A:
		for i := range v {
			v[i] = spelled(v[i])
		}
	case bson.CodeWithScope:
		return bson.CodeWithScope{Code: v.Code, Scope: spelled(v.Scope)}
	case int64:
		return bson.D{{Key: "$numberLong", Value: strconv.FormatInt(v, 10)}}
	}
	return v
}

func TestJSON_JSONIsWhatTheDriverWrites(t *testing.T) {
	t.Parallel()
	id := bson.ObjectID{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}
	decimal, err := bson.ParseDecimal128("-1.234E+56")
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]any{
		"a string":                      "plain",
		"an empty string":               "",
		"a string with escapes":         "\"\\\b\f\n\r\t\x00\x01\x1f\x7f/<>&'",
		"a string of other languages":   "żółw 日本 🦭 \u2028\u2029 \ufffd",
		"a string that is not UTF-8":    "a\xff\xc3(\xe2\x28b",
		"small and large integers":      bson.A{int32(math.MinInt32), int32(0), int64(math.MaxInt64), int64(math.MinInt64)},
		"whole and broken doubles":      bson.A{0.0, math.Copysign(0, -1), 1.0, -1.5, 0.1, 1e20, 1e21, 1e-7, math.MaxFloat64, math.SmallestNonzeroFloat64},
		"doubles that are not numbers":  bson.A{math.NaN(), math.Inf(1), math.Inf(-1)},
		"truth and nothing":             bson.A{true, false, nil},
		"an object id":                  id,
		"a date":                        bson.NewDateTimeFromTime(time.Date(2026, 11, 21, 18, 30, 0, 123e6, time.UTC)),
		"a date on the second":          bson.NewDateTimeFromTime(time.Date(2026, 11, 21, 18, 30, 0, 0, time.UTC)),
		"dates out of range":            bson.A{bson.DateTime(-1), bson.DateTime(math.MinInt64), bson.DateTime(math.MaxInt64)},
		"the first and last dates":      bson.A{bson.DateTime(0), bson.NewDateTimeFromTime(time.Date(9999, 12, 31, 23, 59, 59, 999e6, time.UTC))},
		"binaries":                      bson.A{bson.Binary{Subtype: 0, Data: []byte{}}, bson.Binary{Subtype: 4, Data: make([]byte, 16)}, bson.Binary{Subtype: 0x80, Data: []byte("x")}, bson.Binary{Subtype: 2, Data: []byte("old")}},
		"a decimal":                     decimal,
		"a timestamp":                   bson.Timestamp{T: math.MaxUint32, I: 1},
		"a regular expression":          bson.Regex{Pattern: `^a"/b$`, Options: "xim"},
		"code, with and without scope":  bson.A{bson.JavaScript("f(\"\")"), bson.CodeWithScope{Code: "g", Scope: bson.D{{Key: "x", Value: int32(1)}, {Key: "y", Value: bson.D{}}}}},
		"a symbol":                      bson.Symbol("s\"y"),
		"a pointer":                     bson.DBPointer{DB: "shop.events", Pointer: id},
		"undefined, least and greatest": bson.A{bson.Undefined{}, bson.MinKey{}, bson.MaxKey{}},
		"documents in arrays":           bson.A{bson.D{}, bson.A{}, bson.D{{Key: "a.b", Value: bson.A{bson.D{{Key: "c$", Value: int32(1)}, {Key: "$ref", Value: "x"}}}}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			document, err := bson.Marshal(bson.D{{Key: "v", Value: value}, {Key: "after \"", Value: int32(1)}})
			if err != nil {
				t.Fatal(err)
			}
			got, err := appendJSON(nil, document, nil)
			if err != nil {
				t.Fatalf("appendJSON: %v", err)
			}
			if want, err := oracle(document); err != nil || string(got) != string(want) {
				t.Errorf("got  %s\nwant %s (%v)", got, want, err)
			}
		})
	}
}

func TestJSON_JSONOfAnyDocumentIsWhatTheDriverWrites(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		document, err := bson.Marshal(anyDocument(3).Draw(t, "document"))
		if err != nil {
			t.Skip("the driver does not encode it") // keys with a zero byte
		}
		got, err := appendJSON(nil, document, nil)
		if errors.Is(err, errNotInJSON) {
			t.Skip("it goes as BSON")
		}
		if err != nil {
			t.Fatalf("appendJSON: %v", err)
		}
		want, err := oracle(document)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Fatalf("got  %s\nwant %s", got, want)
		}
	})
}

func anyDocument(depth int) *rapid.Generator[bson.D] {
	return rapid.Custom(func(t *rapid.T) bson.D {
		document := bson.D{}
		for range rapid.IntRange(0, 4).Draw(t, "fields") {
			document = append(document, bson.E{Key: rapid.String().Draw(t, "key"), Value: anyValue(depth).Draw(t, "value")})
		}
		return document
	})
}

func anyValue(depth int) *rapid.Generator[any] {
	kinds := []*rapid.Generator[any]{
		rapid.String().AsAny(),
		rapid.Int32().AsAny(),
		rapid.Int64().AsAny(),
		rapid.Float64().AsAny(),
		rapid.Bool().AsAny(),
		rapid.Just[any](nil),
		rapid.Map(rapid.Int64(), func(n int64) any { return bson.DateTime(n) }),
		rapid.Map(rapid.Int64Range(0, 4e12), func(n int64) any { return bson.DateTime(n) }),
		rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) any { return bson.Binary{Subtype: 5, Data: b} }),
		rapid.Map(rapid.Uint64(), func(n uint64) any { return bson.NewDecimal128(n, n) }),
	}
	if depth > 0 {
		kinds = append(kinds, anyDocument(depth-1).AsAny(),
			rapid.Map(rapid.SliceOfN(anyValue(depth-1), 0, 3), func(a []any) any { return bson.A(a) }))
	}
	return rapid.OneOf(kinds...)
}

// framed makes a document of the bytes of its elements, so that a fuzzer need
// not find out about lengths.
func framed(elements []byte) []byte {
	document := binary.LittleEndian.AppendUint32(nil, uint32(len(elements)+5))
	return append(append(document, elements...), 0)
}

// FuzzJSON feeds the writer any bytes: it never panics, what it writes is JSON,
// and what the driver writes too it writes alike, but for the name in a
// DBPointer, which the driver does not escape.
func FuzzJSON(f *testing.F) {
	for _, value := range []any{"text", 1.5, bson.A{int32(1)}, bson.Regex{Pattern: "a", Options: "i"}, bson.CodeWithScope{Code: "c", Scope: bson.D{}}} {
		document, err := bson.Marshal(bson.D{{Key: "v", Value: value}})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(document[4 : len(document)-1])
	}
	f.Fuzz(func(t *testing.T, elements []byte) {
		document := framed(elements)
		got, err := appendJSON(nil, document, nil)
		if err != nil {
			return
		}
		if !json.Valid(got) {
			t.Fatalf("%x became %s, which is not JSON", document, got)
		}
		if want, err := oracle(document); err == nil && !bytes.Contains(got, []byte(`"$dbPointer"`)) && !bytes.Equal(got, want) {
			t.Fatalf("%x became\n%s\nbut the driver writes\n%s", document, got, want)
		}
	})
}

func BenchmarkJSON(b *testing.B) {
	document, err := bson.Marshal(bson.D{
		{Key: "customer", Value: "customer-000123"},
		{Key: "total", Value: 12.5},
		{Key: "items", Value: bson.A{bson.D{{Key: "sku", Value: "sku-1"}, {Key: "count", Value: int32(2)}}}},
		{Key: "placedAt", Value: bson.NewDateTimeFromTime(time.Now())},
		{Key: "note", Value: strings.Repeat("text ", 60)},
	})
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(document)))
	b.ReportAllocs()
	buffer := make([]byte, 0, 2*len(document))
	for b.Loop() {
		if _, err := appendJSON(buffer, document, nil); err != nil {
			b.Fatal(err)
		}
	}
}
