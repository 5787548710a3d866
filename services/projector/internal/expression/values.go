package expression

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// remembered is the length from which on values of the data are kept.
const remembered = 128

// see turns a BSON value into what expressions work with. Documents stay as
// they are until a field of them is asked for.
func (e *evaluation) see(value bson.RawValue) (any, error) {
	switch value.Type {
	case bson.TypeEmbeddedDocument:
		return bson.Raw(value.Value), nil
	case bson.TypeArray:
		return e.once(value, e.seeList)
	case bson.TypeNull:
		return nil, nil
	case bson.TypeDateTime:
		return value.Time().UTC(), nil
	case bson.TypeString:
		return e.once(value, e.seeText)
	case bson.TypeBoolean:
		return whole(value.BooleanOK())
	case bson.TypeInt32:
		return whole(value.Int32OK())
	case bson.TypeInt64:
		return whole(value.Int64OK())
	case bson.TypeDouble:
		return whole(value.DoubleOK())
	case bson.TypeObjectID:
		return whole(value.ObjectIDOK())
	case bson.TypeDecimal128:
		return whole(value.Decimal128OK())
	case bson.TypeUndefined:
		return bson.Undefined{}, nil
	}
	return value, nil
}

// whole is a value of the data that was read, unless its bytes are cut.
func whole[T any](v T, ok bool) (any, error) {
	if !ok {
		return nil, fmt.Errorf("read data: a value is cut")
	}
	return v, nil
}

// once makes a value, or has it from before.
func (e *evaluation) once(value bson.RawValue, by func(bson.RawValue) (any, error)) (any, error) {
	if len(value.Value) < remembered {
		return by(value)
	}
	at := &value.Value[0]
	if seen, ok := e.seen[at]; ok {
		return seen, nil
	}
	seen, err := by(value)
	if err != nil {
		return nil, err
	}
	if e.seen == nil {
		e.seen = map[*byte]any{}
	}
	e.seen[at] = seen
	return seen, nil
}

func (e *evaluation) seeText(value bson.RawValue) (any, error) {
	if err := e.make(len(value.Value)); err != nil {
		return nil, err
	}
	text, ok := value.StringValueOK()
	if !ok {
		return nil, fmt.Errorf("read data: a text is cut")
	}
	return text, nil
}

func (e *evaluation) seeList(value bson.RawValue) (any, error) {
	elements, err := e.elements(bson.Raw(value.Value))
	if err != nil {
		return nil, err
	}
	list := make([]any, len(elements))
	for i, element := range elements {
		if list[i], err = e.see(element.Value()); err != nil {
			return nil, err
		}
	}
	if len(list) > 0 {
		if e.came == nil {
			e.came = map[*any]original{}
		}
		e.came[&list[0]] = original{value, len(list)}
	}
	return list, nil
}

// elements are those of a document or an array.
func (e *evaluation) elements(document bson.Raw) ([]bson.RawElement, error) {
	if err := e.spend(1 + len(document)/bytesPerStep); err != nil {
		return nil, err
	}
	elements, err := document.Elements()
	if err != nil {
		return nil, fmt.Errorf("read data: %w", err)
	}
	return elements, e.list(len(elements))
}

// field is a field of a document; false where there is none.
func (e *evaluation) field(document any, name string) (any, bool, error) {
	if m, ok := document.(map[string]any); ok {
		v, there := m[name]
		return v, there, nil
	}
	raw := document.(bson.Raw)
	if err := e.spend(1 + len(raw)/bytesPerStep/4); err != nil {
		return nil, false, err
	}
	value, err := raw.LookupErr(name)
	if err != nil {
		return nil, false, nil
	}
	v, err := e.see(value)
	return v, err == nil, err
}

// entry is a field with its value.
type entry struct {
	key   string
	value any
}

// entries are a document's fields in the order of their names.
func (e *evaluation) entries(document any) ([]entry, error) {
	switch document := document.(type) {
	case map[string]any:
		if err := e.make(len(document) * entrySize); err != nil {
			return nil, err
		}
		sorted := make([]entry, 0, len(document))
		for _, key := range slices.Sorted(maps.Keys(document)) {
			sorted = append(sorted, entry{key, document[key]})
		}
		return sorted, nil
	case bson.Raw:
		elements, err := e.elements(document)
		if err != nil {
			return nil, err
		}
		if err := e.make(len(elements) * entrySize); err != nil {
			return nil, err
		}
		sorted := make([]entry, len(elements))
		for i, element := range elements {
			sorted[i].key = element.Key()
			if sorted[i].value, err = e.see(element.Value()); err != nil {
				return nil, err
			}
		}
		slices.SortStableFunc(sorted, func(a, b entry) int { return cmp.Compare(a.key, b.key) })
		return slices.CompactFunc(sorted, func(a, b entry) bool { return a.key == b.key }), nil
	}
	return nil, fmt.Errorf("takes a document, not %s", kind(document))
}

// store turns an expression's result into what is stored.
func (e *evaluation) store(result any, depth int) (any, error) {
	if depth > maxDepth {
		return nil, errTooDeep
	}
	const scalar = 8
	switch r := result.(type) {
	case nil, bool, int, int32, int64, float64, bson.Undefined, bson.Decimal128, bson.ObjectID:
		return r, e.stored(scalar)
	case string:
		return r, e.stored(scalar + len(r))
	case bson.Raw:
		return r, e.stored(len(r))
	case bson.RawValue:
		return r, e.stored(scalar + len(r.Value))
	case time.Time:
		if !time.UnixMilli(r.UnixMilli()).Equal(r.Truncate(time.Millisecond)) {
			return nil, errOverflow
		}
		return r, e.stored(scalar)
	case []any:
		return e.storeList(r, depth)
	case map[string]any:
		return e.storeDocument(r, depth)
	}
	return nil, fmt.Errorf("%s cannot be stored", kind(result))
}

func (e *evaluation) storeList(list []any, depth int) (any, error) {
	// A part of a list begins where the whole does, and has another end.
	if len(list) > 0 {
		if came, ok := e.came[&list[0]]; ok && came.length == len(list) {
			return came.value, e.stored(len(came.value.Value))
		}
	}
	if err := e.stored(len(list)); err != nil {
		return nil, err
	}
	stored := make(bson.A, len(list))
	for i := range list {
		var err error
		if stored[i], err = e.store(list[i], depth+1); err != nil {
			return nil, err
		}
	}
	return stored, nil
}

func (e *evaluation) storeDocument(m map[string]any, depth int) (any, error) {
	entries, err := e.entries(m)
	if err != nil {
		return nil, err
	}
	document := make(bson.D, len(entries))
	for i, entry := range entries {
		if err := e.stored(len(entry.key)); err != nil {
			return nil, err
		}
		document[i].Key = entry.key
		if document[i].Value, err = e.store(entry.value, depth+1); err != nil {
			return nil, err
		}
	}
	return document, nil
}
