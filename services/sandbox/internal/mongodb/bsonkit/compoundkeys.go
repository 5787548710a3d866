package bsonkit

import (
	"strconv"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// CompoundKeys calls emit with the values of all paths, once, or once for each
// element of an array that lies on some of the paths ("multikey"). A value is
// undefined for an empty array and missing where its path leads nowhere. The
// values are only good during the call.
//
// Paths that meet two different arrays are parallel and have no keys; emit may
// have been called for some by then.
func CompoundKeys(doc []byte, paths []string, emit func([]bson.RawValue)) (multikey, parallel bool) {
	walks := make([]keyWalk, len(paths))
	for i, path := range paths {
		walks[i] = keyWalk{at: bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: doc}, rest: path}
	}
	return expand(walks, emit)
}

// keyWalk is the way of one indexed path into a document: the value reached and
// the part of the path that still lies before it.
type keyWalk struct {
	at   bson.RawValue
	rest string
	// element tells that the value is an element of an array that has been
	// expanded: an array at the end of the path is then a value like another.
	element bool
}

// expand walks all paths until each has its value, and does so for each element
// of an array that they meet. Paths of one index may meet one array only.
func expand(walks []keyWalk, emit func([]bson.RawValue)) (multikey, parallel bool) {
	array := -1
	for i := range walks {
		walks[i] = walks[i].advance()
		if !walks[i].atArray() {
			continue
		}
		if array >= 0 && !sameValue(walks[array].at, walks[i].at) {
			return false, true
		}
		array = i
	}
	if array < 0 {
		values := make([]bson.RawValue, len(walks))
		for i, w := range walks {
			values[i] = w.at
		}
		emit(values)
		return false, false
	}
	next := make([]keyWalk, len(walks))
	for _, element := range elementsOf(walks[array].at) {
		for i, w := range walks {
			next[i] = w
			if w.atArray() {
				next[i] = w.into(element)
			}
		}
		if _, parallel := expand(next, emit); parallel {
			return true, true
		}
	}
	return true, false
}

// elementsOf gives one undefined element for an empty array: an index holds
// that key for it.
func elementsOf(array bson.RawValue) []bson.RawValue {
	var elements []bson.RawValue
	for it := Iterate(array.Value); it.Next(); {
		elements = append(elements, it.Value())
	}
	if elements == nil {
		return []bson.RawValue{{Type: bson.TypeUndefined}}
	}
	return elements
}

// advance follows the path through documents, up to its end, to an array or to
// where nothing is.
func (w keyWalk) advance() keyWalk {
	for w.rest != "" {
		switch w.at.Type {
		case bson.TypeEmbeddedDocument:
			name, rest, _ := strings.Cut(w.rest, ".")
			w.at, _ = Get(w.at.Value, name)
			w.rest, w.element = rest, false
		case bson.TypeArray:
			element, rest, positional := w.position()
			if !positional {
				return w
			}
			w.at, w.rest, w.element = element, rest, false
		default:
			return keyWalk{}
		}
	}
	return w
}

// position follows a path that names an element of the array by its index.
func (w keyWalk) position() (element bson.RawValue, rest string, ok bool) {
	name, rest, _ := strings.Cut(w.rest, ".")
	if n, err := strconv.ParseUint(name, 10, 31); err != nil || strconv.FormatUint(n, 10) != name {
		return bson.RawValue{}, "", false
	}
	element, ok = Get(w.at.Value, name)
	return element, rest, ok
}

// atArray tells a walk that waits for the elements of the array it has met. An
// array inside an array is not expanded again.
func (w keyWalk) atArray() bool {
	atEnd := w.element && w.rest == ""
	return w.at.Type == bson.TypeArray && !atEnd
}

// into goes on with one element of the array.
func (w keyWalk) into(element bson.RawValue) keyWalk {
	if w.rest == "" {
		return keyWalk{at: element, element: true}
	}
	if element.Type == bson.TypeEmbeddedDocument {
		return keyWalk{at: element, rest: w.rest}
	}
	return keyWalk{}
}

// sameValue reports that both are the same bytes of the same document.
func sameValue(a, b bson.RawValue) bool {
	return len(a.Value) == len(b.Value) && len(a.Value) > 0 && &a.Value[0] == &b.Value[0]
}
