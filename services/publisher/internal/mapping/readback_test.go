package mapping_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"pgregory.net/rapid"

	"changerelay/pkg/contract"
	"changerelay/services/publisher/internal/mapping"
)

// readBack reads an event's data as a consumer with the driver does.
func readBack(e contract.Event) (bson.Raw, error) {
	if e.ContentType == contract.ContentTypeBSON {
		return bson.Raw(e.Data), bson.Raw(e.Data).Validate()
	}
	if !json.Valid(e.Data) {
		return nil, fmt.Errorf("%s is not JSON", e.Data)
	}
	var document bson.Raw
	err := bson.UnmarshalExtJSON(e.Data, false, &document)
	return document, err
}

// names are those that a reader of Extended JSON gives a meaning, and others
// that readers of JSON stumble over.
var names = []string{
	"$oid", "$date", "$numberInt", "$numberLong", "$numberDouble", "$numberDecimal", "$binary", "$type", "$uuid", "$timestamp", "$regularExpression",
	"$regex", "$options", "$code", "$scope", "$symbol", "$dbPointer", "$undefined", "$minKey", "$maxKey", "$ref", "$id", "$db", "$set", "$each",
	"$", "", ".", "a.b", " ", "\x01", "\u2028", "\"", "\\", "\\u0000", "__proto__", "_id", "constructor", "0", "żółw", "🦭", "a",
}

func anyName() *rapid.Generator[string] {
	return rapid.OneOf(rapid.SampledFrom(names), rapid.Map(rapid.String(), func(s string) string { return strings.ReplaceAll(s, "\x00", "") }))
}

func anyText() *rapid.Generator[string] {
	return rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", "\x00", "5", "NaN", "65539f000102030405060708", "2026-01-01T00:00:00Z", "\u2029"}))
}

