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
	walks := make([]walk, len(fields))
	for i, f := range fields {
		walks[i] = walk{at: bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: doc}, rest: f.Path}
	}
	return expand(walks, emit)
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

// walk is the way of one indexed path into a document: the value reached and
// the part of the path that still lies before it.
type walk struct {
	at   bson.RawValue
	rest string
	// element tells that the value is an element of an array that has been
	// expanded: an array at the end of the path is then a value like another.
	element bool
}

// expand walks all paths until each has its value, and does so for each element
// of an array that they meet. Paths of one index may meet one array only.
func expand(walks []walk, emit func([]bson.RawValue)) (multikey bool, err error) {
	array := -1
	for i := range walks {
		walks[i] = walks[i].advance()
		if !walks[i].atArray() {
			continue
		}
		if array >= 0 && !sameValue(walks[array].at, walks[i].at) {
			return false, mongoerr.New(mongoerr.CannotIndexParallelArrays, "cannot index parallel arrays")
		}
		array = i
	}
	if array < 0 {
		values := make([]bson.RawValue, len(walks))
		for i, w := range walks {
			values[i] = w.at
		}
		emit(values)
		return false, nil
	}
	elements := elementsOf(walks[array].at)
	for _, element := range elements {
		next := make([]walk, len(walks))
		for i, w := range walks {
			next[i] = w
			if w.atArray() {
				next[i] = w.into(element)
			}
		}
		if _, err := expand(next, emit); err != nil {
			return true, err
		}
	}
	return true, nil
}

// elementsOf gives one undefined element for an empty array: an index holds
// that key for it.
func elementsOf(array bson.RawValue) []bson.RawValue {
	var elements []bson.RawValue
	for it := bsonkit.Iterate(array.Value); it.Next(); {
		elements = append(elements, it.Value())
	}
	if elements == nil {
		return []bson.RawValue{{Type: bson.TypeUndefined}}
	}
	return elements
}

// advance follows the path through documents, up to its end, to an array or to
// where nothing is.
func (w walk) advance() walk {
	for w.rest != "" {
		switch w.at.Type {
		case bson.TypeEmbeddedDocument:
			name, rest, _ := strings.Cut(w.rest, ".")
			w.at, _ = bsonkit.Get(w.at.Value, name)
			w.rest, w.element = rest, false
		case bson.TypeArray:
			element, rest, positional := w.position()
			if !positional {
				return w
			}
			w.at, w.rest, w.element = element, rest, false
		default:
			return walk{}
		}
	}
	return w
}

// position follows a path that names an element of the array by its index.
func (w walk) position() (element bson.RawValue, rest string, ok bool) {
	name, rest, _ := strings.Cut(w.rest, ".")
	if n, err := strconv.ParseUint(name, 10, 31); err != nil || strconv.FormatUint(n, 10) != name {
		return bson.RawValue{}, "", false
	}
	element, ok = bsonkit.Get(w.at.Value, name)
	return element, rest, ok
}

// atArray tells a walk that waits for the elements of the array it has met. An
// array inside an array is not expanded again.
func (w walk) atArray() bool {
	atEnd := w.element && w.rest == ""
	return w.at.Type == bson.TypeArray && !atEnd
}

// into goes on with one element of the array.
func (w walk) into(element bson.RawValue) walk {
	if w.rest == "" {
		return walk{at: element, element: true}
	}
	if element.Type == bson.TypeEmbeddedDocument {
		return walk{at: element, rest: w.rest}
	}
	return walk{}
}

// sameValue reports that both are the same bytes of the same document.
func sameValue(a, b bson.RawValue) bool {
	return len(a.Value) == len(b.Value) && len(a.Value) > 0 && &a.Value[0] == &b.Value[0]
}
