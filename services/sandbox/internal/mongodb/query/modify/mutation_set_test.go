package modify_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"changerelay/services/sandbox/internal/mongodb/query/collation"
	"changerelay/services/sandbox/internal/mongodb/query/modify"
	"changerelay/services/sandbox/internal/mongodb/query/querytest"
)

// Each value is looked up by its key: comparing each with each would fold all of them every time.
func TestUpdate_SetsTakeTimeByTheirElements(t *testing.T) {
	const elements = 300
	var texts []string
	for i := range elements {
		texts = append(texts, fmt.Sprintf("%q", fmt.Sprint("text ", i)))
	}
	list := "[" + strings.Join(texts, ",") + "]"
	doc := querytest.Document(t, `{"_id":1,"a":`+list+`}`)
	by, err := collation.Parse(querytest.Document(t, `{"locale":"en","strength":2}`))
	if err != nil {
		t.Fatal(err)
	}
	for json, want := range map[string]string{
		`{"$addToSet":{"a":{"$each":` + strings.ToUpper(list) + `}}}`: "nil",
		`{"$pullAll":{"a":` + strings.ToUpper(list) + `}}`:            `{"a":[]} -`,
	} {
		o := modify.Options{Env: querytest.Env()}
		o.Env.Collation = by
		var got modify.Applied
		allocated := testing.AllocsPerRun(1, func() {
			u, err := modify.Compile(querytest.Value(t, json), o)
			if err != nil {
				t.Fatal(err)
			}
			if got, err = u.Apply(doc, nil); err != nil {
				t.Fatal(err)
			}
		})
		if text := deltaText(got.Delta); text != want {
			t.Errorf("%.20s: got %s, want %s", json, text, want)
		}
		if allocated > 100*elements {
			t.Errorf("%.20s: got %.0f allocations for %d elements, want some for each", json, allocated, elements)
		}
	}
}

func TestUpdate_SetsCanBeInterrupted(t *testing.T) {
	t.Parallel()
	doc := querytest.Document(t, `{"_id":1,"a":[1,2,3]}`)
	for _, json := range []string{`{"$addToSet":{"a":4}}`, `{"$pullAll":{"a":[1]}}`, `{"$pull":{"a":{"$gt":1}}}`} {
		o := modify.Options{Env: querytest.Env()}
		stop, asked := errors.New("interrupted"), 0
		o.Env.Interrupted = func() error {
			if asked++; asked > 3 {
				return stop
			}
			return nil
		}
		u, err := modify.Compile(querytest.Value(t, json), o)
		if err != nil {
			t.Fatal(err)
		}
		asked = 1
		if _, err := u.Apply(doc, nil); !errors.Is(err, stop) {
			t.Errorf("%s: got error %v, want that it was interrupted", json, err)
		}
	}
}
