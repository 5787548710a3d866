package expression_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/expr-lang/expr/builtin"
	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/projector/internal/expression"
)

// refused are the functions of expr that do not load.
var refused = map[string]bool{"now": true}

// hostile are expressions that ask each function for as much as they can. What
// they stand on is in hostileData.
var hostile = map[string][]string{
	"all":           {`all(data.many, all(data.many, true))`},
	"none":          {`none(data.many, none(data.many, true))`},
	"any":           {`any(data.many, any(data.many, false))`},
	"one":           {`one(data.many, one(data.many, true))`},
	"filter":        {`filter(data.many, len(filter(data.many, true)) > 0)`},
	"map":           {`map(data.many, map(data.many, data.many))`},
	"find":          {`find(data.many, find(data.many, # == nil) == 1)`},
	"findIndex":     {`findIndex(data.many, findIndex(data.many, # == nil) == 1)`},
	"findLast":      {`findLast(data.many, findLast(data.many, # == nil) == 1)`},
	"findLastIndex": {`findLastIndex(data.many, findLastIndex(data.many, # == nil) == 1)`},
	"count":         {`count(data.many, count(data.many, true) > 0)`},
	"sum":           {`sum(data.many, sum(data.many))`},
	"groupBy":       {`groupBy(data.many, string(#))`, `map(data.many, groupBy(data.many, "x"))`},
	"sortBy":        {`sortBy(data.texts, #)`, `map(data.many, sortBy(data.many, -#))`, `sortBy(map(1..100, data.text + string(#)), #)`},
	"reduce":        {`reduce(1..60, [#acc, #acc], 1)`, `reduce(1..60, #acc + #acc, data.text)`, `reduce(data.many, concat(#acc, data.many), [])`},
	"len":           {`map(data.many, len(data.text))`, `map(data.many, len(data.wide))`},
	"type":          {`map(data.many, type(data.text))`},
	"abs":           {`map(data.many, abs(#))`},
	"ceil":          {`map(data.many, ceil(#))`},
	"floor":         {`map(data.many, floor(#))`},
	"round":         {`map(data.many, round(#))`},
	"int":           {`map(data.many, int(data.text))`},
	"float":         {`map(data.many, float(data.text))`},
	"string":        {`string(reduce(1..60, [#acc, #acc], 1))`, `string(data.wide)`, `map(data.many, string(#))`},
	"trim":          {`trim(data.text, data.text)`, `map(data.many, trim(data.spaces))`, `map(data.many, trim(data.text, "xyz"))`},
	"trimPrefix":    {`map(data.many, trimPrefix(data.text, data.text))`},
	"trimSuffix":    {`map(data.many, trimSuffix(data.text, data.text))`},
	"upper":         {`map(data.many, upper(data.text))`},
	"lower":         {`map(data.many, lower(data.text))`},
	"split":         {`split(data.text, "")`, `map(data.many, split(data.text, ""))`, `split(data.text, "", 9223372036854775807)`},
	"splitAfter":    {`splitAfter(data.text, "")`, `map(data.many, splitAfter(data.text, "x"))`},
	"replace":       {`replace(data.text, "", data.text)`, `replace(data.text, "x", data.text)`, `replace(data.text, "x", data.text, 9223372036854775807)`},
	"repeat":        {`repeat(data.text, 1000000)`, `repeat("x", 9223372036854775807)`, `map(data.many, repeat("x", 1000000))`},
	"join":          {`join(data.texts, data.text)`, `join(map(data.many, "x"), data.text)`},
	"indexOf":       {`map(data.many, indexOf(data.text, "y"))`},
	"lastIndexOf":   {`map(data.many, lastIndexOf(data.text, "y"))`},
	"hasPrefix":     {`map(data.many, hasPrefix(data.text, data.text))`},
	"hasSuffix":     {`map(data.many, hasSuffix(data.text, data.text))`},
	"max":           {`map(data.many, max(data.many))`, `max(reduce(1..60, [#acc, #acc], 1))`},
	"min":           {`map(data.many, min(data.many))`, `min(reduce(1..60, [#acc, #acc], 1))`},
	"mean":          {`map(data.many, mean(data.many))`, `mean(reduce(1..60, [#acc, #acc], 1))`},
	"median":        {`map(data.many, median(data.many))`, `median(reduce(1..60, [#acc, #acc], 1))`},
	"toJSON":        {`toJSON(reduce(1..60, [#acc, #acc], 1))`, `toJSON(reduce(1..900, [#acc], data.many))`, `toJSON(data.controls)`, `map(data.many, toJSON(data.wide))`},
	"fromJSON":      {`fromJSON(data.brackets)`, `fromJSON("[" + data.empties + "0]")`, `map(data.many, fromJSON(data.empties))`},
	"toBase64":      {`map(data.many, toBase64(data.text))`, `toBase64(toBase64(data.text))`},
	"fromBase64":    {`map(data.many, fromBase64(data.text))`},
	"duration":      {`duration(data.text)`, `map(data.many, duration("1h"))`},
	"date":          {`date(data.text)`, `date(data.text, data.text)`, `map(data.many, date("2026-01-02", "2006-01-02", "Europe/Berlin"))`},
	"timezone":      {`timezone(data.text)`, `map(data.many, timezone("Europe/Berlin"))`},
	"first":         {`map(data.many, first(data.many))`},
	"last":          {`map(data.many, last(data.many))`},
	"get":           {`map(data.many, get(data.wide, "none") ?? 1)`},
	"take":          {`map(data.many, take(data.many, 9223372036854775807))`},
	"keys":          {`map(data.many, keys(data.wide))`},
	"values":        {`map(data.many, values(data.wide))`},
	"toPairs":       {`map(data.many, toPairs(data.wide))`},
	"fromPairs":     {`map(data.many, fromPairs(toPairs(data.wide)))`},
	"reverse":       {`map(data.many, reverse(data.many))`},
	"uniq":          {`uniq(map(data.many, {{n: [#]}}))`, `uniq(map(data.many, [#]))`, `uniq(data.many)`, `uniq(data.texts)`},
	"concat":        {`reduce(1..60, concat(#acc, #acc), data.many)`},
	"flatten":       {`flatten(reduce(1..60, [#acc, #acc], 1))`, `flatten(reduce(1..2000, [#acc], 1))`},
	"sort":          {`sort(data.many)`, `map(data.many, sort(data.many, "desc"))`, `sort(map(1..100, data.text + string(#)))`},
	"bitand":        {`map(data.many, bitand(#, 1))`},
	"bitor":         {`map(data.many, bitor(#, 1))`},
	"bitxor":        {`map(data.many, bitxor(#, 1))`},
	"bitnand":       {`map(data.many, bitnand(#, 1))`},
	"bitnot":        {`map(data.many, bitnot(#))`},
	"bitshl":        {`map(data.many, bitshl(1, 9223372036854775807))`},
	"bitshr":        {`map(data.many, bitshr(#, 9223372036854775807))`},
	"bitushr":       {`map(data.many, bitushr(#, 9223372036854775807))`},
}

