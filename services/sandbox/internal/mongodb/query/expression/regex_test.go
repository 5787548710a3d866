package expression_test

import (
	"strings"
	"testing"
	"time"

	"changerelay/services/sandbox/internal/mongodb/query/expression"
)

func TestRegex_HasTheServersSyntax(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern, options, text string
		want                   bool
	}{
		{`^ab`, "u", "abc", true},
		{`a(?=b)`, "", "ab", true},
		{`a(?=b)`, "", "ac", false},
		{`a(?!b)`, "", "ab", false},
		{`(?<=x)a`, "", "xa", true},
		{`(?<!x)a`, "", "xa", false},
		{`(a|b)\1`, "", "abb", true},
		{`(a|b)\1`, "", "ab", false},
		{`(?<q>['"]).*\k<q>`, "", `say "x"`, true},
		{`a++b`, "", "aaab", true},
		{`a++ab`, "", "aaab", false},
		{`(?:x[a+]*+)+y`, "", "xa+y", true},
		{`(?>a+)b`, "i", "AAB", true},
		{`a$`, "", "a\n", true},
		{`a$`, "", "a\nb", false},
		{`a$`, "m", "a\nb", true},
		{`é(?=ß)`, "", "xéß", true},
	} {
		re, err := expression.CompileRegex(c.pattern, c.options)
		if err != nil {
			t.Errorf("%s: %v", c.pattern, err)
			continue
		}
		if got := re.Match([]byte(c.text)); got != c.want {
			t.Errorf("%s with %q on %q: got %v, want %v", c.pattern, c.options, c.text, got, c.want)
		}
	}
}

func TestRegex_FindsPlacesInBytes(t *testing.T) {
	t.Parallel()
	check(t, map[string]string{
		`{"$regexFind":{"input":"éaxb","regex":"(a)(?=x)(y)?"}}`: `{"match":"a","idx":1,"captures":["a",null]}`,
		`{"$regexFindAll":{"input":"aab","regex":"a(?!b)"}}`:     `[{"match":"a","idx":0,"captures":[]}]`,
	})
}

func TestRegex_TakesNoLongerThanItMay(t *testing.T) {
	t.Parallel()
	re, err := expression.CompileRegex(`^(?=(a+)+$)`, "")
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if re.Match([]byte(strings.Repeat("a", 40) + "b")) {
		t.Error("got a match, want none")
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("took %s", took)
	}
}

func FuzzRegex(f *testing.F) {
	f.Add(`a++(?=b)[^]x]\1(?<n>y)`, "imsxu", "aab")
	f.Add(`(`, "", "")
	f.Add(`\`, "", "x")
	f.Add(`(?<`, "", "x")
	f.Fuzz(func(t *testing.T, pattern, options, text string) {
		re, err := expression.CompileRegex(pattern, options)
		if err != nil {
			return
		}
		matches := re.Match([]byte(text))
		if found, err := re.Find(text, 1); err == nil && (len(found) > 0) != matches {
			t.Errorf("%q on %q: Match says %v, Find %v", pattern, text, matches, found)
		}
	})
}
