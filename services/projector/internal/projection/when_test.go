package projection_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/projector/internal/projection"
)

// declare loads one projection of events Happened, of which the lines say more.
func declare(t *testing.T, lines ...string) projection.Projections {
	t.Helper()
	projections, err := projection.Parse("p.yaml", []byte(declaration(lines...)))
	if err != nil {
		t.Fatal(err)
	}
	return projections
}

func declaration(lines ...string) string {
	return "projections:\n- name: p\n  collection: c\n" + strings.Join(lines, "\n") + "\n"
}

// made are the writes of an event with data over a document; nil where there is none.
func made(t *testing.T, projections projection.Projections, data string, document bson.M) ([]projection.Write, error) {
	t.Helper()
	var state bson.Raw
	if document != nil {
		var err error
		if state, err = bson.Marshal(document); err != nil {
			t.Fatal(err)
		}
	}
	writes, err := projections.Decide(change(t, data))
	for i := range writes {
		if writes[i].Complete == nil || err != nil {
			continue
		}
		writes[i], err = writes[i].Complete(state)
	}
	return writes, err
}

// updateOf is a write in words.
func updateOf(t *testing.T, w projection.Write) string {
	t.Helper()
	switch {
	case w.Passed:
		return "passed"
	case w.Kept:
		return "kept"
	case w.Delete:
		return "deleted"
	}
	text, err := bson.MarshalExtJSON(w.Update, false, false)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func updatesOf(t *testing.T, writes []projection.Write) string {
	t.Helper()
	var all []string
	for _, w := range writes {
		all = append(all, updateOf(t, w))
	}
	return strings.Join(all, " ")
}

func TestWhen_AnEventForWhichItIsFalseChangesNothing(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		lines          []string
		data           string
		document       bson.M
		want, wantElse string // of data with n: 1, and of data with n: -1
	}{
		"of an event":                     {[]string{"  on: {Happened: {when: data.n > 0, inc: {n: data.n}}}"}, "", nil, `{"$inc":{"n":1}}`, "kept"},
		"of a deletion":                   {[]string{"  on: {Happened: {when: data.n > 0, delete: true}}"}, "", nil, "deleted", "kept"},
		"of a field":                      {[]string{"  on: {Happened: {set: {a: 1, b: {value: data.n, when: data.n > 0}}}}"}, "", nil, `{"$set":{"a":1,"b":1}}`, `{"$set":{"a":1}}`},
		"of an operator's only field":     {[]string{"  on: {Happened: {set: {a: 1}, inc: {b: {value: data.n, when: data.n > 0}}}}"}, "", nil, `{"$set":{"a":1},"$inc":{"b":1}}`, `{"$set":{"a":1}}`},
		"of every field":                  {[]string{"  on: {Happened: {push: {b: {value: data.n, when: data.n > 0, last: 2}}}}"}, "", nil, `{"$push":{"b":{"$each":[1],"$slice":-2}}}`, "kept"},
		"of a projection with a version":  {[]string{"  version: 2", "  on: {Happened: {when: data.n > 0, inc: {n: 1}}}"}, "", nil, `{"$inc":{"n":1}}`, "kept passed"},
		"of a projection with a key":      {[]string{"  key: data.missing ?? data.k", "  on: {Happened: {when: data.n > 0, inc: {n: 1}}}"}, "", nil, `{"$inc":{"n":1}}`, "passed"},
		"by the document":                 {[]string{"  on: {Happened: {when: state.n + data.n > 5, inc: {n: 1}}}"}, "", bson.M{"n": 5}, `{"$inc":{"n":1}}`, "kept"},
		"by the document, with a version": {[]string{"  version: 2", "  on: {Happened: {when: state.n + data.n > 5, inc: {n: 1}}}"}, "", bson.M{"n": 5}, `{"$inc":{"n":1}} passed`, "kept passed"},
		"by there being a document":       {[]string{"  on: {Happened: {when: state == nil and data.n > 0, set: {n: 1}}}"}, "", nil, `{"$set":{"n":1}}`, "kept"},
		"by a field of the document":      {[]string{"  on: {Happened: {set: {a: 1, n: {value: data.n, when: data.n > (state?.n ?? 0)}}}}"}, "", bson.M{"n": 0}, `{"$set":{"a":1,"n":1}}`, `{"$set":{"a":1}}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			projections := declare(t, tt.lines...)
			for data, want := range map[string]string{`{"n":1,"k":"k"}`: tt.want, `{"n":-1,"k":"k"}`: tt.wantElse} {
				writes, err := made(t, projections, data, tt.document)
				if err != nil || updatesOf(t, writes) != want {
					t.Errorf("%s: got %s and %v, want %s", data, updatesOf(t, writes), err, want)
				}
			}
		})
	}
}

// Where a condition is false, nothing else of the event is looked at: what would fail
// does not halt the aggregate.
func TestWhen_WhatItKeepsOutIsNotEvaluated(t *testing.T) {
	t.Parallel()
	for _, lines := range [][]string{
		{"  on: {Happened: {when: '\"n\" in data', set: {n: data.n}}}"},
		{"  key: data.k", "  on: {Happened: {when: '\"n\" in data', set: {n: data.n}}}"},
		{"  on: {Happened: {set: {n: {value: data.n, when: '\"n\" in data'}}}}"},
	} {
		if writes, err := made(t, declare(t, lines...), `{}`, nil); err != nil || len(writes) != 1 || writes[0].Changes() {
			t.Errorf("%q: got %+v and %v, want nothing changed", lines, writes, err)
		}
	}
}

// A condition that cannot be told is no false one: the event halts its aggregate, and
// the reason names projection, event type and field.
func TestWhen_WhatIsNeitherTrueNorFalseFails(t *testing.T) {
	t.Parallel()
	for lines, want := range map[string]string{
		"  on: {Happened: {when: data.n, set: {a: 1}}}":                       `projection "p", event type "Happened": when: the value is of type int32, neither true nor false`,
		"  on: {Happened: {when: data.x > 1, set: {a: 1}}}":                   `projection "p", event type "Happened": when: data.x is missing`,
		"  on: {Happened: {set: {a: {value: 1, when: data?.x}}}}":             `projection "p", event type "Happened": set "a": when: the value is of type <nil>, neither true nor false`,
		"  on: {Happened: {when: state.x > 1, set: {a: 1}}}":                  `projection "p", event type "Happened": when: state has no value`,
		"  on: {Happened: {set: {a: 'repeat(state?.t ?? \"x\", 20000000)'}}}": `projection "p", event type "Happened": set "a": makes a text of more than 16777216 bytes`,
	} {
		if writes, err := made(t, declare(t, lines), `{"n":1}`, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v and %v, want %s", lines, writes, err, want)
		}
	}
}

func TestState_IsTheDocumentAsItWas(t *testing.T) {
	t.Parallel()
	document := bson.M{"total": 7, "lines": bson.A{"a", "b"}, "address": bson.M{"city": "Ulm"}}
	for expression, want := range map[string]string{
		`state.total + data.n`: `8`, `state.address.city`: `"Ulm"`, `state.lines[0]`: `"a"`, `len(state.lines)`: `2`, `state?.none`: `null`, `state == nil`: `false`,
		`"total" in state`: `true`, `state.address`: `{"city":"Ulm"}`,
	} {
		writes, err := made(t, declare(t, "  on: {Happened: {set: {v: '"+expression+"'}}}"), `{"n":1}`, document)
		if err != nil || updatesOf(t, writes) != `{"$set":{"v":`+want+`}}` {
			t.Errorf("%s: got %s and %v, want %s", expression, updatesOf(t, writes), err, want)
		}
	}
	for expression, want := range map[string]string{`state == nil`: `true`, `state?.total ?? 0`: `0`, `state?.address?.city`: `null`} {
		writes, err := made(t, declare(t, "  on: {Happened: {set: {v: '"+expression+"'}}}"), `{"n":1}`, nil)
		if err != nil || updatesOf(t, writes) != `{"$set":{"v":`+want+`}}` {
			t.Errorf("without a document, %s: got %s and %v, want %s", expression, updatesOf(t, writes), err, want)
		}
	}
}

// What asks for nothing of the document costs no look at it.
func TestState_IsLookedUpWhereItIsAskedForAlone(t *testing.T) {
	t.Parallel()
	for lines, want := range map[string]bool{
		"  on: {Happened: {when: data.state == 1, set: {state: data.state}}}":           false,
		"  on: {Happened: {when: state == nil, set: {a: 1}}}":                           true,
		"  on: {Happened: {set: {a: 1}, inc: {b: state.n}}}":                            true,
		"  on: {Happened: {push: {b: {value: 1, last: 2, when: state.n == 1}}}}":        true,
		"  on: {Happened: {set: {a: 1}}, Else: {set: {a: state.a}}}":                    false,
		"  on: {Happened: {set: {a: 'map(data.l, {let x = #; x + state.n})'}}}":         true,
		"  on: {Happened: {set: {a: 'true ? 1 : state.n'}}, Else: {set: {a: 1}}}":       true,
		"  on: {Happened: {set: {a: '\"state\"', b: '{state: 1}.state', c: event.id}}}": false,
	} {
		writes, err := declare(t, lines).Decide(change(t, `{"state":1}`))
		if err != nil || slices.ContainsFunc(writes, func(w projection.Write) bool { return w.Complete != nil }) != want {
			t.Errorf("%s: got %+v and %v, want that it asks for the document: %t", lines, writes, err, want)
		}
	}
}

func TestWhen_LoadReportsWhatIsWrongWithConditions(t *testing.T) {
	t.Parallel()
	const of = `p.yaml:4: projection "p": event type "Happened": `
	for lines, want := range map[string]string{
		"  on: {Happened: {when: data., set: {a: 1}}}":                               of + `when: expression "data."`,
		"  on: {Happened: {when: true, set: {a: 1}}}":                                of + `when is not an expression`,
		"  on: {Happened: {when: [1], set: {a: 1}}}":                                 of + `when is not an expression`,
		"  on: {Happened: {when: '1 + 1', set: {a: 1}}}":                             of + `when: expression "1 + 1": expected bool, but got int`,
		"  on: {Happened: {when: data.n > 1}}":                                       of + `has no operators`,
		"  on: {Happened: {set: {a: {value: 1, when: 1}}}}":                          of + `set "a": when is not an expression`,
		"  on: {Happened: {set: {a: {value: 1, when: '\"x\"'}}}}":                    of + `set "a": when: expression "\"x\"": expected bool, but got string`,
		"  on: {Happened: {set: {a: {when: data.n > 1}}}}":                           of + `set "a": value is missing`,
		"  on: {Happened: {set: {a: {value: 1, last: 2}}}}":                          of + `set "a": unknown key "last"; there are value and when`,
		"  on: {Happened: {push: {a: {value: 1, first: 2}}}}":                        of + `push "a": unknown key "first"; there are value, each, when and last`,
		"  on: {Happened: {inc: {a: {value: true, when: data.n > 1}}}}":              of + `inc "a": the value is not a number`,
		"  on: {Happened: {wenn: data.n > 1}}":                                       of + `unknown operator "wenn"; there are set, unset`,
		"  key: data.k\n  on: {Happened: {set: {a: state.a}}}":                       `p.yaml:5: projection "p": event type "Happened": set "a": state is not for a projection with a key: many aggregates`,
		"  on: {Happened: {when: state == nil, set: {a: 1}}}\n  key: data.k":         of + `when: state is not for a projection with a key: many aggregates`,
		"  on: {Happened: {set: {a: {value: 1, when: state.a > 1}}}}\n  key: data.k": of + `set "a": when: state is not for a projection with a key: many aggregates`,
		"  key: state.k\n  on: {Happened: {set: {a: 1}}}":                            `p.yaml:4: projection "p": key "key": state is not for a projection with a key: many aggregates`,
	} {
		if _, err := projection.Parse("p.yaml", []byte(declaration(lines))); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s:\n got %v\nwant %s", lines, err, want)
		}
	}
}

func TestState_ACompletionEndsWithItsContext(t *testing.T) {
	t.Parallel()
	c := change(t, `{}`)
	ctx, cancel := context.WithCancel(t.Context())
	c.Within(ctx)
	cancel()
	writes, err := declare(t, "  on: {Happened: {set: {v: 'let l = 1..300; all(l, all(l, state == nil))'}}}").Decide(c)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := writes[0].Complete(nil); !errors.Is(err, projection.ErrInterrupted) {
		t.Errorf("got %v, want it interrupted", err)
	}
}
