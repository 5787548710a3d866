package match_test

import (
	"testing"

	"changerelay/services/sandbox/internal/mongodb/mongoerr"
	"changerelay/services/sandbox/internal/mongodb/query/match"
	"changerelay/services/sandbox/internal/mongodb/query/querytest"
)

func TestSchema_Schemas(t *testing.T) {
	t.Parallel()
	check(t, `[
		{"_id":1,"n":5,"s":"abc","a":[1,2],"o":{"x":1}},
		{"_id":2,"n":6.5,"s":"é","a":[1,1],"o":{}},
		{"_id":3,"n":"text"},
		{"_id":4}]`, map[string]string{
		`{"$jsonSchema":{}}`: "1 2 3 4",
		`{"$jsonSchema":{"bsonType":"object","required":["n","s"]}}`:                                              "1 2",
		`{"$jsonSchema":{"properties":{"n":{"bsonType":"number"}}}}`:                                              "1 2 4",
		`{"$jsonSchema":{"properties":{"n":{"bsonType":["int","string"]}}}}`:                                      "1 3 4",
		`{"$jsonSchema":{"properties":{"n":{"type":"string"}},"required":["n"]}}`:                                 "3",
		`{"$jsonSchema":{"properties":{"n":{"minimum":5,"maximum":6}}}}`:                                          "1 3 4",
		`{"$jsonSchema":{"properties":{"n":{"minimum":5,"exclusiveMinimum":true}}}}`:                              "2 3 4",
		`{"$jsonSchema":{"properties":{"n":{"maximum":6.5,"exclusiveMaximum":true}}}}`:                            "1 3 4",
		`{"$jsonSchema":{"properties":{"n":{"multipleOf":5}}}}`:                                                   "1 3 4",
		`{"$jsonSchema":{"properties":{"n":{"enum":[5,"text"]}}}}`:                                                "1 3 4",
		`{"$jsonSchema":{"properties":{"s":{"minLength":2}}}}`:                                                    "1 3 4",
		`{"$jsonSchema":{"properties":{"s":{"maxLength":1}}}}`:                                                    "2 3 4",
		`{"$jsonSchema":{"properties":{"s":{"pattern":"^a"}}}}`:                                                   "1 3 4",
		`{"$jsonSchema":{"properties":{"a":{"uniqueItems":true}}}}`:                                               "1 3 4",
		`{"$jsonSchema":{"properties":{"a":{"items":{"maximum":1}}}}}`:                                            "2 3 4",
		`{"$jsonSchema":{"properties":{"a":{"items":[{"maximum":1},{"minimum":2}]}}}}`:                            "1 3 4",
		`{"$jsonSchema":{"properties":{"a":{"maxItems":1}}}}`:                                                     "3 4",
		`{"$jsonSchema":{"properties":{"o":{"minProperties":1}}}}`:                                                "1 3 4",
		`{"$jsonSchema":{"properties":{"_id":{},"n":{}},"additionalProperties":false}}`:                           "3 4",
		`{"$jsonSchema":{"additionalProperties":{"bsonType":["int","string"]}}}`:                                  "3 4",
		`{"$jsonSchema":{"properties":{"n":{"not":{"bsonType":"string"}}}}}`:                                      "1 2 4",
		`{"$jsonSchema":{"anyOf":[{"required":["s"]},{"properties":{"_id":{"enum":[4]}}}]}}`:                      "1 2 4",
		`{"$jsonSchema":{"oneOf":[{"required":["s"]},{"required":["n"]}]}}`:                                       "3",
		`{"$jsonSchema":{"allOf":[{"required":["s"]},{"properties":{"_id":{"minimum":2}}}]}}`:                     "2",
		`{"$jsonSchema":{"title":"t","description":"d","required":["o"]},"_id":1}`:                                "1",
		`{"$jsonSchema":{"patternProperties":{"^[ns]$":{"type":"string"}}}}`:                                      "3 4",
		`{"$jsonSchema":{"patternProperties":{"^[ns]":{}},"properties":{"_id":{}},"additionalProperties":false}}`: "3 4",
		`{"$jsonSchema":{"properties":{"n":{"minimum":6}},"patternProperties":{"n":{"type":"number"}}}}`:          "2 4",
		`{"$jsonSchema":{"dependencies":{"n":["s"]}}}`:                                                            "1 2 4",
		`{"$jsonSchema":{"dependencies":{"n":{"properties":{"n":{"maximum":6}}}}}}`:                               "1 3 4",
		`{"$jsonSchema":{"properties":{"o":{"dependencies":{"x":["y"]}}}}}`:                                       "2 3 4",
		`{"$jsonSchema":{"properties":{"a":{"items":[{}],"additionalItems":false}}}}`:                             "3 4",
		`{"$jsonSchema":{"properties":{"a":{"items":[{}],"additionalItems":{"minimum":2}}}}}`:                     "1 3 4",
		`{"$jsonSchema":{"properties":{"a":{"items":{"maximum":2},"additionalItems":false}}}}`:                    "1 2 3 4",
		`{"$jsonSchema":{"properties":{"a":{"additionalItems":false}}}}`:                                          "1 2 3 4",
		`{"$jsonSchema":{"properties":{"a":{"uniqueItems":false}}}}`:                                              "1 2 3 4",
	})
}

