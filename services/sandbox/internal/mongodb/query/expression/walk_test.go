package expression_test

import (
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/query/expression"
)

// manyElements are expressions over $a and $p, arrays of a thousand small elements, over $o, a
// document of as many fields, and over $s, a text. Only who counts what it goes through looks up
// while it evaluates them.
func manyElements() []string {
	return []string{
		`{"$size":"$a"}`,
		`{"$arrayElemAt":["$a",-1]}`,
		`{"$arrayElemAt":["$a",999]}`,
		`{"$first":{"$slice":["$a",1]}}`,
		`{"$last":"$a"}`,
		`{"$in":[-1,"$a"]}`,
		`{"$indexOfArray":["$a",-1]}`,
		`{"$concatArrays":["$none","$a"]}`,
		`{"$reverseArray":"$a"}`,
		`{"$slice":["$a",1]}`,
		`{"$slice":["$a",-1,1]}`,
		`{"$range":[0,{"$add":["$n",1000]}]}`,
		`{"$zip":{"inputs":["$a","$none"],"useLongestLength":true}}`,
		`{"$filter":{"input":"$a","cond":true}}`,
		`{"$map":{"input":"$a","in":1}}`,
		`{"$reduce":{"input":"$a","initialValue":1,"in":1}}`,
		`{"$setUnion":["$a","$none"]}`,
		`{"$setIntersection":["$a","$none"]}`,
		`{"$setIntersection":["$none","$a"]}`,
		`{"$setDifference":["$a","$none"]}`,
		`{"$setDifference":["$none","$a"]}`,
		`{"$setEquals":["$a","$none"]}`,
		`{"$setEquals":["$none","$a"]}`,
		`{"$setIsSubset":["$a","$none"]}`,
		`{"$setIsSubset":["$none","$a"]}`,
		`{"$allElementsTrue":["$a"]}`,
		`{"$anyElementTrue":["$zeros"]}`,
		`{"$sum":"$a"}`,
		`{"$avg":"$a"}`,
		`{"$min":"$a"}`,
		`{"$max":"$a"}`,
		`{"$stdDevPop":"$a"}`,
		`{"$stdDevSamp":"$a"}`,
		`{"$mergeObjects":"$o"}`,
		`{"$mergeObjects":["$o","$o"]}`,
		`{"$objectToArray":"$o"}`,
		`{"$arrayToObject":"$p"}`,
		`"$p.k"`,
		`{"$let":{"vars":{"p":"$p"},"in":"$$p.k"}}`,
		`{"$split":["$s","é"]}`,
		`{"$trim":{"input":"$s","chars":"é"}}`,
		`{"$ltrim":{"input":"$s","chars":"é"}}`,
		`{"$rtrim":{"input":"$s","chars":"é"}}`,
		`{"$regexFindAll":{"input":"$s","regex":"."}}`,
	}
}

// longText are expressions over $l, a text in few pieces.
func longText() []string {
	return []string{
		`{"$concat":["$l","$l"]}`,
		`{"$toUpper":"$l"}`,
		`{"$toLower":"$l"}`,
		`{"$strcasecmp":["$l","$l"]}`,
		`{"$strLenBytes":"$l"}`,
		`{"$strLenCP":"$l"}`,
		`{"$substr":["$l",0,2]}`,
		`{"$substrBytes":["$l",0,2]}`,
		`{"$substrCP":["$l",0,2]}`,
		`{"$indexOfBytes":["$l","x"]}`,
		`{"$indexOfCP":["$l","x"]}`,
		`{"$replaceOne":{"input":"$l","find":"x","replacement":"y"}}`,
		`{"$replaceAll":{"input":"$l","find":"x","replacement":"y"}}`,
		`{"$regexMatch":{"input":"$l","regex":"x"}}`,
		`{"$regexFind":{"input":"$l","regex":"x"}}`,
		`{"$bsonSize":"$$ROOT"}`,
		`{"$binarySize":"$l"}`,
		`{"$isArray":"$l"}`,
		`{"$eq":["$l","$l"]}`,
		`{"$toString":"$l"}`,
	}
}

