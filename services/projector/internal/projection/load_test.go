package projection_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/projector/internal/projection"
)

const orders = `# What the demo shows of its orders.
projections:
  - name: orders
    collection: orders
    on:
      OrderPlaced:
        set: {status: '"placed"', customer: data.customer, open: true, rate: 0.5, note: null}
        inc: {total: data.total, events: 1}
        push:
          history: {value: event.type, last: 20}
          all: event.type
        addToSet: {tags: data.tag}
        min: {first: event.time}
        max: {last: event.time}
        unset: [cancelled, "a.b"]
      OrderDeleted:
        delete: true
`

func TestLoad_ADeclaredProjectionMakesTheUpdateItSays(t *testing.T) {
	t.Parallel()
	projections, err := projection.Parse("orders.yaml", []byte(orders))
	if err != nil {
		t.Fatalf("parse: %v", err)
	}
	c := change(t, `{"customer":"c-1","total":{"$numberDecimal":"9.90"},"tag":"new"}`)
	c.Type = "OrderPlaced"
	writes, err := projections.Decide(c)
	if err != nil {
		t.Fatalf("decide: %v", err)
	}
	if len(writes) != 1 || writes[0].Collection != "orders" || writes[0].ID != "order-1" || writes[0].Delete {
		t.Fatalf("writes: got %+v, want one to orders with the aggregate's id", writes)
	}
	got, err := bson.MarshalExtJSON(writes[0].Update, false, false)
	if err != nil {
		t.Fatal(err)
	}
	const at = `{"$date":"2026-01-02T03:04:05.678Z"}`
	want := `{"$set":{"status":"placed","customer":"c-1","open":true,"rate":0.5,"note":null},` +
		`"$inc":{"total":{"$numberDecimal":"9.90"},"events":1},` +
		`"$push":{"history":{"$each":["OrderPlaced"],"$slice":-20},"all":{"$each":["OrderPlaced"]}},` +
		`"$addToSet":{"tags":{"$each":["new"]}},"$min":{"first":` + at + `},"$max":{"last":` + at + `},` +
		`"$unset":{"cancelled":"","a.b":""}}`
	if string(got) != want {
		t.Errorf("update:\n got %s\nwant %s", got, want)
	}

	c.Type = "OrderDeleted"
	if writes, err := projections.Decide(c); err != nil || len(writes) != 1 || !writes[0].Delete {
		t.Errorf("a delete: got %+v and %v, want one deleting write", writes, err)
	}
	c.Type = "SomethingElse"
	if writes, err := projections.Decide(c); err != nil || len(writes) != 0 {
		t.Errorf("an event that is not followed: got %+v and %v, want no write", writes, err)
	}
}

// What an event says is stored, whatever it looks like: an array of data is one
// element, and a document with an operator's name as a field is a document.
func TestLoad_DataIsNeverTakenForAnOperator(t *testing.T) {
	t.Parallel()
	projections, err := projection.Parse("p.yaml", []byte(
		"projections: [{name: p, collection: c, on: {Happened: {push: {a: data.v}, addToSet: {b: data.v}, pull: {c: data.v}}}}]"))
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range []string{`{"$each":[1,2]}`, `{"$gte":0}`, `[1,2]`} {
		writes, err := projections.Decide(change(t, `{"v":`+v+`}`))
		if err != nil {
			t.Fatalf("decide: %v", err)
		}
		got, err := bson.MarshalExtJSON(writes[0].Update, false, false)
		want := `{"$push":{"a":{"$each":[` + v + `]}},"$addToSet":{"b":{"$each":[` + v + `]}},"$pullAll":{"c":[` + v + `]}}`
		if err != nil || string(got) != want {
			t.Errorf("update: got %s and %v, want %s", got, err, want)
		}
	}
}

func TestLoad_ADocumentMayHaveAnotherKeyThanTheAggregate(t *testing.T) {
	t.Parallel()
	projections, err := projection.Parse("p.yaml", []byte(
		"projections: [{name: totals, collection: totals, key: data.customer, on: {Happened: {inc: {orders: 1}}}}]"))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		data string
		want any
	}{
		{`{"customer":"c-1"}`, "c-1"},
		{`{"customer":7}`, int32(7)},
	} {
		writes, err := projections.Decide(change(t, tt.data))
		if err != nil || len(writes) != 1 || writes[0].ID != tt.want || !writes[0].Keyed {
			t.Errorf("%s: got %+v and %v, want the key %v", tt.data, writes, err, tt.want)
		}
	}
	for _, data := range []string{`{}`, `{"customer":null}`, `{"customer":1.5}`, `{"customer":{"a":1}}`, `{"customer":["c"]}`} {
		if _, err := projections.Decide(change(t, data)); err == nil || !strings.Contains(err.Error(), "key: ") {
			t.Errorf("%s: got %v, want the key refused", data, err)
		}
	}
}