func TestSchema_ComparesWithoutTheOrderOfFields(t *testing.T) {
	t.Parallel()
	check(t, `[{"_id":1,"a":[{"x":1,"y":2},{"y":2,"x":1}]},{"_id":2,"o":{"y":2,"x":1}},{"_id":3,"o":{"x":1}}]`, map[string]string{
		`{"$jsonSchema":{"properties":{"a":{"uniqueItems":true}}}}`:            "2 3",
		`{"$jsonSchema":{"properties":{"o":{"enum":[{"x":1,"y":2}]}}}}`:        "1 2",
		`{"$jsonSchema":{"properties":{"a":{"enum":[[{"y":2,"x":1}, "z"]]}}}}`: "2 3",
	})
}

func TestSchema_SchemasAreRefused(t *testing.T) {
	t.Parallel()
	for json, code := range map[string]mongoerr.Code{
		`1`:                                      mongoerr.TypeMismatch,
		`{"nosuch":1}`:                           mongoerr.FailedToParse,
		`{"required":[]}`:                        mongoerr.FailedToParse,
		`{"required":"a"}`:                       mongoerr.TypeMismatch,
		`{"required":[1]}`:                       mongoerr.TypeMismatch,
		`{"properties":1}`:                       mongoerr.TypeMismatch,
		`{"properties":{"a":1}}`:                 mongoerr.TypeMismatch,
		`{"bsonType":1}`:                         mongoerr.TypeMismatch,
		`{"title":1}`:                            mongoerr.TypeMismatch,
		`{"bsonType":"int","type":"number"}`:     mongoerr.FailedToParse,
		`{"exclusiveMinimum":true}`:              mongoerr.FailedToParse,
		`{"bsonType":"nosuch"}`:                  mongoerr.BadValue,
		`{"type":"integer"}`:                     mongoerr.FailedToParse,
		`{"enum":[]}`:                            mongoerr.FailedToParse,
		`{"minimum":"x"}`:                        mongoerr.TypeMismatch,
		`{"multipleOf":0}`:                       mongoerr.FailedToParse,
		`{"minLength":-1}`:                       mongoerr.FailedToParse,
		`{"minItems":1.5}`:                       mongoerr.FailedToParse,
		`{"maxLength":"1"}`:                      mongoerr.FailedToParse,
		`{"multipleOf":-2}`:                      mongoerr.FailedToParse,
		`{"enum":[1,{"$numberDouble":"1.0"}]}`:   mongoerr.FailedToParse,
		`{"enum":[{"x":1,"y":2},{"y":2,"x":1}]}`: mongoerr.FailedToParse,
		`{"required":["a","a"]}`:                 mongoerr.FailedToParse,
		`{"type":"int"}`:                         mongoerr.BadValue,
		`{"type":"bool"}`:                        mongoerr.BadValue,
		`{"bsonType":"boolean"}`:                 mongoerr.BadValue,
		`{"bsonType":[]}`:                        mongoerr.FailedToParse,
		`{"bsonType":["int","int"]}`:             mongoerr.FailedToParse,
		`{"uniqueItems":1}`:                      mongoerr.TypeMismatch,
		`{"minimum":1,"exclusiveMinimum":1}`:     mongoerr.TypeMismatch,
		`{"title":"a","title":"b"}`:              mongoerr.FailedToParse,
		`{"patternProperties":1}`:                mongoerr.TypeMismatch,
		`{"patternProperties":{"a":1}}`:          mongoerr.TypeMismatch,
		`{"patternProperties":{"(":{}}}`:         mongoerr.FailedToParse,
		`{"dependencies":1}`:                     mongoerr.TypeMismatch,
		`{"dependencies":{"a":1}}`:               mongoerr.TypeMismatch,
		`{"dependencies":{"a":[]}}`:              mongoerr.FailedToParse,
		`{"dependencies":{"a":[1]}}`:             mongoerr.TypeMismatch,
		`{"dependencies":{"a":["b","b"]}}`:       mongoerr.FailedToParse,
		`{"additionalItems":1}`:                  mongoerr.TypeMismatch,
		`{"pattern":"("}`:                        51091,
		`{"allOf":[]}`:                           mongoerr.BadValue,
		`{"anyOf":1}`:                            mongoerr.TypeMismatch,
		`{"not":1}`:                              mongoerr.TypeMismatch,
		`{"additionalProperties":1}`:             mongoerr.TypeMismatch,
		`{"items":1}`:                            mongoerr.TypeMismatch,
	} {
		t.Run(json, func(t *testing.T) {
			t.Parallel()
			_, err := match.Compile(querytest.Document(t, `{"$jsonSchema":`+json+`}`), querytest.Env())
			querytest.CheckCode(t, err, code)
		})
	}
}
