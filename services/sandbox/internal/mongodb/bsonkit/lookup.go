package bsonkit

import (
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Get finds a field of a document by its exact name, which is not split at
// dots.
func Get(doc []byte, name string) (bson.RawValue, bool) {
	for it := Iterate(doc); it.Next(); {
		if string(it.key) == name {
			return it.value, true
		}
	}
	return bson.RawValue{}, false
}

// Lookup finds the value at a dotted path through embedded documents. It does
// not look into arrays.
func Lookup(doc bson.Raw, path string) (bson.RawValue, bool) {
	head, rest, dotted := strings.Cut(path, ".")
	v, ok := Get(doc, head)
	for ok && dotted {
		if v.Type != bson.TypeEmbeddedDocument {
			return bson.RawValue{}, false
		}
		head, rest, dotted = strings.Cut(rest, ".")
		v, ok = Get(v.Value, head)
	}
	return v, ok
}
