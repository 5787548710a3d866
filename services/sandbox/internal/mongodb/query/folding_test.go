package query_test

import (
	"testing"

	"changerelay/services/sandbox/internal/mongodb/mongoerr"
	"changerelay/services/sandbox/internal/mongodb/query"
	"changerelay/services/sandbox/internal/mongodb/query/match"
	"changerelay/services/sandbox/internal/mongodb/query/querytest"
)

// Whatever is computed of constants fails before there is a document, also where
// it would never be reached, and after all mistakes in the writing.
func TestCompileAggregation_RefusesConstantsThatFail(t *testing.T) {
	t.Parallel()
	for json, code := range map[string]mongoerr.Code{
		`[{"$project":{"x":{"$divide":[1,0]}}}]`:                                                             16608,
		`[{"$project":{"x":{"$cond":[true,1,{"$divide":[1,0]}]}}}]`:                                          16608,
		`[{"$project":{"x":{"$and":[false,{"$divide":[1,0]}]}}}]`:                                            16608,
		`[{"$project":{"x":{"$ifNull":["$a",{"$divide":[1,0]}]}}}]`:                                          16608,
		`[{"$project":{"x":{"$switch":{"branches":[{"case":false,"then":{"$add":["a",1]}}],"default":1}}}}]`: 16554,
		`[{"$project":{"x":{"$map":{"input":"$a","in":{"$toInt":"x"}}}}}]`:                                   mongoerr.ConversionFailure,
		`[{"$project":{"x":{"$convert":{"input":"x","to":"int"}}}}]`:                                         mongoerr.ConversionFailure,
		`[{"$project":{"x":{"$convert":{"input":"x","to":"int","onError":"$a"}}}}]`:                          0,
		`[{"$project":{"x":{"$regexMatch":{"input":"$a","regex":"("}}}}]`:                                    51111,
		`[{"$project":{"x":{"$regexMatch":{"input":5,"regex":"a"}}}}]`:                                       0,
		`[{"$project":{"x":{"$zip":{"inputs":[5]}}}}]`:                                                       0,
		`[{"$project":{"x":{"$setIsSubset":["$a",5]}}}]`:                                                     17311,
		`[{"$project":{"x":{"$indexOfArray":[5,"$a"]}}}]`:                                                    50809,
		`[{"$project":{"x":{"$switch":{"branches":[{"case":false,"then":1}]}}}}]`:                            0,
		`[{"$match":{"$expr":{"$eq":["$a",{"$divide":[1,0]}]}}}]`:                                            16608,
		`[{"$addFields":{"x":{"y":{"$divide":[1,0]}}}}]`:                                                     16608,
		`[{"$replaceWith":{"$cond":["$a",{},{"$divide":[1,0]}]}}]`:                                           16608,
		`[{"$group":{"_id":{"$divide":[1,0]}}}]`:                                                             16608,
		`[{"$group":{"_id":null,"x":{"$sum":{"$divide":[1,0]}}}}]`:                                           16608,
		`[{"$redact":{"$cond":["$a","$$KEEP",{"$divide":[1,0]}]}}]`:                                          16608,
		`[{"$facet":{"x":[{"$project":{"x":{"$divide":[1,0]}}}]}}]`:                                          16608,
		`[{"$lookup":{"from":"c","let":{},"pipeline":[{"$project":{"x":{"$divide":[1,0]}}}],"as":"l"}}]`:     0,
		`[{"$project":{"x":{"$divide":[1,0]}}},{"$project":{"x":{"$add":["a",1]}}}]`:                         16608,
		`[{"$project":{"x":{"$divide":[1,0]}}},{"$project":{"x":"$$nosuch"}}]`:                               17276,
		`[{"$project":{"x":{"$divide":["$a",0]}}}]`:                                                          0,
	} {
		t.Run(json, func(t *testing.T) {
			t.Parallel()
			stages, env := querytest.Documents(t, json), query.PipelineEnv{Env: querytest.Env(), Collection: database{}.collection}
			_, err := query.CompileAggregation(stages, env)
			querytest.CheckCode(t, err, code)
			if code == 0 || code == 17276 {
				return
			}
			_, err = query.CompilePipeline(stages, env)
			querytest.CheckCode(t, err, 0)
		})
	}
}

func TestCompileQuery_RefusesConstantsThatFail(t *testing.T) {
	t.Parallel()
	filter := querytest.Document(t, `{"a":1,"$or":[{"b":1},{"$expr":{"$or":[true,{"$divide":[1,0]}]}}]}`)
	_, err := match.CompileQuery(filter, querytest.Env())
	querytest.CheckCode(t, err, 16608)
	_, err = match.Compile(filter, querytest.Env())
	querytest.CheckCode(t, err, 0)
}
