package bsonkit

import (
	"go.mongodb.org/mongo-driver/v2/bson"
)

// TypeName is the server's name for a type, as $type and error texts use it.
// It is empty for a type that is none.
func TypeName(t bson.Type) string { return typeNames[t] }

// TypeByName finds the type of that name.
func TypeByName(name string) (bson.Type, bool) {
	for t, n := range typeNames {
		if n == name {
			return t, true
		}
	}
	return Missing, false
}

// typeNames is read only.
var typeNames = map[bson.Type]string{
	Missing:                   "missing",
	bson.TypeDouble:           "double",
	bson.TypeString:           "string",
	bson.TypeEmbeddedDocument: "object",
	bson.TypeArray:            "array",
	bson.TypeBinary:           "binData",
	bson.TypeUndefined:        "undefined",
	bson.TypeObjectID:         "objectId",
	bson.TypeBoolean:          "bool",
	bson.TypeDateTime:         "date",
	bson.TypeNull:             "null",
	bson.TypeRegex:            "regex",
	bson.TypeDBPointer:        "dbPointer",
	bson.TypeJavaScript:       "javascript",
	bson.TypeSymbol:           "symbol",
	bson.TypeCodeWithScope:    "javascriptWithScope",
	bson.TypeInt32:            "int",
	bson.TypeTimestamp:        "timestamp",
	bson.TypeInt64:            "long",
	bson.TypeDecimal128:       "decimal",
	bson.TypeMinKey:           "minKey",
	bson.TypeMaxKey:           "maxKey",
}

// Text is the content of a string, symbol or code value. It shares the
// document's memory.
func Text(v bson.RawValue) []byte { return text(v.Value) }
