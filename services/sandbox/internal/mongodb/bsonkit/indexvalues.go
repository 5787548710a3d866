package bsonkit

import "go.mongodb.org/mongo-driver/v2/bson"

// IndexValues lists the values under which an index on path holds the
// document, and whether an array made them several: each element of an array,
// an undefined value for an empty array, a missing value where the path leads
// nowhere. There is always at least one. With AppendKey a missing value gets
// null's key, as in the server's indexes.
//
// Whatever single value a filter's condition on path matches is among them,
// but for whole arrays, which are not indexed as such.
func IndexValues(doc bson.Raw, path string) (values []bson.RawValue, multikey bool) {
	return AppendIndexValues(nil, doc, ParsePath(path))
}

// AppendIndexValues is IndexValues for a caller that brings its own memory and
// a parsed path.
func AppendIndexValues(dst []bson.RawValue, doc bson.Raw, path Path) (values []bson.RawValue, multikey bool) {
	start := len(dst)
	w := walker{leaf: true, index: -1, yield: func(f Found) bool {
		switch {
		case !f.Whole:
			dst = append(dst, f.Value)
			multikey = multikey || f.Index >= 0
		case emptyArray(f.Value):
			dst = append(dst, bson.RawValue{Type: bson.TypeUndefined})
			multikey = true
		}
		return true
	}}
	w.document(doc, path.parts)
	if len(dst) == start {
		dst = append(dst, bson.RawValue{})
		multikey = true
	}
	return dst, multikey
}

func emptyArray(v bson.RawValue) bool {
	it := Iterate(v.Value)
	return !it.Next()
}
