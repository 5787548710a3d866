package modify_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"pgregory.net/rapid"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
	"changerelay/services/sandbox/internal/mongodb/query/modify"
	"changerelay/services/sandbox/internal/mongodb/query/querytest"
)

// applyDelta does to a decoded document what a reader of change streams does:
// it sets the updated paths and removes the removed ones.
func applyDelta(t *rapid.T, doc bson.Raw, d *modify.Delta) bson.D {
	var decoded, updated bson.D
	if err := bson.Unmarshal(doc, &decoded); err != nil {
		t.Fatalf("decode document: %v", err)
	}
	if err := bson.Unmarshal(d.Updated, &updated); err != nil {
		t.Fatalf("decode updated fields: %v", err)
	}
	for _, e := range updated {
		decoded = with(decoded, strings.Split(e.Key, "."), e.Value).(bson.D)
	}
	for _, path := range d.Removed {
		decoded = without(decoded, strings.Split(path, ".")).(bson.D)
	}
	return decoded
}

func with(at any, path []string, v any) any {
	if len(path) == 0 {
		return v
	}
	if array, ok := at.(bson.A); ok {
		i, err := strconv.Atoi(path[0])
		if err != nil {
			panic(err)
		}
		for len(array) <= i {
			array = append(array, nil)
		}
		array[i] = with(array[i], path[1:], v)
		return array
	}
	doc, _ := at.(bson.D)
	for i := range doc {
		if doc[i].Key == path[0] {
			doc[i].Value = with(doc[i].Value, path[1:], v)
			return doc
		}
	}
	return append(doc, bson.E{Key: path[0], Value: with(nil, path[1:], v)})
}

func without(at any, path []string) any {
	if array, ok := at.(bson.A); ok {
		i, err := strconv.Atoi(path[0])
		if err != nil {
			panic(err)
		}
		if len(path) == 1 {
			array[i] = nil
		} else {
			array[i] = without(array[i], path[1:])
		}
		return array
	}
	doc := at.(bson.D)
	for i := range doc {
		if doc[i].Key != path[0] {
			continue
		}
		if len(path) == 1 {
			return append(doc[:i:i], doc[i+1:]...)
		}
		doc[i].Value = without(doc[i].Value, path[1:])
	}
	return doc
}

func anyUpdate() *rapid.Generator[string] {
	path := rapid.SampledFrom([]string{"a", "b", "a.x", "a.y.z", "l", "l.0", "l.1", "l.4", "o.0.k", "o.1", "o.$[].k", "l.$[]", "o", "n", "new.deep"})
	content := rapid.SampledFrom([]string{`1`, `"s"`, `null`, `{"x":2}`, `[1,2]`, `2.5`, `{"$each":[5,1],"$sort":1}`, `{"$each":[7],"$slice":-2}`, `{"$each":[7,8]}`, `{"$gte":2}`, `-1`})
	operators := []string{"$set", "$unset", "$inc", "$mul", "$min", "$max", "$push", "$addToSet", "$pop", "$pull", "$pullAll", "$rename"}
	return rapid.Custom(func(t *rapid.T) string {
		byOperator := map[string][]string{}
		for range rapid.IntRange(1, 3).Draw(t, "changes") {
			op, p, v := rapid.SampledFrom(operators).Draw(t, "operator"), path.Draw(t, "path"), content.Draw(t, "content")
			if op == "$rename" {
				v = strconv.Quote(path.Draw(t, "target"))
			}
			byOperator[op] = append(byOperator[op], fmt.Sprintf("%q:%s", p, v))
		}
		var parts []string
		for _, op := range operators {
			if fields := byOperator[op]; fields != nil {
				parts = append(parts, fmt.Sprintf("%q:{%s}", op, strings.Join(fields, ",")))
			}
		}
		return "{" + strings.Join(parts, ",") + "}"
	})
}

