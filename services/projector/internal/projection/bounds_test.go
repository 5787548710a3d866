package projection_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/projection"
)

func TestExpression_ListsAMapInTheOrderOfItsKeys(t *testing.T) {
	t.Parallel()
	const data = `{"m":{"d":4,"b":2,"e":5,"a":1,"c":3,"f":6}}`
	for expression, want := range map[string]string{
		`keys(data.m)`: `["a","b","c","d","e","f"]`, `values(data.m)`: `[1,2,3,4,5,6]`, `toPairs(data.m)[1]`: `["b",2]`,
	} {
		for range 20 {
			got, err := decide(t, expression, data)
			if err != nil {
				t.Fatal(err)
			}
			if text := strings.ReplaceAll(plain(got), " ", ""); text != want {
				t.Fatalf("%s: got %s, want %s", expression, text, want)
			}
		}
	}
}

func plain(v bson.RawValue) string {
	text, err := bson.MarshalExtJSON(bson.D{{Key: "v", Value: v}}, false, false)
	if err != nil {
		return err.Error()
	}
	return strings.TrimSuffix(strings.TrimPrefix(string(text), `{"v":`), "}")
}

func TestExpression_RefusesAnIntegerThatOverflows(t *testing.T) {
	t.Parallel()
	const data = `{"max":{"$numberLong":"9223372036854775807"},"min":{"$numberLong":"-9223372036854775808"},"one":1,"list":[{"n":{"$numberLong":"9223372036854775807"}},{"n":1}],"inf":{"$numberDouble":"Infinity"},"small":-2147483648}`
	for _, expression := range []string{
		`data.max + data.one`, `data.min - data.one`, `data.min + data.min`, `data.max * 2`, `data.min * -1`, `-data.min`, `data.max - data.min`, `sum(data.list, .n)`,
		`sum(map(data.list, .n))`, `reduce(data.list, #acc + .n, 0)`, `int(data.inf)`, `int(1e300)`, `map(data.list, .n * 3)`,
		`abs(data.min)`, `bitshl(data.one, 63)`, `bitshl(data.max, 1)`, `bitshl(data.min, 64)`, `-(data.min)`, `duration("2000000h") * 1000000`, `duration("2000000h") + duration("2000000h")`,
		`int("9223372036854775808")`, `fromJSON("9223372036854775808")`, `event.time.AddDate(9223372036854775807, 0, 0)`, `date("2026-01-01").Sub(date("1000-01-01"))`,
		`date("2026-01-01") - date("1000-01-01")`, `date("1000-01-01").UnixNano()`,
	} {
		if got, err := decide(t, expression, data); err == nil || !strings.Contains(err.Error(), "integer overflow") {
			t.Errorf("%s: got %s and %v, want an overflow", expression, got, err)
		}
	}
	for expression, want := range map[string]string{
		`data.max - 1`: "9223372036854775806", `data.min + 1`: "-9223372036854775807", `data.max * -1`: "-9223372036854775807",
		`data.min * 1`: "-9223372036854775808", `sum([1, 2])`: "3", `-data.one`: "-1", `sum(data.list, 1.5)`: "3.0", `int(2.9)`: "2", `int("7")`: "7",
		`abs(data.max)`: "9223372036854775807", `bitshl(data.one, 62)`: "4611686018427387904", `bitshr(data.min, 70)`: "-1", `-data.small`: "2147483648", `abs(data.small)`: "2147483648",
		`fromJSON("9007199254740993")`: "9007199254740993", `bitnot(data.max)`: "-9223372036854775808",
	} {
		if got, err := decide(t, expression, data); err != nil || plain(got) != want {
			t.Errorf("%s: got %s and %v, want %s", expression, plain(got), err, want)
		}
	}
}

