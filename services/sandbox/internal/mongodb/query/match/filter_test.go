package match_test

import (
	"testing"

	"changerelay/services/sandbox/internal/mongodb/mongoerr"
	"changerelay/services/sandbox/internal/mongodb/query/match"
	"changerelay/services/sandbox/internal/mongodb/query/querytest"
)

const scalars = `[
	{"_id":1,"a":1,"s":"apple"},
	{"_id":2,"a":5,"s":"Banana"},
	{"_id":3,"a":"5","s":"apricot"},
	{"_id":4,"a":null},
	{"_id":5},
	{"_id":6,"a":[1,10]},
	{"_id":7,"a":{"$date":"2020-01-01T00:00:00Z"}},
	{"_id":8,"a":{"x":1}},
	{"_id":9,"a":{"$numberDouble":"NaN"}}]`

func TestFilter_ComparisonsStayWithinATypeAndLookIntoArrays(t *testing.T) {
	t.Parallel()
	check(t, scalars, map[string]string{
		`{}`:                                     "1 2 3 4 5 6 7 8 9",
		`{"a":5}`:                                "2",
		`{"a":{"$eq":5}}`:                        "2",
		`{"a":{"$ne":5}}`:                        "1 3 4 5 6 7 8 9",
		`{"a":{"$gt":1}}`:                        "2 6",
		`{"a":{"$gte":1,"$lt":6}}`:               "1 2 6",
		`{"a":{"$lt":"6"}}`:                      "3",
		`{"a":{"x":1}}`:                          "8",
		`{"a":{"x":{"$numberLong":"1"}}}`:        "8",
		`{"a":{"x":1,"y":2}}`:                    "",
		`{"a":{"$in":[1,"5",null]}}`:             "1 3 4 5 6",
		`{"a":{"$in":[9,8,7,6,5,4,3,2]}}`:        "2",
		`{"a":{"$in":[]}}`:                       "",
		`{"a":{"$nin":[1,null]}}`:                "2 3 7 8 9",
		`{"a":{"$gte":{"$minKey":1}}}`:           "1 2 3 4 5 6 7 8 9",
		`{"a":{"$lt":{"$minKey":1}}}`:            "",
		`{"a":{"$numberDouble":"NaN"}}`:          "9",
		`{"a":{"$gte":{"$numberDouble":"NaN"}}}`: "9",
		`{"a":{"$lt":{"$numberDouble":"NaN"}}}`:  "",
		`{"a":{"$lte":100}}`:                     "1 2 6",
		`{"a":{"$not":{"$gt":1}}}`:               "1 3 4 5 7 8 9",
		`{"a":{"$not":{"$gt":1,"$lt":9}}}`:       "1 3 4 5 7 8 9",
	})
}

func TestFilter_NullMeansMissingToo(t *testing.T) {
	t.Parallel()
	check(t, `[
		{"_id":1,"a":null},
		{"_id":2},
		{"_id":3,"a":{"b":null}},
		{"_id":4,"a":{"b":1}},
		{"_id":5,"a":[{"b":1},{"c":1}]},
		{"_id":6,"a":[]},
		{"_id":7,"a":5},
		{"_id":8,"a":{"$undefined":true}}]`, map[string]string{
		`{"a":null}`:                      "1 2 8",
		`{"a":{"$ne":null}}`:              "3 4 5 6 7",
		`{"a.b":null}`:                    "1 2 3 5 7 8",
		`{"a.b":{"$ne":null}}`:            "4 6",
		`{"a.b":{"$exists":true}}`:        "3 4 5",
		`{"a":{"$exists":false}}`:         "2",
		`{"a":{"$exists":0}}`:             "2",
		`{"a":{"$type":"null"}}`:          "1",
		`{"a":{"$in":[null]}}`:            "1 2 8",
		`{"a":{"$in":[null,1,2,3,4,6]}}`:  "1 2 8",
		`{"a":{"$gte":null}}`:             "1 2 8",
		`{"a":{"$gt":null}}`:              "",
		`{"a":{"$not":{"$exists":true}}}`: "2",
	})
}

