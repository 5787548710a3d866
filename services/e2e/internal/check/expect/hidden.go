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
	all := h.hidings()
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

func (h Hidden) hidings() (all []hiding) {
	for _, path := range h.Dropped {
		all = append(all, hiding{path: strings.Split(path, ".")})
	}
	for _, path := range h.Masked {
		all = append(all, hiding{path: strings.Split(path, "."), masked: true})
	}
	return all
}

// in is the document in a field of a change as messages show it; nil where there is none.
func (h Hidden) in(change bson.Raw, field string) (bson.Raw, error) {
	document, is := change.Lookup(field).DocumentOK()
	if !is {
		return nil, nil
	}
	return h.Of(document)
}

// described is what messages show of the description of an update: of the fields that were
// changed by their paths, and of those that are gone, or were cut, the paths alone.
// See https://www.mongodb.com/docs/manual/reference/change-events/update/
func (h Hidden) described(change bson.Raw) (bson.D, error) {
	var left bson.D
	if fields, is := change.Lookup("updateDescription", "updatedFields").DocumentOK(); is {
		elements, err := fields.Elements()
		if err != nil {
			return nil, fmt.Errorf("read what was changed: %w", err)
		}
		changed := bson.D{}
		for _, e := range elements {
			switch below, itself := h.underDotted(e.Key()); {
			case itself == nil:
				changed = append(changed, bson.E{Key: e.Key(), Value: shownIn(e.Value(), below)})
			case itself.masked:
				changed = append(changed, bson.E{Key: e.Key(), Value: mask})
			}
		}
		left = append(left, bson.E{Key: "changed", Value: changed})
	}
	for _, part := range [...]struct{ name, from string }{{"removed", "removedFields"}, {"truncated", "truncatedArrays"}} {
		array, _ := change.Lookup("updateDescription", part.from).ArrayOK()
		values, _ := array.Values()
		shown := bson.A{}
		for _, v := range values {
			path, plain := v.StringValueOK()
			if document, is := v.DocumentOK(); is && !plain {
				path, _ = document.Lookup("field").StringValueOK()
			}
			if _, itself := h.underDotted(path); itself == nil || itself.masked {
				shown = append(shown, v)
			}
		}
		if len(shown) > 0 {
			left = append(left, bson.E{Key: part.name, Value: shown})
		}
	}
	return left, nil
}

// underDotted is under for a path as the description of an update has it, where the numbers
// of array elements are names, too. What is hidden stays hidden below.
func (h Hidden) underDotted(path string) (below []hiding, itself *hiding) {
	below = h.hidings()
	for name := range strings.SplitSeq(path, ".") {
		next, at := under(below, name)
		if at != nil {
			return nil, at
		}
		if len(next) == 0 && name != "" && strings.Trim(name, "0123456789") == "" {
			continue
		}
		below = next
	}
	return below, nil
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