func TestExpression_MakesNoInfinityOfNumbers(t *testing.T) {
	t.Parallel()
	const data = `{"five":5,"zero":0,"big":1e308,"inf":{"$numberDouble":"Infinity"},"nan":{"$numberDouble":"NaN"},"list":[1e308,1e308]}`
	for _, expression := range []string{
		`data.five / 0`, `5/0`, `data.zero / data.zero`, `data.zero % data.zero`, `data.big * 10`, `data.big + data.big`, `-data.big - data.big`, `2 ** 5000`, `(-1) ** 0.5`,
		`sum(data.list)`, `mean(data.list)`, `float("inf")`, `float("NaN")`, `float("1e999")`, `fromJSON("1e999")`, `0 ** -1`,
	} {
		if got, err := decide(t, expression, data); err == nil {
			t.Errorf("%s: got %s, want an error", expression, plain(got))
		}
	}
	for expression, want := range map[string]string{
		`data.inf`: `{"$numberDouble":"Infinity"}`, `data.inf + 1`: `{"$numberDouble":"Infinity"}`, `data.nan`: `{"$numberDouble":"NaN"}`, `data.inf - data.inf`: `{"$numberDouble":"NaN"}`,
		`data.five / 2`: "2.5", `median(data.list)`: "1E+308", `data.nan < 1`: "false", `data.nan == data.nan`: "false",
	} {
		if got, err := decide(t, expression, data); err != nil || plain(got) != want {
			t.Errorf("%s: got %s and %v, want %s", expression, plain(got), err, want)
		}
	}
}

// BSON's undefined is a field without a value, and as such missing. In what is
// passed on whole it stays as it came.
func TestExpression_TakesUndefinedForMissing(t *testing.T) {
	t.Parallel()
	const data = `{"u":{"$undefined":true},"in":{"u":{"$undefined":true}},"list":[{"$undefined":true},1]}`
	for _, expression := range []string{`data.u`, `string(data.u)`, `map(data.list, #)`, `data.u == 1`, `[data.u]`} {
		if got, err := decide(t, expression, data); err == nil || !strings.Contains(err.Error(), "undefined") {
			t.Errorf("%s: got %s and %v, want that it is undefined", expression, plain(got), err)
		}
	}
	for expression, want := range map[string]string{
		`data?.u`: "null", `data.u ?? 1`: "1", `data.u == nil`: "true", `data.in`: `{"u":{"$undefined":true}}`, `data.list`: `[{"$undefined":true},1]`, `"u" in data`: "false",
	} {
		if got, err := decide(t, expression, data); err != nil || plain(got) != want {
			t.Errorf("%s: got %s and %v, want %s", expression, plain(got), err, want)
		}
	}
}