func TestDelta_ADeltaAppliedToTheOldDocumentGivesTheNewOne(t *testing.T) {
	t.Parallel()
	docs := querytest.Documents(t, `[
		{"_id":1,"a":{"x":1,"y":{"z":[1]}},"l":[3,1,2],"o":[{"k":1},{"k":2}],"n":5},
		{"_id":1,"a":7,"l":[],"o":[]},
		{"_id":1}]`)
	applied := 0
	rapid.Check(t, func(rt *rapid.T) {
		json := anyUpdate().Draw(rt, "update")
		u, err := compileUpdate(t, json)
		if err != nil {
			rt.Skip(err)
		}
		doc := rapid.SampledFrom(docs).Draw(rt, "document")
		got, err := u.Apply(doc, nil)
		if err != nil {
			if mongoerr.From(err).Code == mongoerr.InternalError {
				rt.Fatalf("%s: not a server's error: %v", json, err)
			}
			rt.Skip(err)
		}
		if !got.Changed {
			if got.Delta != nil || string(got.Doc) != string(doc) {
				rt.Fatalf("%s: unchanged, but the document is %s and the delta %s", json, got.Doc, deltaText(got.Delta))
			}
			return
		}
		applied++
		if err := bson.Raw(got.Doc).Validate(); err != nil {
			rt.Fatalf("%s: invalid result: %v", json, err)
		}
		made, err := bson.Marshal(applyDelta(rt, doc, got.Delta))
		if err != nil {
			rt.Fatal(err)
		}
		if a, b := sortedFields(rt, made), sortedFields(rt, got.Doc); a != b {
			rt.Fatalf("%s on %s\n delta  %s\n gives  %s\n wanted %s", json, querytest.Relaxed(doc), deltaText(got.Delta), a, b)
		}
	})
	if applied == 0 {
		t.Error("no update was applied")
	}
}

// TestDelta_OfAnArrayIsOfItWhereFieldsBeforeItGo has a field before the array removed after
// its elements were changed.
func TestDelta_OfAnArrayIsOfItWhereFieldsBeforeItGo(t *testing.T) {
	t.Parallel()
	doc := querytest.Document(t, `{"_id":1,"a":7,"l":[3,2],"o":2}`)
	for json, want := range map[string]string{
		`{"$set":{"l.$[]":1},"$unset":{"a":1}}`:    `{"l":[1,1]}`,
		`{"$set":{"l.$[]":1},"$rename":{"a":"o"}}`: `{"o":7,"l":[1,1]}`,
	} {
		got, err := update(t, json).Apply(doc, nil)
		if err != nil {
			t.Fatal(err)
		}
		if text := querytest.Relaxed(got.Delta.Updated); text != want {
			t.Errorf("%s: got %s, want %s", json, text, want)
		}
	}
}

// An element that is unset becomes null. That is told as removed, from 5.0 on as set to null.
func TestDelta_OfAnElementThatIsUnset(t *testing.T) {
	t.Parallel()
	doc := querytest.Document(t, `{"_id":1,"l":[3,1,2],"o":[{"k":[1]}],"f":5}`)
	for _, c := range []struct{ update, old, since5 string }{
		{`{"$unset":{"l.1":1}}`, `{} -l.1`, `{"l.1":null} -`},
		{`{"$unset":{"o.0.k.0":1,"f":1}}`, `{} -f,o.0.k.0`, `{"o.0.k.0":null} -f`},
		{`{"$unset":{"o.0.k":1}}`, `{} -o.0.k`, `{} -o.0.k`},
		{`{"$unset":{"l.$[]":1}}`, `{"l":[null,null,null]} -`, `{"l":[null,null,null]} -`},
	} {
		for since5, want := range map[bool]string{false: c.old, true: c.since5} {
			u, err := modify.Compile(querytest.Value(t, c.update), modify.Options{SinceFive: since5, Env: querytest.Env()})
			if err != nil {
				t.Fatal(err)
			}
			got, err := u.Apply(doc, nil)
			if err != nil {
				t.Fatal(err)
			}
			if text := deltaText(got.Delta); text != want {
				t.Errorf("%s, since 5.0 %t: got %s, want %s", c.update, since5, text, want)
			}
		}
	}
}

