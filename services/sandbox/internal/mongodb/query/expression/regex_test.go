package expression_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
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
	search, err := expression.Compile(bsonkit.Nest([]string{"$regexMatch"}, bsonkit.Document(marshal(f, bson.D{
		{Key: "input", Value: "$s"}, {Key: "regex", Value: "$p"}, {Key: "options", Value: "$o"},
	}))), expression.Env{})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, pattern, options, text string) {
		re, err := expression.CompileRegex(pattern, options)
		if err != nil {
			return
		}
		matches := re.Match([]byte(text))
		doc, err := bson.Marshal(bson.D{{Key: "p", Value: pattern}, {Key: "o", Value: options}, {Key: "s", Value: text}})
		if err != nil {
			return // a pattern that is no text
		}
		found, err := search.Eval(doc)
		if err == nil && found.Boolean() != matches {
			t.Errorf("%q on %q: Match says %v, $regexMatch %v", pattern, text, matches, found)
		}
	})
}

// TestRegex_FindsInLongTextsWhatIsThere holds the search that can be interrupted
// against the standard library's own.
func TestRegex_FindsInLongTextsWhatIsThere(t *testing.T) {
	t.Parallel()
	input := strings.Repeat("-", 64<<10) + "foo barfoo\nfoo é aab\nÉé b\xff-"
	doc, err := bson.Marshal(bson.D{{Key: "s", Value: input}})
	if err != nil {
		t.Fatal(err)
	}
	for _, pattern := range []string{
		`\bfoo`, `\Bfoo`, `^[fo]+`, `(?m)^[fo]+`, `(?m)[ob]$`, `\A-{3}`, `-{1000}`, `(a)|(b)`, `o*[ab]`, `[fé]x*`, `x*\n`, `\n|x*?é`, `(?i)é+`, `[^-]+?\z`,
		`\b`, `(?m:^)`, `([fb])(o|a)*`, `é|\b|[a-z]+`, `(?s).-\z`,
	} {
		e, err := expression.Compile(bsonkit.Nest([]string{"$regexFindAll"}, bsonkit.Document(marshal(t, bson.D{{Key: "input", Value: "$s"}, {Key: "regex", Value: pattern}}))), expression.Env{})
		if err != nil {
			t.Fatal(err)
		}
		v, err := e.Eval(doc)
		if err != nil {
			t.Errorf("%s: %v", pattern, err)
			continue
		}
		var got []string
		for _, found := range bsonkit.Values(v) {
			match, _ := bsonkit.Get(found.Value, "match")
			at, _ := bsonkit.Get(found.Value, "idx")
			captures, _ := bsonkit.Get(found.Value, "captures")
			got = append(got, fmt.Sprintf("%s at %d with %d", bsonkit.Text(match), at.Int32(), len(bsonkit.Values(captures))))
		}
		var want []string
		re := regexp.MustCompile(pattern)
		for _, at := range re.FindAllStringSubmatchIndex(input, -1) {
			want = append(want, fmt.Sprintf("%s at %d with %d", input[at[0]:at[1]], utf8.RuneCountInString(input[:at[0]]), re.NumSubexp()))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %.300q, want %.300q", pattern, got, want)
		}
	}
}

func marshal(t testing.TB, v any) bson.Raw {
	t.Helper()
	doc, err := bson.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// A pattern that is too large is not looked at: it would take a stack as deep as it has
// parentheses.
func TestRegex_APatternHasABound(t *testing.T) {
	t.Parallel()
	const most = 32_764
	for _, pattern := range []string{"(?=" + strings.Repeat("(", 12<<20), strings.Repeat("a", most+1)} {
		if _, err := expression.CompileRegex(pattern, ""); !mongoerr.Is(err, 51091) {
			t.Errorf("%d bytes: got %v, want them refused", len(pattern), err)
		}
	}
	if _, err := expression.CompileRegex(strings.Repeat("a", most), ""); err != nil {
		t.Errorf("as large as it may be: got %v", err)
	}
}
