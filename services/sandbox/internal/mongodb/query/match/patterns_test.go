package match_test

import (
	"fmt"
	"strings"
	"testing"

	"changerelay/services/sandbox/internal/mongodb/mongoerr"
	"changerelay/services/sandbox/internal/mongodb/query/match"
	"changerelay/services/sandbox/internal/mongodb/query/querytest"
)

// A pattern of a few bytes may stand for a program of many.
func TestCompile_BoundsTheRegularExpressionsOfAFilter(t *testing.T) {
	t.Parallel()
	const large, long = `{"$regularExpression":{"pattern":"x{1000}","options":""}}`, 3000
	list := func(n int, element func(i int) string) string {
		elements := make([]string, n)
		for i := range elements {
			elements[i] = element(i)
		}
		return strings.Join(elements, ",")
	}
	fields := func(format string) func(int) string {
		return func(i int) string { return fmt.Sprintf(format, i, large) }
	}
	same := func(text string) func(int) string { return func(int) string { return text } }
	for _, c := range []struct {
		name, filter string
		want         mongoerr.Code
	}{
		{"$in", `{"a":{"$in":[` + list(long, same(large)) + `]}}`, mongoerr.ExceededMemoryLimit},
		{"$all", `{"a":{"$all":[` + list(long, same(large)) + `]}}`, mongoerr.ExceededMemoryLimit},
		{"$or", `{"$or":[` + list(long, same(`{"a":`+large+`}`)) + `]}`, mongoerr.ExceededMemoryLimit},
		{"$not", `{` + list(long, fields(`"f%d":{"$not":%s}`)) + `}`, mongoerr.ExceededMemoryLimit},
		{"$regex", `{` + list(long, fields(`"f%d":{"$regex":%s}`)) + `}`, mongoerr.ExceededMemoryLimit},
		{"$elemMatch", `{"a":{"$elemMatch":{"$in":[` + list(long, same(large)) + `]}}}`, mongoerr.ExceededMemoryLimit},
		{"a schema", `{"$jsonSchema":{"allOf":[` + list(long, same(`{"pattern":"x{1000}"}`)) + `]}}`, mongoerr.ExceededMemoryLimit},
		{
			"a schema's fields", `{"$jsonSchema":{"patternProperties":{` + list(long, func(i int) string { return fmt.Sprintf(`"f%dx{1000}":{}`, i) }) + `}}}`,
			mongoerr.ExceededMemoryLimit,
		},
		{"some large ones", `{"a":{"$in":[` + list(100, same(large)) + `]}}`, 0},
		{"many small ones", `{"a":{"$in":[` + list(long, same(`{"$regularExpression":{"pattern":"^abc","options":""}}`)) + `]}}`, 0},
		{"letters", `{"a":{"$in":[` + list(1000, same(`{"$regularExpression":{"pattern":"\\pL{1,20}","options":""}}`)) + `]}}`, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			env, asked := querytest.Env(), 0
			env.Interrupted = func() error {
				asked++
				return nil
			}
			_, err := match.Compile(querytest.Document(t, c.filter), env)
			querytest.CheckCode(t, err, c.want)
			if most := 2000; asked > most && c.want != 0 || asked == 0 {
				t.Errorf("got %d patterns compiled, want some and at most %d", asked, most)
			}
		})
	}
}
