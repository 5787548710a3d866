package projection_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/projection"
)

// change is an event of type Happened with data in Extended JSON.
func change(t *testing.T, data string) *projection.Change {
	t.Helper()
	position := contract.StreamPosition(1700000000, 1, "82AB")
	c, err := projection.Read(contract.Event{
		ID: "id-1", Type: "Happened", AggregateID: "order-1", Operation: contract.Insert,
		Time:     time.Date(2026, 1, 2, 3, 4, 5, 678e6, time.UTC),
		Position: position, Version: contract.VersionOf(7), Sequence: contract.SequenceOf(contract.VersionOf(7), position),
		ContentType: contract.ContentTypeJSON, Data: []byte(data),
	})
	if err != nil {
		t.Fatalf("read change: %v", err)
	}
	return c
}

// decide runs a projection that sets field v to an expression. It takes no time, by the
// clock that bounds it, on however slow a machine.
func decide(t *testing.T, expression, data string) (bson.RawValue, error) {
	t.Helper()
	source := fmt.Sprintf("projections:\n- name: p\n  collection: c\n  on:\n    Happened:\n      set:\n        v: '%s'\n",
		strings.ReplaceAll(expression, "'", "''"))
	projections, err := projection.Parse("test.yaml", []byte(source))
	if err != nil {
		t.Fatalf("parse: %v", err)
	}
	of := change(t, data)
	var writes []projection.Write
	synctest.Test(t, func(*testing.T) { writes, err = projections.Decide(of) })
	if err != nil {
		return bson.RawValue{}, err
	}
	document, err := bson.Marshal(writes[0].Update)
	if err != nil {
		t.Fatalf("encode the update: %v", err)
	}
	return bson.Raw(document).Lookup("$set", "v"), nil
}

func TestExpression_WhatAnExpressionPassesOnKeepsItsTypeAndDigits(t *testing.T) {
	t.Parallel()
	values := map[string]string{
		"a decimal":                     `{"$numberDecimal":"12345678901234567890.1234567890"}`,
		"a 64-bit integer":              `{"$numberLong":"9007199254740993"}`,
		"a small integer":               `42`,
		"a small integer in 64 bits":    `{"$numberLong":"42"}`,
		"a double":                      `1.5`,
		"a whole double":                `{"$numberDouble":"3.0"}`,
		"a string":                      `"héllo"`,
		"a boolean":                     `true`,
		"null":                          `null`,
		"a date":                        `{"$date":"2026-03-04T05:06:07.089Z"}`,
		"a date before 1970":            `{"$date":{"$numberLong":"-62135596800001"}}`,
		"an object id":                  `{"$oid":"5f3c2a1b9d8e7f6a5b4c3d2e"}`,
		"binary":                        `{"$binary":{"base64":"AQID","subType":"80"}}`,
		"a timestamp":                   `{"$timestamp":{"t":1,"i":2}}`,
		"a regular expression":          `{"$regularExpression":{"pattern":"a","options":"i"}}`,
		"a document in its own order":   `{"z":1,"a":{"y":{"$numberLong":"1"},"b":2},"m":[1,{"q":1,"c":2}]}`,
		"an array":                      `[1,"two",{"$numberDecimal":"3"},{"z":1,"a":2},[4]]`,
		"an empty document":             `{}`,
		"an empty array":                `[]`,
		"a key that looks like a path":  `{"a.b":1,"$set":2}`,
		"the smallest and largest keys": `[{"$minKey":1},{"$maxKey":1}]`,
	}
	for name, value := range values {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := decide(t, "data.x", `{"x":`+value+`}`)
			if err != nil {
				t.Fatalf("decide: %v", err)
			}
			want := change(t, `{"x":`+value+`}`).Data.Document().Lookup("x")
			if !got.Equal(want) {
				t.Errorf("stored %s (%s), want %s (%s)", got, got.Type, want, want.Type)
			}
		})
	}
}

func TestExpression_Expressions(t *testing.T) {
	t.Parallel()
	const data = `{"total":{"$numberLong":"10"},"price":2.5,"n":3,"customer":{"name":"Ann","tags":["a","b"]},
		"at":{"$date":"2026-03-04T05:06:07Z"},"items":[{"sku":"x","qty":2},{"sku":"y","qty":5}],"dec":{"$numberDecimal":"1.10"}}`
	tests := []struct {
		name       string
		expression string
		want       any
	}{
		{"a string", `"placed"`, "placed"},
		{"the event's type", `event.type`, "Happened"},
		{"the event's id", `event.id`, "id-1"},
		{"the event's aggregate", `event.aggregateId`, "order-1"},
		{"the event's version", `event.version`, int64(7)},
		{"the event's operation", `event.operation`, "insert"},
		{"the event's time", `event.time`, time.Date(2026, 1, 2, 3, 4, 5, 678e6, time.UTC)},
		{"a calculation with integers", `data.total * 2 + data.n`, 23},
		{"a calculation with a double", `data.price * data.n`, 7.5},
		{"a nested field", `data.customer.name`, "Ann"},
		{"a field that may be missing", `data?.nowhere`, nil},
		{"a missing field with another value", `data.nowhere ?? 1`, 1},
		{"a missing field in a condition", `data.nowhere == nil`, true},
		{"a field of a missing field", `data.nowhere?.deeper`, nil},
		{"a choice", `data.n > 2 ? "many" : "few"`, "many"},
		{"a sum over a list", `sum(data.items, .qty)`, 7},
		{"a filtered list", `filter(data.items, .qty > 2)`, bson.A{bson.D{{Key: "sku", Value: "y"}, {Key: "qty", Value: int32(5)}}}},
		{"a mapped list", `map(data.items, .sku)`, bson.A{"x", "y"}},
		{"a built list", `[data.n, data.customer.name]`, bson.A{int32(3), "Ann"}},
		{"a built map, sorted by name", `{z: 1, a: data.n}`, bson.D{{Key: "a", Value: int32(3)}, {Key: "z", Value: 1}}},
		{"a range", `1..3`, bson.A{1, 2, 3}},
		{"a date's parts", `data.at.Year()`, 2026},
		{"a string's parts", `split(data.customer.name, "n")[0]`, "A"},
		{"an equal decimal", `data.dec == data.dec`, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := decide(t, tt.expression, data)
			if err != nil {
				t.Fatalf("decide: %v", err)
			}
			document, err := bson.Marshal(bson.D{{Key: "v", Value: tt.want}})
			if err != nil {
				t.Fatalf("encode: %v", err)
			}
			if want := bson.Raw(document).Lookup("v"); !got.Equal(want) {
				t.Errorf("got %s (%s), want %s (%s)", got, got.Type, want, want.Type)
			}
		})
	}
}