func TestLoad_IncRefusesWhatIsNoNumber(t *testing.T) {
	t.Parallel()
	projections, err := projection.Parse("p.yaml", []byte("projections: [{name: p, collection: c, on: {Happened: {inc: {n: data.n}}}}]"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := projections.Decide(change(t, `{"n":"3"}`)); err == nil || !strings.Contains(err.Error(), "not a number") {
		t.Errorf("got %v, want that it is not a number", err)
	}
}

// Every problem is reported, with file, line, projection and event type.
func TestLoad_LoadReportsEveryProblemWithItsPlace(t *testing.T) {
	t.Parallel()
	const source = `projections:
  - name: orders
    collection: orders
    on:
      OrderPlaced:
        set: {status: placed, total: data.}
        increment: {n: 1}
        inc: {_relay.sequence: 1, _id: 1, total: true}
      OrderGone:
        delete: false
      OrderMoved:
        set: {a: 1}
        unset: [a.b, '$x']
      OrderSaid:
        push: {history: {last: 0}}
      OrderNested:
        set: {a: {b: 1}}
      OrderNothing: {}
      OrderBoth:
        delete: true
        set: {a: event.nowhere}
  - collection: parked_messages
    extra: 1
`
	_, err := projection.Parse("dir/p.yaml", []byte(source))
	if err == nil {
		t.Fatal("got nil, want problems")
	}
	for _, want := range []string{
		`dir/p.yaml:6: projection "orders": event type "OrderPlaced": set "status": expression "placed", column 1: unknown name placed`,
		`dir/p.yaml:6: projection "orders": event type "OrderPlaced": set "total": expression "data."`,
		`dir/p.yaml:7: projection "orders": event type "OrderPlaced": unknown operator "increment"; there are set, unset`,
		`dir/p.yaml:8: projection "orders": event type "OrderPlaced": inc "_relay.sequence": the field is the projector's own`,
		`dir/p.yaml:8: projection "orders": event type "OrderPlaced": inc "_id": the document's key cannot be changed`,
		`dir/p.yaml:8: projection "orders": event type "OrderPlaced": inc "total": the field is changed twice`,
		`dir/p.yaml:8: projection "orders": event type "OrderPlaced": inc "total": the value is not a number`,
		`dir/p.yaml:10: projection "orders": event type "OrderGone": delete can only be true`,
		`dir/p.yaml:13: projection "orders": event type "OrderMoved": unset "a.b": the field is changed twice, also as "a"`,
		`dir/p.yaml:13: projection "orders": event type "OrderMoved": unset "$x": a part of the path begins with $`,
		`dir/p.yaml:15: projection "orders": event type "OrderSaid": push "history": last is not a whole number above 0`,
		`dir/p.yaml:15: projection "orders": event type "OrderSaid": push "history": value is missing`,
		`dir/p.yaml:17: projection "orders": event type "OrderNested": set "a": the value is neither an expression nor a scalar`,
		`dir/p.yaml:18: projection "orders": event type "OrderNothing": has no operators`,
		`dir/p.yaml:19: projection "orders": event type "OrderBoth": delete stands beside other operators`,
		`dir/p.yaml:21: projection "orders": event type "OrderBoth": set "a": expression "event.nowhere"`,
		`dir/p.yaml:23: unknown key "extra"`,
		`a projection without a name`,
		`collection "parked_messages" is the projector's own`,
		`follows no event type`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("missing problem %q in:\n%s", want, err)
		}
	}
}

func TestLoad_SeveralFilesAreOneSetOfProjections(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name, collection string) string {
		path := filepath.Join(dir, name+"-"+collection+".yaml")
		content := "projections: [{name: " + name + ", collection: " + collection + ", on: {E: {delete: true}}}]"
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	all, err := projection.LoadAll([]string{file("a", "c"), file("b", "d")})
	if err != nil || len(all) != 2 || all[0].Name() != "a" || all[1].Name() != "b" {
		t.Errorf("got %v and %v, want a and b", all, err)
	}
	for _, paths := range [][]string{
		{file("a", "c"), file("b", "c")},
		{file("a", "c"), file("a", "d")},
		{file("a", "c"), filepath.Join(dir, "none.yaml")},
	} {
		if _, err := projection.LoadAll(paths); err == nil {
			t.Errorf("%v: got no error", paths)
		}
	}
}

func TestLoad_ParseRefuses(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, source, want string }{
		{"nothing", "", "not one with projections"},
		{"two documents", "a: 1\n---\nb: 1", "2 YAML documents"},
		{"bad YAML", "a: [1", "p.yaml: "},
		{"no mapping", "- a", "the file is not a mapping"},
		{"an unknown key", "projection: []", `p.yaml:1: unknown key "projection"`},
		{"an empty list", "projections: []", "declares no projection"},
		{"a list that is none", "projections: 5", "projections is not a list"},
		{"a collection twice", "projections: [{name: a, collection: c, on: {E: {delete: true}}}, {name: b, collection: c, on: {E: {delete: true}}}]", `projection "b" writes collection "c", which belongs to projection "a"`},
		{"a name twice", "projections: [{name: a, collection: c, on: {E: {delete: true}}}, {name: a, collection: d, on: {E: {delete: true}}}]", `projection "a" is there twice`},
		{"a collection in the place of a view", "projections: [{name: a, version: 2, collection: c, on: {E: {delete: true}}}, {name: b, collection: c, on: {E: {delete: true}}}]", `projection "b" writes collection "c", which belongs to projection "a_v2"`},
		{"a version that is none", "projections: [{name: a, version: two, collection: c, on: {E: {delete: true}}}]", "version is not a whole number from 1 to 999999"},
		{"version 0", "projections: [{name: a, version: 0, collection: c, on: {E: {delete: true}}}]", "version is not a whole number from 1 to 999999"},
		{"an expression that looks at the clock", "projections: [{name: a, collection: c, on: {E: {set: {x: now()}}}}]", "unknown name now"},
		{"a key that is no expression", "projections: [{name: a, collection: c, key: [1], on: {E: {delete: true}}}]", "neither an expression nor a scalar"},
		{"the own collection of some group", "projections: [{name: a, collection: parked_messages.blue, on: {E: {delete: true}}}]", "is the projector's own"},
		{"the projector's own collection", "projections: [{name: a, collection: applied_positions, on: {E: {delete: true}}}]", "is the projector's own"},
		{"a bad collection", "projections: [{name: a, collection: a$b, on: {E: {delete: true}}}]", "is not a valid name"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := projection.Parse("p.yaml", []byte(tt.source))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want an error with %q", err, tt.want)
			}
		})
	}
}