// ofEveryType are values of every type of BSON.
func ofEveryType(depth int) *rapid.Generator[any] {
	as := func(g *rapid.Generator[any]) *rapid.Generator[any] { return g }
	kinds := []*rapid.Generator[any]{
		anyText().AsAny(),
		rapid.Int32().AsAny(),
		rapid.Int64().AsAny(),
		rapid.SampledFrom([]any{int64(0), int64(5), int64(-1), int64(math.MaxInt32) + 1, int64(1)<<53 + 1, int64(math.MaxInt64), int64(math.MinInt64)}),
		rapid.Float64().AsAny(),
		rapid.SampledFrom([]any{math.Copysign(0, -1), 1.0, 1e20, 5e-324, math.Inf(1), math.Inf(-1), math.NaN()}),
		rapid.Bool().AsAny(),
		rapid.SampledFrom([]any{nil, bson.Undefined{}, bson.MinKey{}, bson.MaxKey{}}),
		as(rapid.Map(rapid.Int64(), func(n int64) any { return bson.DateTime(n) })),
		as(rapid.Map(rapid.Int64Range(-4e12, 4e12), func(n int64) any { return bson.DateTime(n) })),
		as(rapid.Map(rapid.SliceOfN(rapid.Byte(), 12, 12), func(b []byte) any { return bson.ObjectID(b) })),
		as(rapid.Custom(func(t *rapid.T) any {
			return bson.Binary{Subtype: rapid.Byte().Filter(func(b byte) bool { return b != 2 }).Draw(t, "subtype"), Data: rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")}
		})),
		as(rapid.Custom(func(t *rapid.T) any {
			d, ok := bson.ParseDecimal128FromBigInt(big.NewInt(rapid.Int64().Draw(t, "digits")), rapid.IntRange(bson.MinDecimal128Exp, bson.MaxDecimal128Exp-20).Draw(t, "exponent"))
			if !ok {
				t.Fatal("not a decimal")
			}
			return d
		})),
		as(rapid.Custom(func(t *rapid.T) any {
			d, err := bson.ParseDecimal128(rapid.SampledFrom([]string{"NaN", "Infinity", "-Infinity", "-0", "0E-6176", "9.999999999999999999999999999999999E+6144", "1.10"}).Draw(t, "decimal"))
			if err != nil {
				t.Fatal(err)
			}
			return d
		})),
		as(rapid.Custom(func(t *rapid.T) any {
			return bson.Timestamp{T: rapid.Uint32().Draw(t, "t"), I: rapid.Uint32().Draw(t, "i")}
		})),
		as(rapid.Custom(func(t *rapid.T) any {
			return bson.Regex{Pattern: anyName().Draw(t, "pattern"), Options: rapid.SampledFrom([]string{"", "i", "im", "imsx"}).Draw(t, "options")}
		})),
		as(rapid.Map(anyText(), func(s string) any { return bson.JavaScript(s) })),
		as(rapid.Map(anyText(), func(s string) any { return bson.Symbol(s) })),
		as(rapid.Map(anyText(), func(s string) any { return bson.DBPointer{DB: s, Pointer: id} })),
	}
	if depth > 0 {
		kinds = append(kinds, anyData(depth-1).AsAny(),
			as(rapid.Map(rapid.SliceOfN(ofEveryType(depth-1), 0, 3), func(a []any) any { return bson.A(a) })),
			as(rapid.Custom(func(t *rapid.T) any {
				return bson.CodeWithScope{Code: bson.JavaScript(anyText().Draw(t, "code")), Scope: anyData(depth-1).Draw(t, "scope")}
			})))
	}
	return rapid.OneOf(kinds...)
}

func anyData(depth int) *rapid.Generator[bson.D] {
	return rapid.Custom(func(t *rapid.T) bson.D {
		document := bson.D{}
		for range rapid.IntRange(0, 4).Draw(t, "fields") {
			document = append(document, bson.E{Key: anyName().Draw(t, "name"), Value: ofEveryType(depth).Draw(t, "value")})
		}
		return document
	})
}

func marshal(t interface{ Fatal(args ...any) }, value any) bson.Raw {
	raw, err := bson.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// What is read back has every type, name and byte of what was written.
func TestData_OfAnEventReadsBackAsItWasWritten(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		want := marshal(r, anyData(3).Draw(r, "data"))
		got, carries, err := newEvents(standard).Map(inserted(t, with("data", want)))
		if err != nil || !carries {
			r.Fatalf("Map = %v, %v, want an event", carries, err)
		}
		if read, err := readBack(got); err != nil || !bytes.Equal(read, want) {
			r.Fatalf("%s %q\nreads back as %s (%v),\nwant          %s", got.ContentType, got.Data, read, err, want)
		}
	})
}

func TestData_OfADocumentChangeReadsBackAsItWasWritten(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		key := bson.D{{Key: "_id", Value: id}}
		document, earlier := marshal(r, append(key, anyData(2).Draw(r, "document")...)), marshal(r, anyData(2).Draw(r, "before"))
		fields := marshal(r, anyData(2).Draw(r, "changed"))
		removed := bson.A{anyName().Draw(r, "removed"), "second"}
		truncated := bson.A{bson.D{{Key: "field", Value: "lines"}, {Key: "newSize", Value: int32(2)}}}
		got, carries, err := documentsHiding(t, nil, nil).Map(changed(t, "update",
			bson.E{Key: "fullDocument", Value: document}, bson.E{Key: "fullDocumentBeforeChange", Value: earlier},
			bson.E{Key: "updateDescription", Value: bson.D{{Key: "updatedFields", Value: fields}, {Key: "removedFields", Value: removed}, {Key: "truncatedArrays", Value: truncated}}}))
		if err != nil || !carries {
			r.Fatalf("Map = %v, %v, want an event", carries, err)
		}
		want := marshal(r, bson.D{
			{Key: "document", Value: document},
			{Key: "changed", Value: fields},
			{Key: "removed", Value: removed},
			{Key: "truncated", Value: truncated},
			{Key: "before", Value: earlier},
		})
		if read, err := readBack(got); err != nil || !bytes.Equal(read, want) {
			r.Fatalf("%s %q\nreads back as %s (%v),\nwant          %s", got.ContentType, got.Data, read, err, want)
		}
	})
}

