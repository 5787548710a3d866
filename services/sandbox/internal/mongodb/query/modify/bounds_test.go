package modify_test

import (
	"strings"
	"testing"

	"changerelay/services/sandbox/internal/mongodb/mongoerr"
	"changerelay/services/sandbox/internal/mongodb/query/modify"
	"changerelay/services/sandbox/internal/mongodb/query/querytest"
)

// A path is no longer than a document may be deep, or resolving it takes long.
func TestCompile_RefusesAPathThatIsTooDeep(t *testing.T) {
	t.Parallel()
	const most = modify.MaxStoredDepth
	for _, c := range []struct {
		name, update string
		want         mongoerr.Code
	}{
		{"as deep as may be", `{"$set":{"l.$[]":1,"P":1}}`, 0},
		{"one more", `{"$set":{"l.$[]":1,"P.a":1}}`, mongoerr.Overflow},
		{"of a megabyte", `{"$set":{"l.$[]":1,"M":1}}`, mongoerr.Overflow},
		{"that is unset", `{"$unset":{"M":1}}`, mongoerr.Overflow},
		{"that is renamed", `{"$rename":{"M":"b"}}`, mongoerr.Overflow},
		{"that a field is renamed to", `{"$rename":{"b":"M"}}`, mongoerr.Overflow},
	} {
		fill := strings.NewReplacer("P", strings.Repeat("a.", most-1)+"a", "M", strings.Repeat("a.", 1<<19)+"a")
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := modify.Compile(querytest.Value(t, fill.Replace(c.update)), modify.Options{Env: querytest.Env()})
			querytest.CheckCode(t, err, c.want)
		})
	}
}

// What $[] stands for may be many times what the client has sent.
func TestUpdate_WhatAllElementsTakeIsBounded(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("n", 1<<20)
	const elements = 1_000
	for _, c := range []struct {
		name, element, update string
		want                  mongoerr.Code
		most                  int // elements that are looked at
	}{
		{"a value for each", `{}`, `{"$set":{"l.$[].a.b":"LONG"}}`, 17419, 20},
		{"a value that is pushed to each", `[]`, `{"$push":{"l.$[]":"LONG"}}`, 17419, 20},
		{"a path to each", `{}`, `{"$unset":{"l.$[].LONG":1}}`, mongoerr.ExceededMemoryLimit, 200},
		{"a value that each has", `{"a":"LONG"}`, `{"$set":{"l.$[].a":"LONG"}}`, 0, elements},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			fill := strings.NewReplacer("LONG", long)
			env, asked := querytest.Env(), 0
			env.Interrupted = func() error {
				asked++
				return nil
			}
			u, err := modify.Compile(querytest.Value(t, fill.Replace(c.update)), modify.Options{Env: env})
			querytest.CheckCode(t, err, 0)
			list := strings.Repeat(c.element+",", min(elements, 1<<24/len(fill.Replace(c.element)))-1) + c.element
			_, err = u.Apply(querytest.Document(t, fill.Replace(`{"_id":1,"l":[`+list+`]}`)), nil)
			querytest.CheckCode(t, err, c.want)
			if asked > c.most {
				t.Errorf("got %d elements looked at, want at most %d", asked, c.most)
			}
		})
	}
}