// hostileOperators are the same for what is no function.
var hostileOperators = []string{
	`1..9223372036854775807`, `-9223372036854775807..9223372036854775807`, `map(1..1000000, 1..1000000)`,
	`data.text + data.text + data.text`, `reduce(1..60, [#acc, #acc], 1) == reduce(1..60, [#acc, #acc], 1)`,
	`map(data.many, data.wide == data.wide)`, `data.text in data.texts`, `map(data.many, # in data.many)`, `map(data.many, "none" in data.wide)`,
	`data.text matches "(x+x+)+y"`, `data.text matches "^(x{0,1000}){1}$"`, `data.text matches "(x{500}y{500}){1}|(.{900})z"`, `data.text matches data.text`,
	`map(data.texts, "x" matches #)`, `map(data.many, data.text matches "y$")`, `map(data.many, data.text contains "y")`, `map(data.many, data.text startsWith data.text)`,
	`map(data.many, data.many[0])`, `map(data.many, data.wide.none ?? 1)`, `map(data.many, data.text[1:])`, `map(data.many, data.many[1:])`,
	`map(data.many, data.text < data.text)`, `map(data.many, {{a: #, b: data.text}})`, `map(data.many, [#, data.text])`,
	`event.time.Format(data.text)`, `map(data.many, event.time.Format("Monday January 2006"))`, `reduce(1..1000000, #acc.AddDate(1000000, 0, 0), event.time)`,
	`data.dec.BigInt()`, `event.time.Local()`, `event.time.MarshalJSON()`,
}

