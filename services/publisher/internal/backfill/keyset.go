package backfill

import (
	"math"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// typeOrder is the server's order of types: within a query a comparison finds
// values of its own kind only, while a sort goes through all kinds.
// See https://www.mongodb.com/docs/manual/reference/bson-type-comparison-order/
var typeOrder = [][]string{
	{"minKey"},
	{"undefined"}, // no key: a query cannot compare with it
	{"null"},
	{"double", "int", "long", "decimal"},
	{"symbol", "string"},
	{"object"},
	{"array"}, // no key: it sorts by one of its elements
	{"binData"},
	{"objectId"},
	{"bool"},
	{"date"},
	{"timestamp"},
	{"regex"}, // no key: a query cannot compare with one
	{"dbPointer"},
	{"javascript"},
	{"javascriptWithScope"},
	{"maxKey"},
}

// bracket is where a type that can be a key stands in typeOrder.
var bracket = map[bson.Type]int{
	bson.TypeMinKey: 0, bson.TypeNull: 2,
	bson.TypeDouble: 3, bson.TypeInt32: 3, bson.TypeInt64: 3, bson.TypeDecimal128: 3,
	bson.TypeSymbol: 4, bson.TypeString: 4, bson.TypeEmbeddedDocument: 5,
	bson.TypeBinary: 7, bson.TypeObjectID: 8, bson.TypeBoolean: 9, bson.TypeDateTime: 10,
	bson.TypeTimestamp: 11, bson.TypeDBPointer: 13, bson.TypeJavaScript: 14,
	bson.TypeCodeWithScope: 15, bson.TypeMaxKey: 16,
}

// keyless are types whose values have no one place in an order of fields.
var keyless = []bson.Type{bson.TypeUndefined, bson.TypeArray, bson.TypeRegex}

// after matches the documents behind a key: in the order of fields, whose values
// at the last document are given. Of any two documents of different keys one is
// behind the other, whatever types their values have.
func after(fields []string, key []bson.RawValue) bson.D {
	branches := bson.A{}
	var same bson.D
	for i, field := range fields {
		for _, above := range above(field, key[i]) {
			branches = append(branches, append(slices.Clip(same), above))
		}
		same = append(same, equal(field, key[i]))
	}
	if len(branches) == 0 { // behind the highest value of all is nothing
		return bson.D{{Key: fields[0], Value: bson.D{{Key: "$in", Value: bson.A{}}}}}
	}
	return bson.D{{Key: "$or", Value: branches}}
}

// above are conditions one of which a field fulfils whose value sorts above the
// given one. A missing field sorts as null.
func above(field string, value bson.RawValue) []bson.E {
	at := bracket[value.Type]
	if value.Type == bson.TypeMinKey {
		// All but MinKey itself; $type does not find a missing field.
		return []bson.E{{Key: field, Value: noneOf(typeOrder[:1])}}
	}
	var conditions []bson.E
	switch {
	case value.Type == bson.TypeNull, value.Type == bson.TypeMaxKey: // the only values of their kind
	case isNaN(value): // below all numbers, and a comparison with it finds none
		conditions = append(conditions, bson.E{Key: field, Value: bson.D{{Key: "$gte", Value: math.Inf(-1)}}})
	default:
		conditions = append(conditions, bson.E{Key: field, Value: bson.D{{Key: "$gt", Value: value}}})
	}
	if higher := names(typeOrder[at+1:]); len(higher) > 0 {
		conditions = append(conditions, bson.E{Key: field, Value: bson.D{{Key: "$type", Value: higher}}})
	}
	return conditions
}

// equal is fulfilled by a field whose value sorts with the given one.
func equal(field string, value bson.RawValue) bson.E {
	at := bracket[value.Type]
	switch value.Type {
	case bson.TypeMinKey, bson.TypeMaxKey:
		return bson.E{Key: field, Value: bson.D{{Key: "$type", Value: names(typeOrder[at : at+1])}}}
	case bson.TypeNull: // or missing, also where an empty array is on the way
		return bson.E{Key: field, Value: noneOf(append(slices.Clone(typeOrder[:at]), typeOrder[at+1:]...))}
	default:
		return bson.E{Key: field, Value: bson.D{{Key: "$eq", Value: value}}}
	}
}

// noneOf is fulfilled by what is of none of the types, or missing.
func noneOf(types [][]string) bson.D {
	return bson.D{{Key: "$not", Value: bson.D{{Key: "$type", Value: names(types)}}}}
}

func names(types [][]string) bson.A {
	var all bson.A
	for _, some := range types {
		for _, name := range some {
			all = append(all, name)
		}
	}
	return all
}

// isNaN reports whether a value is a number that is none.
func isNaN(value bson.RawValue) bool {
	switch value.Type {
	case bson.TypeDouble:
		return math.IsNaN(value.Double())
	case bson.TypeDecimal128:
		return value.Decimal128().IsNaN()
	default:
		return false
	}
}
