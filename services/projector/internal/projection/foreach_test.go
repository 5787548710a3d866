package projection_test

import (
	"fmt"
	"strings"
	"testing"

	"changerelay/services/projector/internal/projection"
)

func TestForEach_EachElementChangesItsDocument(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ lines, data, want string }{
		"elements": {
			"  key: item.sku\n  on: {Happened: {forEach: data.lines, inc: {sold: item.n}, set: {last: event.id}}}",
			`{"lines":[{"sku":"a","n":1},{"sku":"b","n":2}]}`,
			`a {"$inc":{"sold":1},"$set":{"last":"id-1"}} b {"$inc":{"sold":2},"$set":{"last":"id-1"}}`,
		},
		"elements with one key": {
			"  key: item\n  on: {Happened: {forEach: data.tags, inc: {n: 1}}}", `{"tags":["x","y","x"]}`,
			`x {"$inc":{"n":1}} y {"$inc":{"n":1}} x {"$inc":{"n":1}}`,
		},
		"a list that is calculated": {
			"  key: item.k\n  on: {Happened: {forEach: 'map(filter(data.l, # > 1), {{k: string(#)}})', set: {of: data.l}}}", `{"l":[1,2,3]}`,
			`2 {"$set":{"of":[1,2,3]}} 3 {"$set":{"of":[1,2,3]}}`,
		},
		"a condition of each": {
			"  key: item.sku\n  on: {Happened: {forEach: data.lines, when: item.n > 1, delete: true}}", `{"lines":[{"sku":"a","n":1},{"sku":"b","n":2}]}`, `b deleted`,
		},
		"a condition that holds for none": {
			"  key: item.sku\n  on: {Happened: {forEach: data.lines, when: item.n > 2, delete: true}}", `{"lines":[{"sku":"a","n":1}]}`, `<nil> passed`,
		},
		"an empty list": {"  key: item.sku\n  on: {Happened: {forEach: 'data?.lines ?? []', set: {a: item.a}}}", `{}`, `<nil> passed`},
		"a key for both kinds of events": {
			"  key: item?.sku ?? data.sku\n  on: {Happened: {set: {n: 1}}, Else: {forEach: data.lines, set: {n: 2}}}", `{"sku":"s"}`, `s {"$set":{"n":1}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			writes, err := declare(t, tt.lines).Decide(change(t, tt.data))
			var got []string
			for _, w := range writes {
				got = append(got, fmt.Sprint(w.ID), updateOf(t, w))
			}
			if err != nil || strings.Join(got, " ") != tt.want {
				t.Errorf("got %s and %v, want %s", got, err, tt.want)
			}
		})
	}
}

// An event that cannot be applied with all of its elements is applied with none: the
// reason names the element, and the field or the bound.
func TestForEach_AnElementThatFailsFailsTheEvent(t *testing.T) {
	t.Parallel()
	for lines, want := range map[string]string{
		"  key: item.sku\n  on: {Happened: {forEach: data.lines, inc: {n: item.x}}}":                              `projection "p", event type "Happened": forEach, element 1: inc "n": item.x is missing`,
		"  key: item.x\n  on: {Happened: {forEach: data.lines, inc: {n: 1}}}":                                     `forEach, element 1: key: item.x is missing`,
		"  key: item.sku\n  on: {Happened: {forEach: data.none, inc: {n: 1}}}":                                    `forEach: data.none is missing`,
		"  key: item.sku\n  on: {Happened: {forEach: data.n, inc: {n: 1}}}":                                       `forEach: the value is of BSON type 32-bit integer, not a list`,
		"  key: item\n  on: {Happened: {forEach: 1..1001, inc: {n: 1}}}":                                          `forEach: the list has 1001 elements, and one event may have at most 1000`,
		"  key: item\n  on: {Happened: {forEach: 1..1000, inc: {n: 'count(1..10000, true)'}}}":                    `inc "n": takes more than 3000000 steps`,
		"  key: item\n  on: {Happened: {forEach: 1..1000, set: {n: 'repeat(\"x\", 100000)'}}}":                    `set "n": makes a result of more than 16777216 bytes`,
		"  key: item.sku\n  on: {Happened: {forEach: data.lines, set: {n: {value: 1, when: item.x == 1}}}}":       `forEach, element 1: set "n": when: item.x is missing`,
		"  key: item?.sku ?? data.sku\n  on: {Happened: {set: {n: 1}}, Else: {forEach: data.lines, set: {n: 2}}}": `key: data.sku is missing`,
	} {
		writes, err := declare(t, lines).Decide(change(t, `{"n":1,"lines":[{"sku":"a","x":1},{"sku":"b"}]}`))
		if err == nil || !strings.Contains(err.Error(), want) || writes != nil {
			t.Errorf("%s:\n got %d writes and %v\nwant %s", lines, len(writes), err, want)
		}
	}
}

func TestForEach_LoadReportsWhatWouldBreakAPromise(t *testing.T) {
	t.Parallel()
	const of = `p.yaml:5: projection "p": event type "Happened": `
	for lines, want := range map[string]string{
		"\n  on: {Happened: {forEach: data.lines, inc: {n: 1}}}":           of + `forEach is for a projection with a key: without one each element would change the aggregate's one document`,
		"  key: item.k\n  on: {Happened: {forEach: data., inc: {n: 1}}}":   of + `forEach: expression "data."`,
		"  key: item.k\n  on: {Happened: {forEach: [1, 2], inc: {n: 1}}}":  of + `forEach is not an expression`,
		"  key: item.k\n  on: {Happened: {forEach: item.l, inc: {n: 1}}}":  of + `forEach: expression "item.l", column 1: unknown name item`,
		"  key: item.k\n  on: {Happened: {forEach: state.l, inc: {n: 1}}}": of + `forEach: state is not for a projection with a key`,
		"  key: data.k\n  on: {Happened: {inc: {n: item.n}}}":              of + `inc "n": expression "item.n", column 1: unknown name item`,
		"  key: data.k\n  on: {Happened: {when: item.n > 1, inc: {n: 1}}}": of + `when: expression "item.n > 1", column 1: unknown name item`,
		"  key: data.k\n  on: {Happened: {forEach: data.l}}":               of + `has no operators`,
		"  key: item.k\n  on: {Happened: {inc: {n: 1}}}":                   `p.yaml:4: projection "p": key: item is an element of a forEach, and no event type has one`,
		"\n  on: {Happened: {set: {a: {each: data.l, when: data.n > 1}}}}": of + `set "a": unknown key "each"; there are value and when`,
		"\n  on: {Happened: {push: {a: {each: data.l, value: 1}}}}":        of + `push "a": value stands beside each`,
		"\n  on: {Happened: {pull: {a: {each: 5}}}}":                       of + `pull "a": each is not an expression`,
		"\n  on: {Happened: {addToSet: {a: {each: data.l, last: 3}}}}":     of + `addToSet "a": unknown key "last"; there are value, each and when`,
	} {
		if _, err := projection.Parse("p.yaml", []byte(declaration(lines))); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s:\n got %v\nwant %s", lines, err, want)
		}
	}
}

// An array takes each element of a list by itself, whatever it looks like.
func TestForEach_AnArrayTakesEachElement(t *testing.T) {
	t.Parallel()
	const lines = "  on: {Happened: {push: {a: {each: data.l, last: 3}}, addToSet: {b: {each: 'map(data.l, #)'}}, pull: {c: {each: data.l, when: data.n == 1}}}}"
	writes, err := declare(t, lines).Decide(change(t, `{"n":1,"l":[1,{"$gte":0},[2]]}`))
	const list = `[1,{"$gte":0},[2]]`
	if want := `{"$push":{"a":{"$each":` + list + `,"$slice":-3}},"$addToSet":{"b":{"$each":` + list + `}},"$pullAll":{"c":` + list + `}}`; err != nil || updatesOf(t, writes) != want {
		t.Errorf("got %s and %v, want %s", updatesOf(t, writes), err, want)
	}
	if _, err := declare(t, lines).Decide(change(t, `{"n":1,"l":{"a":1}}`)); err == nil || !strings.Contains(err.Error(), `push "a": the value is of BSON type embedded document, not a list`) {
		t.Errorf("what is no list: got %v, want it refused", err)
	}
}
