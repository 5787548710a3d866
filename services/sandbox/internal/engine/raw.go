package engine

import (
	"strconv"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

var emptyDocument = bson.Raw{5, 0, 0, 0, 0}

// closeDocument ends a document or array that was begun at a place in dst.
func closeDocument(dst []byte, at int32) []byte {
	dst, err := bsoncore.AppendDocumentEnd(dst, at)
	if err != nil {
		panic(err) // only when the place is not in dst
	}
	return dst
}

// arrayKey is the name of an array's element.
func arrayKey(i int) string { return strconv.Itoa(i) }