const manyOf = 38_000

// hostileData are about 14 MiB of an event's data.
func hostileData(t *testing.T) bson.RawValue {
	t.Helper()
	many, texts, wide := make(bson.A, manyOf), make(bson.A, manyOf), make(bson.D, manyOf)
	for i := range many {
		many[i], texts[i] = (i*7919)%manyOf, fmt.Sprintf("text %d", i)
		wide[i] = bson.E{Key: fmt.Sprintf("f%d", i), Value: bson.D{{Key: "n", Value: i}}}
	}
	dec, err := bson.ParseDecimal128("9E6000")
	if err != nil {
		t.Fatal(err)
	}
	document, err := bson.Marshal(bson.D{
		{Key: "many", Value: many},
		{Key: "texts", Value: texts},
		{Key: "wide", Value: wide},
		{Key: "dec", Value: dec},
		{Key: "text", Value: strings.Repeat("x", 6<<20)},
		{Key: "spaces", Value: strings.Repeat(" ", 1<<20)},
		{Key: "controls", Value: strings.Repeat("\x01", 2<<20)},
		{Key: "brackets", Value: strings.Repeat("[", 1<<20)},
		{Key: "empties", Value: strings.Repeat("{},", 1<<20)},
	})
	if err != nil {
		t.Fatal(err)
	}
	return bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: document}
}

func input(data bson.RawValue) expression.Input {
	event := expression.Event{ID: "id-1", Type: "Happened", Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	frozen := func() time.Time { return time.Time{} }
	return expression.Input{Data: data, Event: event.View(), Clock: frozen}
}

// allocated bounds what an evaluation allocates in all: what it may make, and
// some hundred bytes for each step.
const allocated = 2 << 30

// The clock of these stands still: nothing but what an expression does may end it.
//
// Every function of expr is refused when a file is loaded, or ends within its
// bounds whatever it is asked for. One that an upgrade brings is on neither list,
// and fails here.
func TestBounds_EachFunctionOfExprIsRefusedOrBounded(t *testing.T) {
	data := hostileData(t)
	for _, f := range builtin.Builtins {
		t.Run(f.Name, func(t *testing.T) {
			if refused[f.Name] {
				for _, source := range []string{f.Name + "()", f.Name + "(data)", f.Name + "(data, data)", f.Name + "(data, true)"} {
					if _, err := expression.Compile(source); err == nil || !strings.Contains(err.Error(), "unknown name") {
						t.Errorf("%s loads (%v), want it refused", source, err)
					}
				}
				return
			}
			if len(hostile[f.Name]) == 0 {
				t.Fatal("nothing is known of it: refuse it, or bound it and say here what would be hostile")
			}
			for _, source := range hostile[f.Name] {
				endsWithinBounds(t, source, data)
			}
		})
	}
	for name := range hostile {
		if refused[name] {
			t.Errorf("%s is refused, and not to be tried", name)
		}
	}
}

func TestBounds_EachOperatorIsBounded(t *testing.T) {
	data := hostileData(t)
	for _, source := range hostileOperators {
		t.Run(source, func(t *testing.T) { endsWithinBounds(t, source, data) })
	}
}

// endsWithinBounds runs an expression, which may fail. It is asked once more to
// end with its context, which must come to the same unless it ends before it looks.
func endsWithinBounds(t *testing.T, source string, data bson.RawValue) {
	t.Helper()
	program, err := expression.Compile(source)
	if err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err = program.Run(t.Context(), input(data))
	runtime.ReadMemStats(&after)
	if errors.Is(err, expression.ErrInterrupted) {
		t.Errorf("%s: %v, and nobody has interrupted it", source, err)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > allocated {
		t.Errorf("%s: allocates %d bytes, want at most %d", source, took, allocated)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, again := program.Run(ended, input(data)); !errors.Is(again, expression.ErrInterrupted) && fmt.Sprint(again) != fmt.Sprint(err) {
		t.Errorf("%s: %v with a context that has ended, want it interrupted", source, again)
	}
}

// The clock runs while the expression does, and nothing else stops it.
func TestBounds_AnEvaluationTakesNoLongerThanItsTime(t *testing.T) {
	t.Parallel()
	program, err := expression.Compile(`all(1..1000, all(1..100, true))`)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		look time.Duration // between two looks at the clock
		want string
	}{{time.Millisecond, "<nil>"}, {time.Second, "takes longer than 10s"}} {
		in, now := input(bson.RawValue{}), time.Unix(0, 0)
		in.Clock = func() time.Time { now = now.Add(tt.look); return now }
		if _, err := program.Run(t.Context(), in); fmt.Sprint(err) != tt.want {
			t.Errorf("with %s between two looks: got %v, want %s", tt.look, err, tt.want)
		}
	}
}

func TestBounds_AnEvaluationEndsWithItsContext(t *testing.T) {
	t.Parallel()
	program, err := expression.Compile(`all(1..1000, all(1..100, true))`)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := program.Run(ctx, input(bson.RawValue{})); err != nil {
		t.Errorf("before its end: got %v", err)
	}
	cancel()
	if _, err := program.Run(ctx, input(bson.RawValue{})); !errors.Is(err, expression.ErrInterrupted) {
		t.Errorf("after its end: got %v, want it interrupted", err)
	}
}

// What is bounded says by what.
func TestBounds_WhatIsBeyondABoundNamesIt(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]string{
		`repeat("x", 12000000) + repeat("y", 12000000)`:             "makes a text of more than 16777216 bytes",
		`repeat("x", 6000000) matches "(x+x+)+y"`:                   "takes more than 3000000 steps",
		`uniq(map(1..38000, [#]))`:                                  "takes more than 3000000 steps",
		`replace(repeat("x", 12000000), "x", "yy")`:                 "makes a text of more than",
		`split(repeat("x", 12000000), "")`:                          "makes values of more than",
		`map(1..20, repeat("x", 1000000))`:                          "makes a result of more than",
		`len(map(1..70, repeat("x", 1000000)))`:                     "makes values of more than",
		`1..9223372036854775807`:                                    "makes values of more than",
		`-9223372036854775807..9223372036854775807`:                 "makes values of more than",
		`toJSON(reduce(1..60, [#acc, #acc], 1))`:                    "makes",
		`flatten(reduce(1..2000, [#acc], 1))`:                       "nested deeper than 1000 levels",
		`"x" matches repeat("x", 2000)`:                             "a pattern has more than 1000 bytes",
		`trim(repeat("x", 2000), repeat("x", 2000))`:                "at most 1000 bytes",
		`join(map(1..100, repeat("x", 100)), repeat("y", 1000000))`: "makes a text of more than",
	} {
		program, err := expression.Compile(source)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := program.Run(t.Context(), input(bson.RawValue{})); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want that it %s", source, err, want)
		}
	}
}

