package expression_test

import (
	"testing"

	"changerelay/services/sandbox/internal/mongodb/mongoerr"
)

func TestArray_Arrays(t *testing.T) {
	t.Parallel()
	check(t, map[string]string{
		`{"$size":"$a"}`:                     `3`,
		`{"$isArray":"$a"}`:                  `true`,
		`{"$isArray":["$i"]}`:                `false`,
		`{"$arrayElemAt":["$a",-1]}`:         `3`,
		`{"$arrayElemAt":["$a",3]}`:          `missing`,
		`{"$arrayElemAt":["$n",0]}`:          `null`,
		`{"$first":"$a"}`:                    `1`,
		`{"$last":"$a"}`:                     `3`,
		`{"$first":"$e"}`:                    `missing`,
		`{"$first":"$n"}`:                    `null`,
		`{"$in":[2,"$a"]}`:                   `true`,
		`{"$in":[{"$numberLong":"2"},"$a"]}`: `true`,
		`{"$in":["x","$a"]}`:                 `false`,
		`{"$indexOfArray":["$a",2]}`:         `1`,
		`{"$indexOfArray":["$a",1,1]}`:       `-1`,
		`{"$indexOfArray":["$n",1]}`:         `null`,
		`{"$concatArrays":["$a",[4]]}`:       `[1,2,3,4]`,
		`{"$concatArrays":["$a","$n"]}`:      `null`,
		`{"$reverseArray":"$a"}`:             `[3,2,1]`,
		`{"$slice":["$a",2]}`:                `[1,2]`,
		`{"$slice":["$a",-2]}`:               `[2,3]`,
		`{"$slice":["$a",1,1]}`:              `[2]`,
		`{"$slice":["$a",-2,1]}`:             `[2]`,
		`{"$slice":["$n",1]}`:                `null`,
		`{"$range":[0,5,2]}`:                 `[0,2,4]`,
		`{"$range":[3,0,-1]}`:                `[3,2,1]`,
		`{"$range":[3,0]}`:                   `[]`,
		`{"$zip":{"inputs":["$a",["x"]]}}`:   `[[1,"x"]]`,
		`{"$zip":{"inputs":["$a",["x"]],"useLongestLength":true,"defaults":[0,"-"]}}`:    `[[1,"x"],[2,"-"],[3,"-"]]`,
		`{"$filter":{"input":"$a","as":"v","cond":{"$ne":["$$v",2]}}}`:                   `[1,3]`,
		`{"$filter":{"input":"$a","cond":{"$gt":["$$this","$d"]}}}`:                      `[3]`,
		`{"$filter":{"input":"$n","cond":true}}`:                                         `null`,
		`{"$map":{"input":"$os","as":"o","in":"$$o.x"}}`:                                 `[1,2,null,null]`,
		`{"$map":{"input":"$a","in":{"$map":{"input":"$e","in":"$$this"}}}}`:             `[[],[],[]]`,
		`{"$map":{"input":"$n","in":1}}`:                                                 `null`,
		`{"$reduce":{"input":"$a","initialValue":0,"in":{"$add":["$$value","$$this"]}}}`: `6`,
		`{"$reduce":{"input":"$e","initialValue":"none","in":1}}`:                        `"none"`,
		`{"$reduce":{"input":"$n","initialValue":0,"in":1}}`:                             `null`,
	})
	checkErrors(t, map[string]mongoerr.Code{
		`{"$size":"$i"}`:                                     17124,
		`{"$size":"$nosuch"}`:                                17124,
		`{"$arrayElemAt":["$i",0]}`:                          28689,
		`{"$arrayElemAt":["$a","x"]}`:                        28690,
		`{"$arrayElemAt":["$a",1.5]}`:                        28691,
		`{"$first":"$i"}`:                                    28689,
		`{"$in":[1,"$i"]}`:                                   40081,
		`{"$indexOfArray":["$i",1]}`:                         40090,
		`{"$indexOfArray":["$a",1,"x"]}`:                     40096,
		`{"$indexOfArray":["$a",1,-1]}`:                      40097,
		`{"$concatArrays":["$i"]}`:                           28664,
		`{"$reverseArray":"$i"}`:                             34435,
		`{"$slice":["$i",1]}`:                                28724,
		`{"$slice":["$a","x"]}`:                              28725,
		`{"$slice":["$a",1.5]}`:                              28726,
		`{"$slice":["$a",1,0]}`:                              28729,
		`{"$range":["x",1]}`:                                 34443,
		`{"$range":[0,1,0]}`:                                 34449,
		`{"$range":[0,2147483647]}`:                          mongoerr.BSONObjectTooLarge,
		`{"$zip":{"inputs":["$i"]}}`:                         34468,
		`{"$filter":1}`:                                      28646,
		`{"$filter":{"input":[],"cond":1,"x":1}}`:            28647,
		`{"$filter":{"cond":1}}`:                             28648,
		`{"$filter":{"input":[]}}`:                           28650,
		`{"$filter":{"input":"$i","cond":1}}`:                28651,
		`{"$map":1}`:                                         16878,
		`{"$map":{"input":[],"in":1,"x":1}}`:                 16879,
		`{"$map":{"in":1}}`:                                  16880,
		`{"$map":{"input":[]}}`:                              16882,
		`{"$map":{"input":"$i","in":1}}`:                     16883,
		`{"$map":{"input":"$a","as":"V","in":1}}`:            16867,
		`{"$reduce":{"input":"$a","in":1}}`:                  40078,
		`{"$reduce":{"input":"$i","initialValue":0,"in":1}}`: 40080,
		`{"$reduce":{"input":"$a","initialValue":0,"in":{"$add":["$s",1]}}}`: 16554,
	})
}