func TestExpression_ExpressionsThatFailSayWhere(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, expression, want string }{
		{"a calculation with nothing", `data.nowhere + 1`, `projection "p", event type "Happened": set "v": `},
		{"a decimal in a calculation", `data.dec * 2`, `set "v": `},
		{"an index beyond the list", `data.items[5]`, `set "v": `},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := decide(t, tt.expression, `{"dec":{"$numberDecimal":"1.10"},"items":[]}`)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want an error with %q", err, tt.want)
			}
		})
	}
}

func TestExpression_ReadTakesOneValueOfAnyKind(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, data string
		want       bson.Type
	}{
		{"a document", `{"a":1}`, bson.TypeEmbeddedDocument},
		{"a list", `[1,2]`, bson.TypeArray},
		{"a string", `"x"`, bson.TypeString},
		{"a number", ` 17 `, bson.TypeInt32},
		{"null", `null`, bson.TypeNull},
		{"a type wrapper", `{"$numberDecimal":"1"}`, bson.TypeDecimal128},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := change(t, tt.data).Data.Type; got != tt.want {
				t.Errorf("type: got %s, want %s", got, tt.want)
			}
		})
	}
}

func TestExpression_ReadRefusesWhatIsNotOneValue(t *testing.T) {
	t.Parallel()
	for name, data := range map[string]string{
		"cut off":           `{"a":`,
		"two values":        `1, "b": 2`,
		"two documents":     `{} {}`,
		"no JSON":           `<xml/>`,
		"breaking out":      `1}, {"data": 2`,
		"a broken wrapper":  `{"$numberDecimal":"x"}`,
		"nested too deeply": strings.Repeat(`[`, 1<<20) + strings.Repeat(`]`, 1<<20),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := projection.Read(contract.Event{ContentType: contract.ContentTypeJSON, Data: []byte(data)})
			if err == nil || !strings.HasPrefix(err.Error(), "body: ") {
				t.Errorf("got %v, want an error about the body", err)
			}
		})
	}
}

func TestExpression_ReadTakesBSON(t *testing.T) {
	t.Parallel()
	document, err := bson.Marshal(bson.D{{Key: "a", Value: int64(1)}})
	if err != nil {
		t.Fatal(err)
	}
	c, err := projection.Read(contract.Event{ContentType: contract.ContentTypeBSON, Data: document})
	if err != nil || c.Data.Document().Lookup("a").Int64() != 1 {
		t.Errorf("got %v and %v, want the document", c, err)
	}
	if _, err := projection.Read(contract.Event{ContentType: contract.ContentTypeBSON, Data: document[:8]}); err == nil {
		t.Error("a cut document: got nil, want an error")
	}
	for range 1001 {
		if document, err = bson.Marshal(bson.D{{Key: "a", Value: bson.Raw(document)}}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := projection.Read(contract.Event{ContentType: contract.ContentTypeBSON, Data: document}); err == nil {
		t.Error("a document nested too deeply: got nil, want an error")
	}
}

func FuzzRead(f *testing.F) {
	for _, seed := range []string{`{"a":1}`, `[1]`, `1, "b": 2`, `{"$numberDecimal":"1e9999"}`, `{"a":{"$date":"2026-01-01T00:00:00Z"}}`, `{"\u0000":1}`, `{"$oid":"x"}`} {
		f.Add([]byte(seed), false)
	}
	f.Add([]byte{5, 0, 0, 0, 0}, true)
	projections, err := projection.Parse("fuzz.yaml", []byte(`
projections:
- name: p
  collection: c
  on:
    Happened:
      set: {all: data, deep: 'data?.a', list: 'data?.b?.c'}
      push: {history: {value: data, last: 3}}
`))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte, binary bool) {
		event := contract.Event{Type: "Happened", AggregateID: "a", ContentType: contract.ContentTypeJSON, Data: data}
		if binary {
			event.ContentType = contract.ContentTypeBSON
		}
		c, err := projection.Read(event)
		if err != nil {
			return
		}
		writes, err := projections.Decide(c)
		if err != nil {
			return
		}
		if _, err := bson.Marshal(writes[0].Update); err != nil {
			t.Errorf("what was decided cannot be encoded: %v", err)
		}
	})
}
