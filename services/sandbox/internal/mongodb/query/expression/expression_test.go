package expression_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
	"changerelay/services/sandbox/internal/mongodb/query/expression"
)

func document(t testing.TB, json string) bson.Raw {
	t.Helper()
	var d bson.D
	if err := bson.UnmarshalExtJSON([]byte(json), false, &d); err != nil {
		t.Fatalf("extended JSON %s: %v", json, err)
	}
	raw, err := bson.Marshal(d)
	if err != nil {
		t.Fatalf("marshal %s: %v", json, err)
	}
	return raw
}

func value(t testing.TB, json string) bson.RawValue {
	t.Helper()
	v, _ := bsonkit.Get(document(t, `{"v":`+json+`}`), "v")
	return v
}

// text writes a value as canonical extended JSON, numbers short with a letter
// for what is no int: 1L, 1.5D.
func text(v bson.RawValue) string {
	if v.Type == bsonkit.Missing {
		return "missing"
	}
	b := bsonkit.NewBuilder(nil)
	b.Append("v", v)
	json, err := bson.MarshalExtJSON(bson.Raw(b.Finish()), true, false)
	if err != nil {
		return err.Error()
	}
	s := strings.TrimSuffix(strings.TrimPrefix(string(json), `{"v":`), `}`)
	for _, n := range []struct{ name, suffix string }{{"Int", ""}, {"Long", "L"}, {"Double", "D"}, {"Decimal", "M"}} {
		for {
			before, rest, ok := strings.Cut(s, `{"$number`+n.name+`":"`)
			if !ok {
				break
			}
			digits, after, _ := strings.Cut(rest, `"}`)
			s = before + digits + n.suffix + after
		}
	}
	return s
}

func env() expression.Env {
	return expression.Env{
		Now:         time.UnixMilli(1_600_000_000_123).UTC(),
		ClusterTime: bson.Timestamp{T: 1_600_000_000, I: 7},
	}
}

const doc = `{"_id":1,"i":5,"l":{"$numberLong":"7"},"d":2.5,"m":{"$numberDecimal":"1.50"},"s":"text","n":null,"b":true,
	"a":[1,2,3],"e":[],"o":{"x":1,"y":{"z":2}},"os":[{"x":1},{"x":2},{"y":3},5],"t":{"$date":"2020-02-03T04:05:06.789Z"},
	"id":{"$oid":"5f0000000000000000000001"},"ts":{"$timestamp":{"t":100,"i":1}},"big":{"$numberLong":"9223372036854775807"},"max":2147483647}`

func eval(t testing.TB, json string) (bson.RawValue, error) {
	t.Helper()
	e, err := expression.Compile(value(t, json), env())
	if err != nil {
		return bson.RawValue{}, err
	}
	return e.Eval(document(t, doc))
}