func TestFilter_ConditionsOnArrays(t *testing.T) {
	t.Parallel()
	check(t, `[
		{"_id":1,"v":[1,2,3]},
		{"_id":2,"v":[2]},
		{"_id":3,"v":[]},
		{"_id":4,"v":2},
		{"_id":5,"v":[[1,2],3]},
		{"_id":6,"o":[{"k":1,"n":10},{"k":2,"n":5}]},
		{"_id":7,"o":[{"k":2,"n":10}]},
		{"_id":8,"o":{"k":2,"n":10}}]`, map[string]string{
		`{"v":2}`:                                 "1 2 4",
		`{"v":[1,2,3]}`:                           "1",
		`{"v":[1,2]}`:                             "5",
		`{"v":[]}`:                                "3",
		`{"v":{"$all":[2,3]}}`:                    "1",
		`{"v":{"$all":[]}}`:                       "",
		`{"v":{"$all":[[1,2]]}}`:                  "5",
		`{"v":{"$size":1}}`:                       "2",
		`{"v":{"$size":0}}`:                       "3",
		`{"v.0":1}`:                               "1",
		`{"v":{"$gt":2,"$lt":2}}`:                 "1",
		`{"v":{"$elemMatch":{"$gt":1,"$lt":3}}}`:  "1 2",
		`{"v":{"$elemMatch":{"$not":{"$gt":1}}}}`: "1 5",
		`{"v":{"$elemMatch":{"$elemMatch":{"$eq":2}}}}`:                  "5",
		`{"o":{"$elemMatch":{"k":2,"n":10}}}`:                            "7",
		`{"o":{"$elemMatch":{"$or":[{"k":1},{"n":10}]}}}`:                "6 7",
		`{"o":{"$all":[{"$elemMatch":{"k":1}},{"$elemMatch":{"n":5}}]}}`: "6",
		`{"o.k":2,"o.n":5}`:          "6",
		`{"o.0.k":2}`:                "7",
		`{"v":{"$nin":[2]}}`:         "3 5 6 7 8",
		`{"v":{"$type":"array"}}`:    "1 2 3 5",
		`{"v":{"$not":{"$size":1}}}`: "1 3 4 5 6 7 8",
	})
}

func TestFilter_OtherOperators(t *testing.T) {
	t.Parallel()
	check(t, `[
		{"_id":1,"n":1,"s":"apple"},
		{"_id":2,"n":{"$numberLong":"10"},"s":"Banana\nsplit"},
		{"_id":3,"n":7.9,"s":{"$regularExpression":{"pattern":"^a","options":""}}},
		{"_id":4,"n":{"$numberDecimal":"-4"},"s":["x","ape"]},
		{"_id":5,"n":"text","s":5},
		{"_id":6,"n":{"$binary":{"base64":"Bg==","subType":"00"}}},
		{"_id":7,"n":true}]`, map[string]string{
		`{"n":{"$mod":[5,0]}}`:          "2",
		`{"n":{"$mod":[4,3]}}`:          "3",
		`{"n":{"$mod":[4,0]}}`:          "4",
		`{"n":{"$mod":[-1,0]}}`:         "1 2 3 4",
		`{"n":{"$type":"number"}}`:      "1 2 3 4",
		`{"n":{"$type":["string",18]}}`: "2 5",
		`{"n":{"$type":8}}`:             "7",
		`{"n":{"$bitsAllSet":2}}`:       "2 6",
		`{"n":{"$bitsAllSet":[1,2]}}`:   "6",
		`{"n":{"$bitsAnySet":[0,1]}}`:   "1 2 6",
		`{"n":{"$bitsAllClear":1}}`:     "2 4 6",
		`{"n":{"$bitsAnyClear":{"$binary":{"base64":"Bg==","subType":"00"}}}}`:    "1 2 4",
		`{"n":{"$bitsAllSet":[200]}}`:                                             "4",
		`{"s":{"$regularExpression":{"pattern":"^a","options":""}}}`:              "1 3 4",
		`{"s":{"$regex":"^b","$options":"i"}}`:                                    "2",
		`{"s":{"$regex":"^split","$options":"m"}}`:                                "2",
		`{"s":{"$regex":"banana.split","$options":"is"}}`:                         "2",
		`{"s":{"$regex":" a p # comment\n p","$options":"x"}}`:                    "1",
		`{"s":{"$not":{"$regex":"^a"}}}`:                                          "2 5 6 7",
		`{"s":{"$in":[{"$regularExpression":{"pattern":"^ap","options":""}},5]}}`: "1 4 5",
		`{"$and":[{"n":{"$type":"number"}},{"s":{"$type":"string"}}]}`:            "1 2 4",
		`{"$or":[{"n":1},{"n":7.9}]}`:                                             "1 3",
		`{"$nor":[{"n":{"$type":"number"}},{"_id":7}]}`:                           "5 6",
		`{"$expr":{"$gt":["$n",8]},"n":{"$type":"number"}}`:                       "2",
		`{"$expr":{"$eq":["$_id","$$ROOT._id"]},"_id":{"$lt":3}}`:                 "1 2",
		`{"$comment":"why","_id":1}`:                                              "1",
		`{"$alwaysFalse":1}`:                                                      "",
		`{"$alwaysTrue":1,"_id":2}`:                                               "2",
	})
}