func TestExpression_PassesOnNoFieldThatIsMissing(t *testing.T) {
	t.Parallel()
	const data = `{"customer":{"name":"Ann"},"none":null,"items":[{"sku":"a"},{"sku":"b"}]}`
	for expression, want := range map[string]string{
		`data.custmer`:                  "data.custmer is missing: write ?.custmer if it may be",
		`data.customer.nmae`:            "data.customer.nmae is missing: write ?.nmae if it may be",
		`data["custmer"]`:               "is missing",
		`data.custmer.name`:             "data.custmer is missing",
		`true ? data.custmer : 1`:       "is missing",
		`[data.custmer]`:                "is missing",
		`{a: data.custmer}`:             "is missing",
		`map(data.items, .skv)`:         "skv is missing",
		`let c = data.customer; c.nmae`: "nmae is missing",
		// However a field is asked for, it is missing.
		`get(data, "custmer")`:                   `get(data, "custmer") has no value`,
		`string(data.custmer)`:                   "data.custmer is missing",
		`string(data?.custmer)`:                  "string takes no null",
		`toJSON(data?.custmer)`:                  "toJSON takes no null",
		`string(data.none)`:                      "string takes no null",
		`data.custmer ?? data.custmer2`:          "data.custmer2 is missing",
		`data.custmer == "a" ? 1 : 2`:            "data.custmer is missing",
		`data.custmer == "a"`:                    "data.custmer is missing",
		`data.custmer != data.customer`:          "data.custmer is missing",
		`data.custmer in ["a"]`:                  "data.custmer is missing",
		`"a" in data.custmer`:                    "data.custmer is missing",
		`data.custmer contains "a"`:              "data.custmer is missing",
		`type(data.custmer)`:                     "data.custmer is missing",
		`concat([data.custmer], [1])`:            "data.custmer is missing",
		`[first([])]`:                            "first([]) has no value",
		`last([])`:                               "last([]) has no value",
		`find(data.items, .sku == "c")`:          "has no value",
		`findIndex(data.items, .sku == "c")`:     "has no value",
		`data.items[9]`:                          "has no value",
		`filter(data.items, .skv == "a")`:        "skv is missing",
		`sum(data.items, .qty)`:                  "qty is missing",
		`groupBy(data.items, .skv)`:              "skv is missing",
		`sortBy(data.items, .skv)`:               "skv is missing",
		`reduce(data.items, #acc + .qty, 0)`:     "qty is missing",
		`let c = data.custmer; [c]`:              "data.custmer is missing",
		`data.none.name`:                         "data.none.name is missing",
		`(true ? data.custmer : 1) ?? data.cust`: "data.cust is missing",
		`max([])`:                                "has no value",
	} {
		if got, err := decide(t, expression, data); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %s and %v, want an error: %s", expression, got, err, want)
		}
	}
	for expression, want := range map[string]string{
		`data?.custmer`: "null", `data.customer?.nmae`: "null", `data.custmer ?? "x"`: `"x"`, `data.none`: "null", `data.custmer == nil`: "true",
		`"custmer" in data`: "false", `data.customer.name`: `"Ann"`, `map(data.items, .sku)`: `["a","b"]`, `get(data, "custmer") ?? nil`: "null", `event.time == nil`: "false",
		`data.none == nil`: "true", `data.custmer.name ?? "x"`: `"x"`, `data.custmer ?? data.none`: "null", `data?.custmer == "a"`: "false", `data.none ?? 1`: "1",
		`data?.custmer?.name`: "null", `(data.items | find(.sku == "c")) ?? 0`: "0", `first([]) ?? 0`: "0", `data.items[9] ?? 0`: "0", `let c = data.custmer; c ?? 1`: "1",
	} {
		if got, err := decide(t, expression, data); err != nil || plain(got) != want {
			t.Errorf("%s: got %s and %v, want %s", expression, plain(got), err, want)
		}
	}
}

func TestExpression_IsBoundedInStepsAndMemory(t *testing.T) {
	t.Parallel()
	for expression, want := range map[string]string{
		`let l = 1..1000; all(l, all(l, all(l, true)))`:  "takes more than 3000000 steps",
		`reduce(1..40, #acc + #acc, "xxxxxxxx")`:         "makes a text of more than",
		`reduce(1..40, [#acc, #acc], 1)`:                 "takes more than 3000000 steps",
		`reduce(1..40, [#acc, #acc], repeat("x", 1000))`: "makes a result of more than 16777216 bytes",
		`repeat(repeat("x", 1000000), 1000000)`:          "makes a text of more than",
		`join(map(1..400, repeat("x", 100000)), "")`:     "makes a text of more than",
		`repeat("x", 10000000) + repeat("x", 10000000)`:  "makes a text of more than",
		`map(1..8, repeat("x", 10000000))`:               "makes values of more than",
		`reduce(1..5000, [#acc], 1)`:                     "nested deeper than 1000 levels",
		`all(1..10000, all(1..10000, true))`:             "takes more than 3000000 steps",
	} {
		if got, err := decide(t, expression, `{}`); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %.100s and %v, want an error: %s", expression, plain(got), err, want)
		}
	}
}