// A document that Extended JSON would take for something else goes as BSON, and
// what is hidden is hidden there, too.
func TestData_InBSONHidesWhatIsHidden(t *testing.T) {
	t.Parallel()
	secret := bson.D{{Key: "$oid", Value: "text"}, {Key: "card", Value: bson.A{bson.D{{Key: "number", Value: "4111"}, {Key: "holder", Value: "Ann"}}}}, {Key: "pin", Value: int32(1)}}
	shown := bson.D{{Key: "$oid", Value: "text"}, {Key: "card", Value: bson.A{bson.D{{Key: "holder", Value: "Ann"}}}}, {Key: "pin", Value: "***"}}
	edit := bson.E{Key: "updateDescription", Value: bson.D{
		{Key: "updatedFields", Value: bson.D{{Key: "card.0.number", Value: "4111"}, {Key: "pin", Value: int32(1)}, {Key: "status", Value: "paid"}}},
		{Key: "removedFields", Value: bson.A{"due", "card.0.number"}},
		{Key: "truncatedArrays", Value: bson.A{bson.D{{Key: "field", Value: "card.number"}, {Key: "newSize", Value: int32(2)}}}},
	}}
	got, _, err := documentsHiding(t, []string{"card.number"}, []string{"pin"}).Map(changed(t, "update", bson.E{Key: "fullDocument", Value: secret}, edit))
	if err != nil || got.ContentType != contract.ContentTypeBSON || got.DataSchema != contract.DocumentChange {
		t.Fatalf("Map = %+v, %v, want a document change in BSON", got, err)
	}
	want := marshal(t, bson.D{{Key: "document", Value: shown}, {Key: "changed", Value: bson.D{{Key: "pin", Value: "***"}, {Key: "status", Value: "paid"}}}, {Key: "removed", Value: bson.A{"due"}}})
	if read, err := readBack(got); err != nil || !bytes.Equal(read, want) {
		t.Errorf("data is %s (%v), want %s", read, err, want)
	}
	hidden, err := mapping.NewHidden([]string{"data.card.number"}, []string{"data.pin"})
	if err != nil {
		t.Fatal(err)
	}
	o := plainOptions
	o.Hidden = hidden
	got, _, err = mapping.NewEvents(o, standard, mapping.RefuseChanges).Map(inserted(t, with("data", secret)))
	if read, readErr := readBack(got); err != nil || readErr != nil || got.ContentType != contract.ContentTypeBSON || !bytes.Equal(read, marshal(t, shown)) {
		t.Errorf("data is %s %s (%v, %v), want %s in BSON", got.ContentType, read, err, readErr, marshal(t, shown))
	}
}

// Deep data is BSON, since readers of JSON take fewer levels; data that is
// deeper than a server stores is refused.
func TestData_DeepIsInBSONAndTooDeepIsRefused(t *testing.T) {
	t.Parallel()
	nested := func(levels int) bson.D {
		document := bson.D{{Key: "at", Value: bson.DateTime(math.MaxInt64)}}
		for range levels {
			document = bson.D{{Key: "d", Value: document}}
		}
		return document
	}
	for levels, want := range map[int]string{90: contract.ContentTypeJSON, 110: contract.ContentTypeBSON, 195: contract.ContentTypeBSON} {
		got, _, err := newEvents(standard).Map(inserted(t, with("data", nested(levels))))
		if read, readErr := readBack(got); err != nil || readErr != nil || got.ContentType != want || !bytes.Equal(read, marshal(t, nested(levels))) {
			t.Errorf("%d levels: got %s (%v, %v), want it read back from %s", levels, got.ContentType, err, readErr, want)
		}
	}
	if _, _, err := newEvents(standard).Map(inserted(t, with("data", nested(210)))); err == nil || !strings.Contains(err.Error(), "nested more deeply") {
		t.Errorf("210 levels: got %v, want a refusal of the depth", err)
	}
}