func TestFilter_NumbersOfAnyTypeAreEqual(t *testing.T) {
	t.Parallel()
	numbers := `[{"_id":1,"n":1},{"_id":2,"n":{"$numberLong":"1"}},{"_id":3,"n":{"$numberDouble":"1"}},{"_id":4,"n":{"$numberDecimal":"1.0"}},{"_id":5,"n":"1"},{"_id":6,"n":true}]`
	check(t, numbers, map[string]string{
		`{"n":1}`:                      "1 2 3 4",
		`{"n":{"$numberDecimal":"1"}}`: "1 2 3 4",
		`{"n":{"$in":[{"$numberDouble":"1"},7,8,9,10]}}`: "1 2 3 4",
		`{"n":{"$gt":0}}`: "1 2 3 4",
	})
}

func check(t *testing.T, docs string, cases map[string]string) {
	t.Helper()
	all := querytest.Documents(t, docs)
	for json, want := range cases {
		t.Run(json, func(t *testing.T) {
			t.Parallel()
			if got := matching(t, querytest.Filter(t, json), all); got != want {
				t.Errorf("matches: got %q, want %q", got, want)
			}
		})
	}
}

func TestFilter_FiltersAreRefused(t *testing.T) {
	t.Parallel()
	for json, code := range map[string]mongoerr.Code{
		`{"a":{"$nosuch":1}}`:       mongoerr.BadValue,
		`{"$nosuch":1}`:             mongoerr.BadValue,
		`{"$where":"true"}`:         mongoerr.BadValue,
		`{"$text":{"$search":"x"}}`: mongoerr.IndexNotFound,
		`{"a":{"$gt":1,"b":2}}`:     mongoerr.BadValue,
		`{"a":{"$in":1}}`:           mongoerr.BadValue,
		`{"a":{"$in":[{"$gt":1}]}}`: mongoerr.BadValue,
		`{"a":{"$nin":{}}}`:         mongoerr.BadValue,
		`{"a":{"$ne":{"$regularExpression":{"pattern":"a","options":""}}}}`: mongoerr.BadValue,
		`{"a":{"$gt":{"$regularExpression":{"pattern":"a","options":""}}}}`: mongoerr.BadValue,
		`{"a":{"$eq":{"$undefined":true}}}`:                                 mongoerr.BadValue,
		`{"$and":{}}`:                                                       mongoerr.BadValue,
		`{"$or":[]}`:                                                        mongoerr.BadValue,
		`{"$nor":[1]}`:                                                      mongoerr.BadValue,
		`{"a":{"$not":1}}`:                                                  mongoerr.BadValue,
		`{"a":{"$not":{}}}`:                                                 mongoerr.BadValue,
		`{"a":{"$size":-1}}`:                                                mongoerr.BadValue,
		`{"a":{"$size":1.5}}`:                                               mongoerr.BadValue,
		`{"a":{"$all":1}}`:                                                  mongoerr.BadValue,
		`{"a":{"$all":[{"$elemMatch":{"x":1}},5]}}`:                         mongoerr.BadValue,
		`{"a":{"$all":[{"$gt":1}]}}`:                                        mongoerr.BadValue,
		`{"a":{"$elemMatch":1}}`:                                            mongoerr.BadValue,
		`{"a":{"$elemMatch":{"$expr":true}}}`:                               mongoerr.BadValue,
		`{"a":{"$mod":[0,1]}}`:                                              mongoerr.BadValue,
		`{"a":{"$mod":[1,"x"]}}`:                                            mongoerr.BadValue,
		`{"a":{"$mod":[1]}}`:                                                mongoerr.BadValue,
		`{"a":{"$mod":1}}`:                                                  mongoerr.BadValue,
		`{"a":{"$type":"nosuch"}}`:                                          mongoerr.BadValue,
		`{"a":{"$type":99}}`:                                                mongoerr.BadValue,
		`{"a":{"$type":{}}}`:                                                mongoerr.TypeMismatch,
		`{"a":{"$type":[]}}`:                                                mongoerr.FailedToParse,
		`{"a":{"$regex":1}}`:                                                mongoerr.BadValue,
		`{"a":{"$regex":"a","$options":1}}`:                                 mongoerr.BadValue,
		`{"a":{"$options":"i"}}`:                                            mongoerr.BadValue,
		`{"a":{"$regex":"("}}`:                                              51091,
		`{"a":{"$regex":"a","$options":"q"}}`:                               51108,
		`{"a":{"$bitsAllSet":-1}}`:                                          mongoerr.FailedToParse,
		`{"$expr":{"$nosuch":1}}`:                                           mongoerr.InvalidPipelineOperator,
		`{"$expr":"$$nosuch"}`:                                              17276,
	} {
		t.Run(json, func(t *testing.T) {
			t.Parallel()
			_, err := match.Compile(querytest.Document(t, json), querytest.Env())
			querytest.CheckCode(t, err, code)
		})
	}
}

