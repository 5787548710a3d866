package storage

import (
	"strconv"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
)

func isTopLevel(path string) bool { return !strings.Contains(path, ".") }

// eachKey calls emit with the values of each key of a document: once, or once
// for each element where an array lies on a path ("multikey"). The values are
// only good during the call. See
// https://www.mongodb.com/docs/manual/core/indexes/index-types/index-multikey/.
func eachKey(fields []IndexField, doc bson.Raw, emit func([]bson.RawValue)) (multikey bool, err error) {
	if len(fields) == 1 {
		return eachSingleKey(fields[0].Path, doc, emit), nil
	}
	paths := make([]string, len(fields))
	for i, f := range fields {
		paths[i] = f.Path
	}
	multikey, parallel := bsonkit.CompoundKeys(doc, paths, emit)
	if parallel {
		return multikey, mongoerr.New(mongoerr.CannotIndexParallelArrays, "cannot index parallel arrays")
	}
	return multikey, nil
}

// eachSingleKey is eachKey for an index on one field.
func eachSingleKey(path string, doc bson.Raw, emit func([]bson.RawValue)) (multikey bool) {
	if isTopLevel(path) {
		v, _ := bsonkit.Get(doc, path)
		if v.Type != bson.TypeArray {
			emit([]bson.RawValue{v})
			return false
		}
	}
	values, multikey := bsonkit.IndexValues(doc, path)
	for i := range values {
		emit(values[i : i+1])
	}
	return multikey
}

// hasPosition reports that a path names elements of arrays by their index, or
// fields that are named like one. A compound index holds only the former.
func hasPosition(path string) bool {
	for part := range strings.SplitSeq(path, ".") {
		if _, err := strconv.ParseUint(part, 10, 31); err == nil {
			return true
		}
	}
	return false
}