func TestArray_Sets(t *testing.T) {
	t.Parallel()
	check(t, map[string]string{
		`{"$setUnion":["$a",[3,{"$numberLong":"4"},4]]}`: `[1,2,3,4L]`,
		`{"$setUnion":["$a","$n"]}`:                      `null`,
		`{"$setUnion":[]}`:                               `[]`,
		`{"$setIntersection":["$a",[3,1,9],[1]]}`:        `[1]`,
		`{"$setIntersection":[[1,1],[1]]}`:               `[1]`,
		`{"$setDifference":["$a",[2]]}`:                  `[1,3]`,
		`{"$setDifference":["$n",[2]]}`:                  `null`,
		`{"$setEquals":["$a",[3,2,1,1]]}`:                `true`,
		`{"$setEquals":["$a",[1,2]]}`:                    `false`,
		`{"$setEquals":["$a",[1,2,4]]}`:                  `false`,
		`{"$setIsSubset":[[1,2],"$a"]}`:                  `true`,
		`{"$setIsSubset":[[1,9],"$a"]}`:                  `false`,
		`{"$allElementsTrue":["$a"]}`:                    `true`,
		`{"$allElementsTrue":[[1,0]]}`:                   `false`,
		`{"$anyElementTrue":[[0,null,2]]}`:               `true`,
		`{"$anyElementTrue":["$e"]}`:                     `false`,
	})
	checkErrors(t, map[string]mongoerr.Code{
		`{"$setUnion":["$i"]}`:         17043,
		`{"$setIntersection":["$i"]}`:  17047,
		`{"$setDifference":["$i",[]]}`: 17048,
		`{"$setDifference":[[],"$i"]}`: 17049,
		`{"$setEquals":["$a","$n"]}`:   17044,
		`{"$setIsSubset":["$i",[]]}`:   17046,
		`{"$setIsSubset":[[],"$i"]}`:   17042,
		`{"$allElementsTrue":["$i"]}`:  17040,
		`{"$anyElementTrue":["$i"]}`:   17041,
	})
}

func TestArray_Objects(t *testing.T) {
	t.Parallel()
	check(t, map[string]string{
		`{"$mergeObjects":["$o",{"x":9,"n":1},null]}`:    `{"x":9,"y":{"z":2},"n":1}`,
		`{"$mergeObjects":"$n"}`:                         `{}`,
		`{"$mergeObjects":[[{"a":1},{"b":2}]]}`:          `{"a":1,"b":2}`,
		`{"$objectToArray":"$o"}`:                        `[{"k":"x","v":1},{"k":"y","v":{"z":2}}]`,
		`{"$objectToArray":"$n"}`:                        `null`,
		`{"$arrayToObject":[[["a",1],["b",2],["a",3]]]}`: `{"a":3,"b":2}`,
		`{"$arrayToObject":{"$objectToArray":"$o"}}`:     `{"x":1,"y":{"z":2}}`,
		`{"$bsonSize":{}}`:                               `5`,
		`{"$binarySize":"aé"}`:                           `3`,
	})
	checkErrors(t, map[string]mongoerr.Code{
		`{"$mergeObjects":["$i"]}`:             40400,
		`{"$objectToArray":"$i"}`:              40390,
		`{"$arrayToObject":"$i"}`:              40386,
		`{"$arrayToObject":[[5]]}`:             40398,
		`{"$arrayToObject":[[["a"]]]}`:         40397,
		`{"$arrayToObject":[[[1,2]]]}`:         40395,
		`{"$arrayToObject":[[{"k":"a"}]]}`:     40393,
		`{"$arrayToObject":[[{"k":1,"v":1}]]}`: 40394,
		`{"$bsonSize":"$i"}`:                   31393,
		`{"$binarySize":"$i"}`:                 51276,
	})
}
