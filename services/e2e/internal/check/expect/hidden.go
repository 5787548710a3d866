package expect

import (
	"fmt"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Hidden says what messages do not show of documents, by paths in these: what a publisher
// leaves out (DROP_FIELDS), and what it masks (MASK_FIELDS).
type Hidden struct{ Dropped, Masked []string }

// mask is what messages show of what is masked.
const mask = "***"

// hiding is a path, or the rest of one below a value.
type hiding struct {
	path   []string
	masked bool
}

// Of returns a document as messages show it. A path goes through arrays into each of
// their documents.
func (h Hidden) Of(document bson.Raw) (bson.Raw, error) {
	var all []hiding
	for _, path := range h.Dropped {
		all = append(all, hiding{path: strings.Split(path, ".")})
	}
	for _, path := range h.Masked {
		all = append(all, hiding{path: strings.Split(path, "."), masked: true})
	}
	if all == nil {
		return document, nil
	}
	fields, err := document.Elements()
	if err != nil {
		return nil, fmt.Errorf("hide fields of a document: %w", err)
	}
	raw, err := bson.Marshal(shownOf(fields, all))
	if err != nil {
		return nil, fmt.Errorf("write a document without what is hidden: %w", err)
	}
	return raw, nil
}

// shownOf are the fields that are left.
func shownOf(fields []bson.RawElement, all []hiding) bson.D {
	left := bson.D{}
	for _, field := range fields {
		below, itself := under(all, field.Key())
		switch {
		case itself == nil:
			left = append(left, bson.E{Key: field.Key(), Value: shownIn(field.Value(), below)})
		case itself.masked:
			left = append(left, bson.E{Key: field.Key(), Value: mask})
		}
	}
	return left
}

// under are the paths below a field, and the one that ends with it, if there is one.
func under(all []hiding, name string) (below []hiding, itself *hiding) {
	for _, h := range all {
		switch {
		case h.path[0] != name:
		case len(h.path) == 1:
			itself = &h
		default:
			below = append(below, hiding{path: h.path[1:], masked: h.masked})
		}
	}
	return below, itself
}

// shownIn is a value without what is hidden below it.
func shownIn(v bson.RawValue, below []hiding) any {
	if len(below) == 0 {
		return v
	}
	if document, is := v.DocumentOK(); is {
		fields, _ := document.Elements() // as the whole document was read
		return shownOf(fields, below)
	}
	array, is := v.ArrayOK()
	if !is {
		return v
	}
	elements, _ := array.Values()
	left := bson.A{}
	for _, element := range elements {
		left = append(left, shownIn(element, below))
	}
	return left
}