func manyDocument(t *testing.T) bson.Raw {
	t.Helper()
	numbers, zeros, pairs := bson.A{}, bson.A{}, bson.A{}
	var object bson.D
	for i := range 1000 {
		numbers, zeros = append(numbers, 1000+i), append(zeros, 0)
		pairs = append(pairs, bson.D{{Key: "k", Value: bsonkit.ArrayKey(i)}, {Key: "v", Value: i}})
		object = append(object, bson.E{Key: bsonkit.ArrayKey(i), Value: i})
	}
	doc, err := bson.Marshal(bson.D{
		{Key: "a", Value: numbers},
		{Key: "zeros", Value: zeros},
		{Key: "none", Value: bson.A{}},
		{Key: "n", Value: 0},
		{Key: "p", Value: pairs},
		{Key: "o", Value: object},
		{Key: "s", Value: strings.Repeat("é", 1000)},
	})
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// requireInterrupted evaluates with an interruption that is there from the beginning. Who has been
// told of it is not to ask again.
func requireInterrupted(t *testing.T, text string, doc bson.Raw) {
	t.Helper()
	interrupted, asked := errors.New("interrupted"), 0
	ask := func() error { return nil }
	e, err := expression.Compile(value(t, text), expression.Env{Interrupted: func() error { return ask() }})
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	ask = func() error {
		asked++
		return interrupted
	}
	if _, err := e.Eval(doc); !errors.Is(err, interrupted) {
		t.Errorf("%s: got error %v, want that it was interrupted", text, err)
	}
	if asked != 1 {
		t.Errorf("%s: asked %d times, want that it ends with the first", text, asked)
	}
}

func TestExpression_OperatorsAreInterruptedAmongManyElements(t *testing.T) {
	t.Parallel()
	doc := manyDocument(t)
	for _, text := range manyElements() {
		requireInterrupted(t, text, doc)
	}
}

// What an operator reads is counted before what it makes of that.
func TestExpression_ZipCountsTheRowsThatItMakes(t *testing.T) {
	t.Parallel()
	doc := manyDocument(t)
	looks := func(text string) (n int) {
		e, err := expression.Compile(value(t, text), expression.Env{Interrupted: func() error { n++; return nil }})
		if err == nil {
			_, err = e.Eval(doc)
		}
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		return n
	}
	reads, zips := looks(`{"$concatArrays":["$a","$none"]}`), looks(`{"$zip":{"inputs":["$a","$none"],"useLongestLength":true}}`)
	if zips <= reads+1 {
		t.Errorf("asked %d times in $zip, and %d times where an array is but read", zips, reads)
	}
}

func TestExpression_OperatorsAreInterruptedBeforeALongText(t *testing.T) {
	t.Parallel()
	doc, err := bson.Marshal(bson.D{{Key: "l", Value: strings.Repeat("é", 1<<18)}})
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range longText() {
		requireInterrupted(t, text, doc)
	}
}

func TestRegex_IsInterruptedWithinALongText(t *testing.T) {
	t.Parallel()
	// The text counts as fewer steps than lie between two looks.
	doc, err := bson.Marshal(bson.D{{Key: "l", Value: strings.Repeat("é", 1<<16)}})
	if err != nil {
		t.Fatal(err)
	}
	for _, operator := range []string{"$regexMatch", "$regexFind", "$regexFindAll"} {
		requireInterrupted(t, `{"`+operator+`":{"input":"$l","regex":"[xy]+"}}`, doc)
	}
}

// A constant pattern is compiled before there is a document.
func TestRegex_CompilingOneIsInterrupted(t *testing.T) {
	t.Parallel()
	interrupted := errors.New("interrupted")
	_, err := expression.Compile(value(t, `{"$regexMatch":{"input":"$l","regex":"x{1000}"}}`), expression.Env{Interrupted: func() error { return interrupted }})
	if !errors.Is(err, interrupted) {
		t.Errorf("got error %v, want that it was interrupted", err)
	}
}

// TestExpression_EveryOperatorOfArraysAndTextsIsInterrupted fails for an operator that is new in
// the files where operators go through what is long.
func TestExpression_EveryOperatorOfArraysAndTextsIsInterrupted(t *testing.T) {
	t.Parallel()
	tried := strings.Join(append(manyElements(), longText()...), "\n")
	name := regexp.MustCompile(`"(\$[a-zA-Z]+)"`)
	for _, file := range []string{"array.go", "iteration.go", "set.go", "object.go", "text.go", "accumulator.go"} {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(source)) {
			if !strings.HasPrefix(strings.TrimSpace(line), "case ") {
				continue
			}
			for _, found := range name.FindAllStringSubmatch(line, -1) {
				if expression.Known(found[1]) && !strings.Contains(tried, `"`+found[1]+`"`) {
					t.Errorf("%s: nothing tries to interrupt %s", file, found[1])
				}
			}
		}
	}
}

// TestObject_ManyFieldsAreNotComparedWithEachOther would take minutes if each field were looked for
// among all before it.
func TestObject_ManyFieldsAreNotComparedWithEachOther(t *testing.T) {
	t.Parallel()
	b := bsonkit.NewBuilder(nil)
	for i := range 200_000 {
		b.Append(bsonkit.ArrayKey(i), bsonkit.Null())
	}
	object := b.Finish()
	doc := bsonkit.Nest([]string{"o"}, bsonkit.Document(object)).Value
	for _, text := range []string{`{"$mergeObjects":["$o","$o"]}`, `{"$mergeObjects":[{"$arrayToObject":{"$slice":[{"$objectToArray":"$o"},100000]}},"$o"]}`} {
		e, err := expression.Compile(value(t, text), expression.Env{})
		if err != nil {
			t.Fatal(err)
		}
		v, err := e.Eval(doc)
		if err != nil || string(v.Value) != string(object) {
			t.Errorf("%s: got %d bytes, %v, want the same %d bytes", text, len(v.Value), err, len(object))
		}
	}
}

// TestTrim_LooksForCharactersInASet would take minutes if each character of the text were looked for
// among all that are to be trimmed.
func TestTrim_LooksForCharactersInASet(t *testing.T) {
	t.Parallel()
	doc, err := bson.Marshal(bson.D{
		{Key: "s", Value: strings.Repeat("é", 1<<21) + "x" + strings.Repeat("é", 1<<21)},
		{Key: "chars", Value: strings.Repeat("ü", 1<<21) + "é"},
	})
	if err != nil {
		t.Fatal(err)
	}
	e, err := expression.Compile(value(t, `{"$trim":{"input":"$s","chars":"$chars"}}`), expression.Env{})
	if err != nil {
		t.Fatal(err)
	}
	if v, err := e.Eval(doc); err != nil || text(v) != `"x"` {
		t.Errorf("got %.40s, %v, want x", text(v), err)
	}
}