func TestFilter_AnExpressionThatFailsFailsTheMatch(t *testing.T) {
	t.Parallel()
	f := querytest.Filter(t, `{"$or":[{"a":1},{"$expr":{"$divide":[1,"$zero"]}}]}`)
	ok, err := f.Match(querytest.Document(t, `{"zero":0}`))
	querytest.CheckCode(t, err, 16608)
	if ok {
		t.Error("a failed expression matched")
	}
	if ok, err := f.Match(querytest.Document(t, `{"a":1,"zero":0}`)); !ok || err != nil {
		t.Errorf("decided before the expression: got %v, %v, want true", ok, err)
	}
}

func TestFilter_NilFilterMatchesEverything(t *testing.T) {
	t.Parallel()
	var f *match.Filter
	if ok, err := f.Match(querytest.Document(t, `{"a":1}`)); !ok || err != nil {
		t.Errorf("got %v, %v, want true", ok, err)
	}
	if !f.Bounds("a", false).Unbounded() {
		t.Error("bounds of a nil filter exclude something")
	}
}

func TestFilter_EqualFindsTheOneValueThatIsDemanded(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, filter, want string }{
		{"a value", `{"a":1}`, `{"a":1}`},
		{"$eq", `{"a":{"$eq":1}}`, `{"a":1}`},
		{"inside $and", `{"$and":[{"b":2},{"a":1}]}`, `{"a":1}`},
		{"an $or of one", `{"$or":[{"a":1}]}`, `{"a":1}`},
		{"an $in of one", `{"a":{"$in":[1]}}`, `{"a":1}`},
		{"an $or of two", `{"$or":[{"a":1},{"a":2}]}`, `{}`},
		{"$nor", `{"$nor":[{"a":1}]}`, `{}`},
		{"$not", `{"a":{"$not":{"$eq":1}}}`, `{}`},
		{"$ne", `{"a":{"$ne":1}}`, `{}`},
		{"a range", `{"a":{"$gte":1,"$lte":1}}`, `{}`},
		{"null, which missing fields match", `{"a":null}`, `{}`},
		{"an array, which elements match", `{"a":[1]}`, `{}`},
		{"a regular expression", `{"a":{"$regularExpression":{"pattern":"a","options":""}}}`, `{}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := `{}`
			if v, ok := querytest.Filter(t, c.filter).Equal("a"); ok {
				got = querytest.Relaxed(querytest.Document(t, `{"a":`+v.String()+`}`))
			}
			if got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}
