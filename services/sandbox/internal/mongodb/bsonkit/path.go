package bsonkit

import (
	"strconv"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Path is a dotted path that has been split once.
type Path struct {
	text  string
	parts []string
}

// ParsePath splits a path at its dots. Any text is a path.
func ParsePath(text string) Path {
	return Path{text: text, parts: strings.Split(text, ".")}
}

// String is the path as it was written.
func (p Path) String() string { return p.text }

// Single is the one value that the path means, where no array is on the way; it
// may be missing. With an array it reports false: then there is Walk.
func (p Path) Single(doc []byte) (bson.RawValue, bool) {
	last := len(p.parts) - 1
	for i, part := range p.parts {
		v, _ := Get(doc, part)
		switch {
		case v.Type == bson.TypeArray:
			return bson.RawValue{}, false
		case i == last:
			return v, true
		case v.Type != bson.TypeEmbeddedDocument:
			return bson.RawValue{}, true
		}
		doc = v.Value
	}
	return bson.RawValue{}, true
}

// Found is one value that a path means in a document.
type Found struct {
	Value bson.RawValue
	// Index is the position, in the outermost array that the path went
	// through, of the element that led here; -1 where there was none.
	Index int
	// Whole says that the value is an array at the end of the path, given as
	// itself after its elements.
	Whole bool
}

// Walk calls yield for each value that the path means in the document, as a
// filter's conditions see it, until yield returns false. The path goes through
// every element of an array on its way, or, where a component is a number,
// through the one with that index. An array at its end gives its elements and
// then itself. A path that leads nowhere outside an array gives a missing
// value; inside an array, elements that are no documents give nothing.
//
// Walk reports whether it came to the end.
func (p Path) Walk(doc []byte, yield func(Found) bool) bool {
	w := walker{yield: yield, leaf: true, index: -1}
	return w.document(doc, p.parts)
}

// WalkLeaves is Walk with an array at the end of the path given only as
// itself, not element by element.
func (p Path) WalkLeaves(doc []byte, yield func(Found) bool) bool {
	w := walker{yield: yield, index: -1}
	return w.document(doc, p.parts)
}

type walker struct {
	yield func(Found) bool
	leaf  bool // look into an array at the end
	index int
}

func (w *walker) document(doc []byte, parts []string) bool {
	for {
		v, _ := Get(doc, parts[0])
		parts = parts[1:]
		switch {
		case v.Type == bson.TypeArray:
			return w.array(v, parts)
		case len(parts) == 0:
			return w.give(v)
		case v.Type != bson.TypeEmbeddedDocument:
			return w.give(bson.RawValue{})
		}
		doc = v.Value
	}
}

func (w *walker) array(array bson.RawValue, parts []string) bool {
	if len(parts) == 0 {
		return w.lastArray(array)
	}
	outermost := w.index < 0
	wanted, numeric := arrayIndex(parts[0])
	i := 0
	for it := Iterate(array.Value); it.Next(); i++ {
		if outermost {
			w.index = i
		}
		if it.value.Type == bson.TypeEmbeddedDocument && !w.document(it.value.Value, parts) {
			return false
		}
		if numeric && i == wanted && !w.element(it.value, parts[1:]) {
			return false
		}
	}
	if outermost {
		w.index = -1
	}
	return true
}

// element follows a path that named an array element by its index.
func (w *walker) element(v bson.RawValue, parts []string) bool {
	switch {
	case len(parts) == 0:
		return w.give(v)
	case v.Type == bson.TypeEmbeddedDocument:
		return w.document(v.Value, parts)
	case v.Type == bson.TypeArray:
		return w.array(v, parts)
	}
	return true
}

func (w *walker) lastArray(array bson.RawValue) bool {
	if w.leaf {
		outermost := w.index < 0
		i := 0
		for it := Iterate(array.Value); it.Next(); i++ {
			if outermost {
				w.index = i
			}
			if !w.give(it.value) {
				return false
			}
		}
		if outermost {
			w.index = -1
		}
	}
	return w.yield(Found{Value: array, Index: w.index, Whole: true})
}

func (w *walker) give(v bson.RawValue) bool {
	return w.yield(Found{Value: v, Index: w.index})
}

// IsIndex reports whether a path component can name an array element.
func IsIndex(part string) bool {
	_, ok := arrayIndex(part)
	return ok
}

// arrayIndex reads a path component that can name an array element.
func arrayIndex(part string) (int, bool) {
	if part == "" || len(part) > 1 && part[0] == '0' || part[0] < '0' || part[0] > '9' {
		return 0, false
	}
	n, err := strconv.Atoi(part)
	return n, err == nil
}