// check evaluates each expression for doc.
func check(t *testing.T, cases map[string]string) {
	t.Helper()
	for json, want := range cases {
		t.Run(json, func(t *testing.T) {
			t.Parallel()
			v, err := eval(t, json)
			if err != nil {
				t.Fatalf("eval: %v", err)
			}
			if got := text(v); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	}
}

func checkErrors(t *testing.T, cases map[string]mongoerr.Code) {
	t.Helper()
	for json, want := range cases {
		t.Run(json, func(t *testing.T) {
			t.Parallel()
			v, err := eval(t, json)
			if err == nil {
				t.Fatalf("got %s, want error %d", text(v), want)
			}
			if got := mongoerr.From(err).Code; got != want {
				t.Errorf("got %v, want code %d", err, want)
			}
		})
	}
}

func TestExpression_PathsVariablesAndLiterals(t *testing.T) {
	t.Parallel()
	check(t, map[string]string{
		`5`:                                    `5`,
		`"plain"`:                              `"plain"`,
		`"$i"`:                                 `5`,
		`"$o.y.z"`:                             `2`,
		`"$o.q"`:                               `missing`,
		`"$s.q"`:                               `missing`,
		`"$os.x"`:                              `[1,2]`,
		`"$a.0"`:                               `[]`,
		`"$$ROOT._id"`:                         `1`,
		`"$$CURRENT.o.x"`:                      `1`,
		`"$$REMOVE"`:                           `missing`,
		`"$$NOW"`:                              `{"$date":1600000000123L}`,
		`"$$CLUSTER_TIME"`:                     `{"$timestamp":{"t":1600000000,"i":7}}`,
		`{"$literal":"$i"}`:                    `"$i"`,
		`{"$literal":{"$add":[1,1]}}`:          `{"$add":[1,1]}`,
		`{"$expr":"$i"}`:                       `5`,
		`["$i","$nosuch",1]`:                   `[5,null,1]`,
		`{"p":"$i","q":"$nosuch","r":{"s":1}}`: `{"p":5,"r":{"s":1}}`,
		`{}`:                                   `{}`,
		`{"$let":{"vars":{"x":"$i","y":2},"in":{"$add":["$$x","$$y"]}}}`:                        `7`,
		`{"$let":{"vars":{"x":1},"in":{"$let":{"vars":{"x":2,"y":"$$x"},"in":["$$x","$$y"]}}}}`: `[2,1]`,
		`{"$let":{"vars":{"x":"$o"},"in":"$$x.y.z"}}`:                                           `2`,
	})
	checkErrors(t, map[string]mongoerr.Code{
		`"$"`:                                16872,
		`"$a."`:                              40353,
		`"$a..b"`:                            15998,
		`"$a.$b"`:                            16410,
		`"$$nosuch"`:                         17276,
		`"$$"`:                               16869,
		`"$$.a"`:                             16869,
		`"$$1a"`:                             16870,
		`"$$a-b.c"`:                          16871,
		`"$$KEEP"`:                           17276,
		`{"$nosuch":1}`:                      mongoerr.InvalidPipelineOperator,
		`{"$add":[1],"$subtract":[1,1]}`:     15983,
		`{"a.b":1}`:                          16412,
		`{"a":1,"$b":1}`:                     16410,
		`{"a":1,"":1}`:                       15998,
		`{"a":1,"a":2}`:                      16406,
		`{"$let":1}`:                         16874,
		`{"$let":{"vars":{},"in":1,"x":1}}`:  16875,
		`{"$let":{"in":1}}`:                  16876,
		`{"$let":{"vars":{}}}`:               16877,
		`{"$let":{"vars":{"X":1},"in":1}}`:   16867,
		`{"$let":{"vars":{"a-b":1},"in":1}}`: 16868,
		`{"$let":{"vars":{"x":1,"y":"$$x"},"in":1}}`: 17276,
	})
}

func TestExpression_LetOfACommand(t *testing.T) {
	t.Parallel()
	e := env()
	b := bsonkit.NewBuilder(nil)
	b.Append("x", bsonkit.Int32(3))
	b.Append("gone", bson.RawValue{Type: bson.TypeUndefined})
	e.Let = []bson.Raw{b.Finish()}
	for json, want := range map[string]string{`"$$x"`: `3`, `"$$gone"`: `missing`, `{"$type":"$$gone"}`: `"missing"`} {
		compiled, err := expression.Compile(value(t, json), e)
		if err != nil {
			t.Fatal(err)
		}
		if v, err := compiled.Eval(nil); err != nil || text(v) != want {
			t.Errorf("%s: got %s, %v, want %s", json, text(v), err, want)
		}
	}
}

func TestExpression_Comparison(t *testing.T) {
	t.Parallel()
	check(t, map[string]string{
		`{"$eq":["$i",{"$numberDouble":"5"}]}`: `true`,
		`{"$eq":["$nosuch",null]}`:             `false`,
		`{"$lt":["$nosuch",null]}`:             `true`,
		`{"$lt":["$nosuch",-5]}`:               `true`,
		`{"$gt":["$nosuch",{"$minKey":1}]}`:    `true`,
		`{"$ne":["$s","text"]}`:                `false`,
		`{"$gt":["$s",1000]}`:                  `true`,
		`{"$gte":["$i",5]}`:                    `true`,
		`{"$lte":["$i",4]}`:                    `false`,
		`{"$cmp":["$i",6]}`:                    `-1`,
		`{"$cmp":[[1,2],[1]]}`:                 `1`,
	})
	checkErrors(t, map[string]mongoerr.Code{`{"$eq":[1]}`: 16020, `{"$lt":1}`: 16020})
}

func TestExpression_Conditions(t *testing.T) {
	t.Parallel()
	check(t, map[string]string{
		`{"$and":[]}`:                                `true`,
		`{"$or":[]}`:                                 `false`,
		`{"$and":["$i","$s"]}`:                       `true`,
		`{"$and":["$i",0]}`:                          `false`,
		`{"$and":[false,{"$divide":[1,0]}]}`:         `false`,
		`{"$or":["$n","$nosuch","$b"]}`:              `true`,
		`{"$or":[true,{"$divide":[1,0]}]}`:           `true`,
		`{"$not":{"$numberDecimal":"0.0"}}`:          `true`,
		`{"$not":["$n"]}`:                            `true`,
		`{"$not":"$s"}`:                              `false`,
		`{"$cond":["$b","yes","no"]}`:                `"yes"`,
		`{"$cond":{"if":"$n","then":1,"else":"$i"}}`: `5`,
		`{"$cond":[true,1,{"$divide":[1,0]}]}`:       `1`,
		`{"$ifNull":["$n","none"]}`:                  `"none"`,
		`{"$ifNull":["$nosuch","$i"]}`:               `5`,
		`{"$ifNull":["$i",{"$divide":[1,0]}]}`:       `5`,
		`{"$ifNull":["$n","$$REMOVE"]}`:              `missing`,
		`{"$switch":{"branches":[{"case":false,"then":1},{"case":"$b","then":2}],"default":3}}`: `2`,
		`{"$switch":{"branches":[{"case":"$n","then":1}],"default":"$i"}}`:                      `5`,
	})
	checkErrors(t, map[string]mongoerr.Code{
		`{"$not":[1,2]}`:                                     16020,
		`{"$cond":[1,2]}`:                                    16020,
		`{"$cond":{"then":1,"else":2}}`:                      17080,
		`{"$cond":{"if":1,"else":2}}`:                        17081,
		`{"$cond":{"if":1,"then":2}}`:                        17082,
		`{"$cond":{"if":1,"then":2,"else":3,"x":4}}`:         17083,
		`{"$ifNull":[1,2,3]}`:                                16020,
		`{"$switch":1}`:                                      40060,
		`{"$switch":{"branches":1}}`:                         40061,
		`{"$switch":{"branches":[1]}}`:                       40062,
		`{"$switch":{"branches":[{"x":1}]}}`:                 40063,
		`{"$switch":{"branches":[{"then":1}]}}`:              40064,
		`{"$switch":{"branches":[{"case":1}]}}`:              40065,
		`{"$switch":{"branches":[{"case":false,"then":1}]}}`: 40066,
		`{"$switch":{"x":1}}`:                                40067,
		`{"$switch":{"branches":[]}}`:                        40068,
	})
}

func TestExpression_ConstantsAreComputedOnce(t *testing.T) {
	t.Parallel()
	for json, constant := range map[string]bool{
		`{"$add":[1,{"$multiply":[2,3]}]}`: true, `"$$NOW"`: true, `{"$concat":["a","$s"]}`: false, `{"$divide":[1,0]}`: false,
	} {
		e, err := expression.Compile(value(t, json), env())
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := e.Constant(); ok != constant {
			t.Errorf("%s: got %v, want %v", json, ok, constant)
		}
	}
}

func TestExpression_AnExpressionServesManyGoroutines(t *testing.T) {
	t.Parallel()
	e, err := expression.Compile(value(t, `{"$reduce":{"input":{"$map":{"input":"$a","in":{"$multiply":["$$this","$f"]}}},"initialValue":0,"in":{"$add":["$$value","$$this"]}}}`), env())
	if err != nil {
		t.Fatal(err)
	}
	for f := range 8 {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			b := bsonkit.NewBuilder(nil)
			b.Append("a", value(t, `[1,2,3]`))
			b.Append("f", bsonkit.Int32(int32(f)))
			doc := b.Finish()
			for range 200 {
				v, err := e.Eval(doc)
				if err != nil || v.Int32() != int32(6*f) {
					t.Fatalf("got %s, %v, want %d", text(v), err, 6*f)
				}
			}
		})
	}
}