// What a method makes of the machine it runs on, or of as much memory as it likes,
// is not of the language.
func TestBounds_MethodsAreThoseThatDecideTheSame(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]string{
		`event.time.Local()`: "has no method Local", `event.time.MarshalJSON()`: "has no method", `event.time.Location()`: "has no method",
		`timezone("Local")`: "there is no time zone", `data.Year()`: "data has no value", `event.time.Year(1)`: "takes 0 arguments", `event.time.Format(1)`: "argument 1 is a whole number",
		`event.time.Year()`: "", `event.time.In(timezone("Europe/Berlin")).Hour()`: "", `event.time.Add(duration("1h")).Format("2006")`: "", `int(event.time.Month())`: "", `data?.Year()`: "",
	} {
		program, err := expression.Compile(source)
		if err != nil {
			t.Fatalf("%s: %v", source, err)
		}
		if _, err := program.Run(t.Context(), input(bson.RawValue{})); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", source, err, want)
		}
	}
}

func TestBounds_CompileRefusesWhatIsNotOfTheLanguage(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]string{
		`$env`:                       "not of this language",
		`get($env, "data")`:          "not of this language",
		`b"bytes" == b"bytes"`:       "not of this language",
		`"x" matches "("`:            "regexp",
		`"x" matches "(x{1000}){9}"`: "regexp",
		`"x" matches "` + strings.Repeat("(x{1000})", 50) + `"`: "instructions",
		`"x" matches "` + strings.Repeat("x", 1001) + `"`:       "more than 1000 bytes",
		`event.nowhere`: "nowhere",
		`nowhere`:       "unknown name",
	} {
		if _, err := expression.Compile(source); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: got %v, want it refused: %s", source, err, want)
		}
	}
}
