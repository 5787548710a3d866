package projection

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/vm"
	"go.mongodb.org/mongo-driver/v2/bson"
)

// view is what expressions see of a change.
type view struct {
	Data  any       `expr:"data"`
	Event eventView `expr:"event"`

	// documents are the documents of Data by the maps that stand for them.
	documents map[uintptr]bson.Raw
}

type eventView struct {
	ID          string `expr:"id"`
	Type        string `expr:"type"`
	AggregateID string `expr:"aggregateId"`
	Version     any    `expr:"version"` // int64, or nil where unknown
	Time        any    `expr:"time"`    // time.Time, or nil where unknown
	Operation   string `expr:"operation"`
	Sequence    string `expr:"sequence"`
}

// look makes the change's view, once.
func (c *Change) look() (*view, error) {
	if c.view != nil {
		return c.view, nil
	}
	v := &view{
		Event: eventView{
			ID: c.ID, Type: c.Type, AggregateID: c.AggregateID,
			Operation: string(c.Operation), Sequence: string(c.Sequence),
		},
		documents: map[uintptr]bson.Raw{},
	}
	if c.Version.Known {
		v.Event.Version = c.Version.Number
	}
	if !c.Time.IsZero() {
		v.Event.Time = c.Time
	}
	if !c.Data.IsZero() {
		data, err := v.see(c.Data)
		if err != nil {
			return nil, fmt.Errorf("read data: %w", err)
		}
		v.Data = data
	}
	c.view = v
	return v, nil
}

// see turns a BSON value into what expressions work with.
func (v *view) see(value bson.RawValue) (any, error) {
	switch value.Type {
	case bson.TypeEmbeddedDocument:
		document := bson.Raw(value.Value)
		elements, err := document.Elements()
		if err != nil {
			return nil, err
		}
		m := make(map[string]any, len(elements))
		for _, element := range elements {
			if m[element.Key()], err = v.see(element.Value()); err != nil {
				return nil, err
			}
		}
		v.documents[reflect.ValueOf(m).Pointer()] = document
		return m, nil
	case bson.TypeArray:
		values, err := bson.RawArray(value.Value).Values()
		if err != nil {
			return nil, err
		}
		list := make([]any, len(values))
		for i := range values {
			if list[i], err = v.see(values[i]); err != nil {
				return nil, err
			}
		}
		return list, nil
	case bson.TypeNull, bson.TypeUndefined:
		return nil, nil
	case bson.TypeDateTime:
		return value.Time().UTC(), nil
	}
	var seen any
	if err := value.Unmarshal(&seen); err != nil {
		return nil, err
	}
	return seen, nil
}

// store turns an expression's result into what is stored.
func (v *view) store(result any) (any, error) {
	switch r := result.(type) {
	case nil, string, bool, int, int32, int64, float64, time.Time,
		bson.Decimal128, bson.ObjectID, bson.Binary, bson.Regex, bson.Timestamp,
		bson.JavaScript, bson.Symbol, bson.CodeWithScope, bson.DBPointer, bson.MinKey, bson.MaxKey:
		return r, nil
	}
	value := reflect.ValueOf(result)
	switch value.Kind() {
	case reflect.Slice, reflect.Array:
		list := make(bson.A, value.Len())
		for i := range list {
			stored, err := v.store(value.Index(i).Interface())
			if err != nil {
				return nil, err
			}
			list[i] = stored
		}
		return list, nil
	case reflect.Map:
		if document, found := v.documents[value.Pointer()]; found {
			return document, nil
		}
		m, ok := result.(map[string]any)
		if !ok {
			break
		}
		document := make(bson.D, 0, len(m))
		for _, key := range slices.Sorted(maps.Keys(m)) {
			stored, err := v.store(m[key])
			if err != nil {
				return nil, err
			}
			document = append(document, bson.E{Key: key, Value: stored})
		}
		return document, nil
	case reflect.Int8, reflect.Int16:
		return value.Int(), nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		if value.CanInt() || value.Uint() <= 1<<63-1 {
			return int64(value.Uint()), nil
		}
	case reflect.Float32:
		return value.Float(), nil
	}
	return nil, fmt.Errorf("a value of type %T can not be stored", result)
}

// value is an operand of an operator: a literal, or an expression.
type value struct {
	literal any
	program *vm.Program
}

// compile checks and compiles an expression.
func compile(source string) (value, error) {
	program, err := expr.Compile(source, expr.Env(view{}), expr.DisableBuiltin("now"))
	if err == nil {
		return value{program: program}, nil
	}
	if e, ok := errors.AsType[*file.Error](err); ok {
		return value{}, fmt.Errorf("expression %q, column %d: %s", source, e.Column+1, e.Message)
	}
	return value{}, fmt.Errorf("expression %q: %w", source, err)
}

// of is the operand's value for a change.
func (o value) of(c *Change) (any, error) {
	if o.program == nil {
		return o.literal, nil
	}
	seen, err := c.look()
	if err != nil {
		return nil, err
	}
	result, err := expr.Run(o.program, *seen)
	if err != nil {
		if e, ok := errors.AsType[*file.Error](err); ok {
			return nil, errors.New(strings.ToValidUTF8(e.Message, "?"))
		}
		return nil, err
	}
	return seen.store(result)
}
