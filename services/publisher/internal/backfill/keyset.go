package backfill

import (
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// typeOrder is the server's order of types: within a query a comparison finds
// values of its own kind only, while a sort goes through all kinds.
// See https://www.mongodb.com/docs/manual/reference/bson-type-comparison-order/
var typeOrder = [][]string{
	{"minKey"},
	{"null", "undefined"},
	{"double", "int", "long", "decimal"},
	{"symbol", "string"},
	{"object"},
	{"array"},
	{"binData"},
	{"objectId"},
	{"bool"},
	{"date"},
	{"timestamp"},
	{"regex"}, // no key: a query can not compare with one
	{"dbPointer"},
	{"javascript"},
	{"javascriptWithScope"},
	{"maxKey"},
}

// bracket is where a type stands in typeOrder.
var bracket = map[bson.Type]int{
	bson.TypeMinKey: 0, bson.TypeNull: 1, bson.TypeUndefined: 1,
	bson.TypeDouble: 2, bson.TypeInt32: 2, bson.TypeInt64: 2, bson.TypeDecimal128: 2,
	bson.TypeSymbol: 3, bson.TypeString: 3, bson.TypeEmbeddedDocument: 4, bson.TypeArray: 5,
	bson.TypeBinary: 6, bson.TypeObjectID: 7, bson.TypeBoolean: 8, bson.TypeDateTime: 9,
	bson.TypeTimestamp: 10, bson.TypeRegex: 11, bson.TypeDBPointer: 12, bson.TypeJavaScript: 13,
	bson.TypeCodeWithScope: 14, bson.TypeMaxKey: 15,
}

// after matches the documents behind a key: in the order of fields, whose values
// at the last document are given.
func after(fields []string, key []bson.RawValue) bson.D {
	var branches bson.A
	var same bson.D
	for i, field := range fields {
		for _, above := range above(field, key[i]) {
			branches = append(branches, append(slices.Clip(same), above))
		}
		same = append(same, bson.E{Key: field, Value: bson.D{{Key: "$eq", Value: key[i]}}})
	}
	return bson.D{{Key: "$or", Value: branches}}
}

// above are conditions one of which a field fulfils whose value sorts above the
// given one. A missing field sorts, and compares, as null.
func above(field string, value bson.RawValue) []bson.E {
	at := bracket[value.Type]
	var conditions []bson.E
	if at != bracket[bson.TypeNull] {
		conditions = append(conditions, bson.E{Key: field, Value: bson.D{{Key: "$gt", Value: value}}})
	}
	var higher bson.A
	for _, types := range typeOrder[at+1:] {
		for _, name := range types {
			higher = append(higher, name)
		}
	}
	if len(higher) > 0 {
		conditions = append(conditions, bson.E{Key: field, Value: bson.D{{Key: "$type", Value: higher}}})
	}
	if at < bracket[bson.TypeNull] {
		conditions = append(conditions, bson.E{Key: field, Value: nil}) // $type does not find a missing field
	}
	return conditions
}