// The largest list that a document can hold is passed on, and a part of a list is
// no more than that part.
func TestExpression_PassesOnLists(t *testing.T) {
	t.Parallel()
	largest := `{"l":[null` + strings.Repeat(",null", 1_500_000) + `]}`
	if got, err := decide(t, "data.l", largest); err != nil || !got.Equal(change(t, largest).Data.Document().Lookup("l")) {
		t.Errorf("the largest list: got %s and %v", got.Type, err)
	}
	for expression, want := range map[string]string{
		"data.l": "[1,2,3]", "take(data.l, 2)": "[1,2]", "data.l[:2]": "[1,2]", "data.l[1:]": "[2,3]", "[data.l, data.l[0:1]]": "[[1,2,3],[1]]", "data.l[:0]": "[]", "filter(data.l, true)": "[1,2,3]",
	} {
		if got, err := decide(t, expression, `{"l":[1,2,3]}`); err != nil || plain(got) != want {
			t.Errorf("%s: got %s and %v, want %s", expression, plain(got), err, want)
		}
	}
}

// Arithmetic with texts is bounded by itself, whatever it is repeated by.
func TestExpression_BoundsTheTextThatPlusMakes(t *testing.T) {
	t.Parallel()
	if got, err := decide(t, `repeat("x", 12000000) + repeat("y", 12000000)`, `{}`); err == nil || !strings.Contains(err.Error(), "makes a text of more than 16777216 bytes") {
		t.Errorf("got %d bytes and %v, want it refused", len(got.Value), err)
	}
}

func TestExpression_EndsWithItsContext(t *testing.T) {
	t.Parallel()
	projections, err := projection.Parse("test.yaml", []byte("projections:\n- name: p\n  collection: c\n  on:\n    Happened:\n      set: {v: 'let l = 1..300; all(l, all(l, true))'}\n"))
	if err != nil {
		t.Fatal(err)
	}
	c := change(t, `{}`)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c.Within(ctx)
	if _, err := projections.Decide(c); !errors.Is(err, projection.ErrInterrupted) {
		t.Errorf("got %v, want it interrupted", err)
	}
	c = change(t, `{}`)
	c.Within(t.Context())
	if _, err := projections.Decide(c); err != nil {
		t.Errorf("with a context that goes on: got %v", err)
	}
}

// An event without a version or a time has none to store, and an event without
// data no data.
func TestExpression_TakesWhatAnEventLacksForMissing(t *testing.T) {
	t.Parallel()
	for expression, want := range map[string]string{
		"event.version": "event.version is missing", "event.time": "event.time is missing", "data": "data has no value", "data.a": "data has no value",
		"event?.version": "", "event.time ?? nil": "", "data?.a": "", "data ?? 1": "",
	} {
		projections, err := projection.Parse("test.yaml", []byte("projections: [{name: p, collection: c, on: {Happened: {set: {v: '"+expression+"'}}}}]"))
		if err != nil {
			t.Fatal(err)
		}
		c, err := projection.Read(contract.Event{Type: "Happened", AggregateID: "a"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := projections.Decide(c); (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", expression, err, want)
		}
	}
}

// twice writes one document of its own twice.
type twice struct{ ids []any }

func (twice) Name() string          { return "twice" }
func (twice) Collections() []string { return []string{"c"} }

func (p twice) Decide(c *projection.Change) ([]projection.Write, error) {
	var writes []projection.Write
	for i, id := range p.ids {
		writes = append(writes, projection.Write{Projection: "twice", Collection: "c", ID: id, Event: &c.Event, Update: bson.D{{Key: "$set", Value: bson.D{{Key: fmt.Sprint(i), Value: 1}}}}})
	}
	return writes, nil
}

func TestProjections_RefuseTwoWritesOfOneDocumentInOneEvent(t *testing.T) {
	t.Parallel()
	for _, ids := range [][]any{{"a", "a"}, {int32(1), int64(1)}, {1, 1.0}, {bson.D{{Key: "a", Value: 1}}, bson.D{{Key: "a", Value: int32(1)}}}} {
		if writes, err := (projection.Projections{twice{ids}}).Decide(change(t, `{}`)); err == nil || !strings.Contains(err.Error(), "two writes of one document") {
			t.Errorf("%v: got %v and %v, want a refusal", ids, writes, err)
		}
	}
	if _, err := (projection.Projections{twice{[]any{"a", "b", 1, "1"}}}).Decide(change(t, `{}`)); err != nil {
		t.Errorf("different documents: got %v", err)
	}
}