// Every element that is pushed is told with its path, which may be long.
func TestDelta_OfLongPathsIsAReplacement(t *testing.T) {
	t.Parallel()
	name := strings.Repeat("n", 10_000)
	u, err := modify.Compile(querytest.Value(t, `{"$push":{"`+name+`":{"$each":[`+strings.Repeat("1,", 1999)+`1]}}}`), modify.Options{Env: querytest.Env()})
	if err != nil {
		t.Fatal(err)
	}
	got, err := u.Apply(querytest.Document(t, `{"_id":1,"`+name+`":[0]}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	if got.Delta != nil || !got.Changed {
		t.Errorf("got changed %t, want true, told by %d bytes, want a replacement", got.Changed, len(got.Delta.Updated))
	}
}

// sortedFields writes a document with the fields of each level in order: a
// delta says what the fields are, not where.
func sortedFields(t *rapid.T, doc bson.Raw) string {
	var m bson.M
	if err := bson.Unmarshal(doc, &m); err != nil {
		t.Fatalf("decode: %v", err)
	}
	return fmt.Sprint(plain(m))
}

func plain(v any) any {
	switch v := v.(type) {
	case bson.M:
		m := map[string]any{}
		for key, w := range v {
			m[key] = plain(w)
		}
		return m
	case bson.D:
		m := map[string]any{}
		for _, e := range v {
			m[e.Key] = plain(e.Value)
		}
		return m
	case bson.A:
		list := make([]any, len(v))
		for i := range v {
			list[i] = plain(v[i])
		}
		return list
	}
	return fmt.Sprintf("%T %v", v, v)
}

// TestDelta_OfFilteredElementsIsTheElementOrTheArray compares what is reported
// of $[] and $[name] with the rule: one changed element stands whole under its
// index, several are the array, whatever was changed inside them.
func TestDelta_OfFilteredElementsIsTheElementOrTheArray(t *testing.T) {
	t.Parallel()
	changes := rapid.SampledFrom([]string{
		`"$set":{"o.$[x].k":9}`, `"$unset":{"o.$[x].k":1}`, `"$inc":{"o.$[].n":1}`, `"$push":{"o.$[x].l":1}`, `"$max":{"o.$[].k":3}`,
		`"$set":{"o.$[x].l.$[]":0}`, `"$set":{"o.$[x].new.deep":1}`, `"$pull":{"o.$[].l":2}`, `"$set":{"o.$[x]":{"k":1}}`,
	})
	applied := 0
	rapid.Check(t, func(rt *rapid.T) {
		var elements []string
		for range rapid.IntRange(0, 4).Draw(rt, "elements") {
			elements = append(elements, fmt.Sprintf(`{"k":%d,"n":1,"l":[%d,2]}`, rapid.IntRange(1, 4).Draw(rt, "k"), rapid.IntRange(0, 2).Draw(rt, "l")))
		}
		doc := querytest.Document(t, `{"_id":1,"o":[`+strings.Join(elements, ",")+`]}`)
		change := changes.Draw(rt, "change")
		var filters []string
		if strings.Contains(change, "[x]") {
			filters = []string{fmt.Sprintf(`{"x.k":{"$gte":%d}}`, rapid.IntRange(1, 5).Draw(rt, "at least"))}
		}
		got, err := update(t, "{"+change+"}", filters...).Apply(doc, nil)
		if err != nil {
			rt.Fatal(err)
		}
		wanted := wantedDelta(doc, got.Doc)
		if !got.Changed {
			if wanted != nil {
				rt.Fatalf("%s: not changed, but the document is", change)
			}
			return
		}
		applied++
		if len(got.Delta.Removed) > 0 || querytest.Relaxed(got.Delta.Updated) != querytest.Relaxed(wanted) {
			rt.Fatalf("%s on %s: got %s, want %s", change, querytest.Relaxed(doc), deltaText(got.Delta), querytest.Relaxed(wanted))
		}
	})
	if applied == 0 {
		t.Error("no update was applied")
	}
}

// wantedDelta is the rule, by comparison of the array o before and after; nil
// where nothing has changed.
func wantedDelta(before, after bson.Raw) bson.Raw {
	old, _ := bsonkit.Get(before, "o")
	now, _ := bsonkit.Get(after, "o")
	b := bsonkit.NewBuilder(nil)
	changed := 0
	elements := bsonkit.Values(now)
	last := 0
	for i, element := range bsonkit.Values(old) {
		if !element.Equal(elements[i]) {
			changed, last = changed+1, i
		}
	}
	switch changed {
	case 0:
		return nil
	case 1:
		b.Append("o."+strconv.Itoa(last), elements[last])
	default:
		b.Append("o", now)
	}
	return b.Finish()
}
