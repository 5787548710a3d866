package projection

import (
	"encoding"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Operand is what code does to one field of a document.
type Operand struct {
	// Operator is one that files of projections have, by that name.
	Operator string
	Path     string
	// Value is of set, inc, min and max, Values are of push, addToSet and pull.
	Value  any
	Values []any
	// Last bounds what push leaves; 0 does not.
	Last int
}

// Update makes an update of operands. Each value is encoded at once, so that nothing
// can change it any more, and in one way: a map by the order of its keys. It panics
// where a value's own encoding does.
func Update(operands []Operand) (bson.D, error) {
	var update bson.D
	paths := map[string]bool{}
	for i := range operands {
		o := &operands[i]
		if problem := badPath(o.Path); problem != "" {
			return nil, fmt.Errorf("%s %q: %s", o.Operator, o.Path, problem)
		}
		if o.Last < 0 {
			return nil, fmt.Errorf("%s %q: it is to keep less than one element", o.Operator, o.Path)
		}
		if taken, twice := touched(paths, o.Path); twice {
			return nil, fmt.Errorf("%s %q: the field is changed twice, also as %q", o.Operator, o.Path, taken)
		}
		paths[o.Path] = true
		operator, operand, err := o.encoded()
		if err != nil {
			return nil, fmt.Errorf("%s %q: %w", o.Operator, o.Path, err)
		}
		at := slices.IndexFunc(update, func(e bson.E) bool { return e.Key == operator })
		if at < 0 {
			at, update = len(update), append(update, bson.E{Key: operator, Value: bson.D(nil)})
		}
		update[at].Value = append(update[at].Value.(bson.D), bson.E{Key: o.Path, Value: operand})
	}
	return update, nil
}

// encoded is the operator as the server names it, with what stands behind the field.
func (o *Operand) encoded() (operator string, operand any, err error) {
	switch o.Operator {
	case "unset":
		return "$unset", "", nil
	case "push", "addToSet", "pull":
		all := make(bson.A, len(o.Values))
		for i, value := range o.Values {
			if all[i], err = encoded(value); err != nil {
				return "", nil, err
			}
		}
		operator = operators[o.Operator]
		if o.Operator == "pull" {
			return operator, all, nil
		}
		each := bson.D{{Key: "$each", Value: all}}
		if o.Operator == "push" && o.Last > 0 {
			each = append(each, bson.E{Key: "$slice", Value: -o.Last})
		}
		return operator, each, nil
	}
	value, err := encoded(o.Value)
	if err != nil {
		return "", nil, err
	}
	switch operand = native(value); {
	case o.Operator == "inc" && !isNumber(operand):
		return "", nil, fmt.Errorf("the value is of type %T, not a number", o.Value)
	case o.Operator == "set":
		operand = value
	}
	return operators[o.Operator], operand, nil
}

// native is a number or a time as Go has it, which updates are folded by.
func native(value bson.RawValue) any {
	switch value.Type {
	case bson.TypeInt32:
		return value.Int32()
	case bson.TypeInt64:
		return value.Int64()
	case bson.TypeDouble:
		return value.Double()
	case bson.TypeDateTime:
		return value.Time().UTC()
	case bson.TypeDecimal128:
		return value.Decimal128()
	}
	return value
}

// touched is the path among those that are changed which a path is, lies in or holds.
func touched(paths map[string]bool, path string) (string, bool) {
	for taken := range paths {
		if taken == path || strings.HasPrefix(taken, path+".") || strings.HasPrefix(path, taken+".") {
			return taken, true
		}
	}
	return "", false
}

// encoded is a value in BSON.
func encoded(value any) (bson.RawValue, error) {
	buffer := &appender{}
	encoder := bson.NewEncoder(bson.NewDocumentWriter(buffer))
	encoder.SetRegistry(sorting)
	if err := encoder.Encode(bson.D{{Key: "v", Value: value}}); err != nil {
		return bson.RawValue{}, err
	}
	return bson.Raw(buffer.bytes).LookupErr("v")
}

type appender struct{ bytes []byte }

func (a *appender) Write(p []byte) (int, error) {
	a.bytes = append(a.bytes, p...)
	return len(p), nil
}

// sorting encodes maps by the order of their keys; the driver's own registry takes the
// order in which the runtime walks through them, which is another each time.
var sorting = func() *bson.Registry {
	registry := bson.NewRegistry()
	registry.RegisterKindEncoder(reflect.Map, bson.ValueEncoderFunc(encodeSorted))
	return registry
}()

func encodeSorted(ec bson.EncodeContext, writer bson.ValueWriter, value reflect.Value) error {
	if value.IsNil() {
		return writer.WriteNull()
	}
	keys := make(map[string]reflect.Value, value.Len())
	for _, key := range value.MapKeys() {
		text, err := keyOf(key)
		if err != nil {
			return err
		}
		keys[text] = key
	}
	if len(keys) < value.Len() {
		return errors.New("two keys of a map have one text")
	}
	document, err := writer.WriteDocument()
	if err != nil {
		return err
	}
	for _, text := range slices.Sorted(maps.Keys(keys)) {
		inner, err := document.WriteDocumentElement(text)
		if err == nil {
			err = encodeElement(ec, inner, value.MapIndex(keys[text]))
		}
		if err != nil {
			return err
		}
	}
	return document.WriteDocumentEnd()
}

func keyOf(key reflect.Value) (string, error) {
	if key.Kind() == reflect.String {
		return key.String(), nil
	}
	if text, is := reflect.TypeAssert[encoding.TextMarshaler](key); is {
		made, err := text.MarshalText()
		return string(made), err
	}
	return "", fmt.Errorf("a map with keys of type %s, not texts", key.Type())
}

func encodeElement(ec bson.EncodeContext, writer bson.ValueWriter, value reflect.Value) error {
	if value.Kind() == reflect.Interface {
		if value.IsNil() {
			return writer.WriteNull()
		}
		value = value.Elem()
	}
	encoder, err := ec.LookupEncoder(value.Type())
	if err != nil {
		return err
	}
	return encoder.EncodeValue(ec, writer, value)
}