// What is computed before there is a document is bounded, and what is large is not kept.
func TestCompile_KeepsNoLargeConstants(t *testing.T) {
	t.Parallel()
	for spec, want := range map[string]bool{
		`{"$range":[0,100]}`:                           true,
		`{"$range":[0,100000]}`:                        false,
		`{"$sum":[{"$size":{"$range":[0,100000]}},1]}`: false,
		`{"$cond":[true,{"$add":[1,2]},{"$concatArrays":[{"$range":[0,200000]},{"$range":[0,200000]}]}]}`: false,
	} {
		e, err := expression.Compile(value(t, spec), expression.Env{})
		if err != nil {
			t.Fatal(err)
		}
		if _, constant := e.Constant(); constant != want {
			t.Errorf("%s: got constant %v, want %v", spec, constant, want)
		}
	}
	interrupted := errors.New("interrupted")
	e, err := expression.Compile(value(t, `{"$map":{"input":{"$range":[0,1000]},"in":{"$add":["$$this",1]}}}`), expression.Env{Interrupted: func() error { return interrupted }})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Eval(nil); !errors.Is(err, interrupted) {
		t.Errorf("got error %v, want that it was interrupted", err)
	}
}

func TestRegexFindAll_RefusesMoreMatchesThanFit(t *testing.T) {
	t.Parallel()
	doc, err := bson.Marshal(bson.D{{Key: "s", Value: strings.Repeat("a", 1<<20)}})
	if err != nil {
		t.Fatal(err)
	}
	e, err := expression.Compile(value(t, `{"$regexFindAll":{"input":"$s","regex":"a"}}`), expression.Env{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Eval(doc); !mongoerr.Is(err, 51151) {
		t.Errorf("got error %v, want 51151", err)
	}
}
