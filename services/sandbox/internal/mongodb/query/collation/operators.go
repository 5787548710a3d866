package collation

import (
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
)

// ComparingOperator finds an operator of an expression that may compare text with
// text, and so in the order of a collation; it is empty where there is none.
func ComparingOperator(expression bson.RawValue) string {
	if expression.Type != bson.TypeEmbeddedDocument && expression.Type != bson.TypeArray {
		return ""
	}
	for it := bsonkit.Iterate(expression.Value); it.Next(); {
		name := string(it.Key())
		if expression.Type == bson.TypeEmbeddedDocument && comparesText(name, it.Value()) {
			return name
		}
		if within := ComparingOperator(it.Value()); within != "" {
			return within
		}
	}
	return ""
}

func comparesText(operator string, operands bson.RawValue) bool {
	switch operator {
	case "$eq", "$ne", "$gt", "$gte", "$lt", "$lte", "$cmp":
		return operands.Type != bson.TypeArray || !slices.ContainsFunc(bsonkit.Values(operands), holdsNoText)
	case "$in", "$indexOfArray", "$setEquals", "$setIntersection", "$setUnion", "$setDifference", "$setIsSubset",
		"$min", "$max", "$addToSet":
		return true
	}
	return false
}

// holdsNoText tells a constant that no text is equal to in any collation. Text may
// be a path, and a document an operator.
func holdsNoText(v bson.RawValue) bool {
	switch v.Type {
	case bson.TypeString, bson.TypeSymbol, bson.TypeEmbeddedDocument, bson.TypeArray:
		return false
	}
	return true
}