// What docs/projections.md shows can be copied.
func TestLoad_EachExampleOfTheDocumentationLoads(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../../docs/projections.md")
	if err != nil {
		t.Fatal(err)
	}
	examples := 0
	for _, block := range strings.Split(string(page), "```yaml\n")[1:] {
		block, _, _ = strings.Cut(block, "```")
		if !strings.Contains(block, " on:") {
			continue
		}
		if !strings.HasPrefix(block, "projections:") {
			block = "projections:\n" + block
		}
		if _, err := projection.Parse("docs/projections.md", []byte(block)); err != nil {
			t.Errorf("%s\n%v", block, err)
		}
		examples++
	}
	if examples < 3 {
		t.Errorf("got %d examples, want those of the page", examples)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(orders)
	f.Add("projections: [{name: p, collection: c, on: {E: {set: {x: '1 + '}}}}]")
	f.Add("projections: [{name: p, collection: c, on: {E: {when: data.n > 1, set: {x: {value: state.x, when: 'state?.x == 1'}}}}}]")
	f.Add("projections: [{name: p, collection: c, key: item.k, on: {E: {forEach: data.l, push: {x: {each: item.l, last: 2}}}}}]")
	f.Add("projections:\n- &a {name: p}\n- *a\n- <<: *a")
	f.Add("a: !!binary x\n? [b]\n: c")
	f.Fuzz(func(_ *testing.T, source string) {
		projections, err := projection.Parse("fuzz.yaml", []byte(source))
		if err == nil {
			_ = projections.Collections()
		}
	})
}
