package modify

import (
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
	"changerelay/services/sandbox/internal/mongodb/query/collation"
	"changerelay/services/sandbox/internal/mongodb/query/expression"
)

// arithmetic is $inc and $mul.
type arithmetic struct {
	creates
	operator string
	by       bson.RawValue
	// initial is what a missing field becomes.
	initial bson.RawValue
	combine func(a, b bson.RawValue) (bson.RawValue, bool)
}

func newIncrement(path string, v bson.RawValue, _ expression.Env) (mutation, error) {
	if !bsonkit.IsNumber(v.Type) {
		return nil, notNumeric("increment", path, v)
	}
	return arithmetic{operator: "$inc", by: v, initial: v, combine: bsonkit.Add}, nil
}

func newMultiplication(path string, v bson.RawValue, _ expression.Env) (mutation, error) {
	if !bsonkit.IsNumber(v.Type) {
		return nil, notNumeric("multiply", path, v)
	}
	zero, _ := bsonkit.Multiply(bsonkit.Int32(0), v)
	if v.Type == bson.TypeDouble {
		zero = bsonkit.Double(0)
	}
	return arithmetic{operator: "$mul", by: v, initial: zero, combine: bsonkit.Multiply}, nil
}

func notNumeric(verb, path string, v bson.RawValue) error {
	return mongoerr.New(mongoerr.TypeMismatch, "Cannot %s with non-numeric argument: {%s: %s}", verb, path, bsonkit.Describe(v))
}

func (m arithmetic) apply(present bson.RawValue, at place) (outcome, error) {
	if present.Type == bsonkit.Missing {
		return outcome{kind: set, value: m.initial}, nil
	}
	if !bsonkit.IsNumber(present.Type) {
		return outcome{}, mongoerr.New(mongoerr.TypeMismatch,
			"Cannot apply %s to a value of non-numeric type. {%s} has the field '%s' of non-numeric type %s",
			m.operator, describeID(at.doc), at.field(), bsonkit.TypeName(present.Type))
	}
	v, ok := m.combine(present, m.by)
	if !ok {
		return outcome{}, mongoerr.New(mongoerr.BadValue,
			"Failed to apply %s operations to current value (%s) for document {%s}",
			m.operator, bsonkit.Describe(present), describeID(at.doc))
	}
	return become(present, v), nil
}

// field is the last component of the path.
func (p place) field() string { return p.path[strings.LastIndexByte(p.path, '.')+1:] }

// extreme is $min and $max.
type extreme struct {
	creates
	value bson.RawValue
	sign  int // what Compare(value, present) must be for a change
	by    *collation.Collation
}

func newMinimum(_ string, v bson.RawValue, env expression.Env) (mutation, error) {
	return extreme{value: v, sign: -1, by: env.Collation}, nil
}

func newMaximum(_ string, v bson.RawValue, env expression.Env) (mutation, error) {
	return extreme{value: v, sign: 1, by: env.Collation}, nil
}

func (m extreme) apply(present bson.RawValue, _ place) (outcome, error) {
	if present.Type == bsonkit.Missing || m.by.Compare(m.value, present) == m.sign {
		return outcome{kind: set, value: m.value}, nil
	}
	return outcome{}, nil
}

// bitwise is $bit: operations that are done one after the other.
type bitwise struct {
	creates
	steps []bitStep
}

type bitStep struct {
	operator string
	operand  bson.RawValue
}

func newBitwise(_ string, v bson.RawValue, _ expression.Env) (mutation, error) {
	if v.Type != bson.TypeEmbeddedDocument {
		return nil, mongoerr.New(mongoerr.BadValue,
			"The $bit modifier is not compatible with a %s. You must pass in an embedded document: {$bit: {field: {and/or/xor: #}}",
			bsonkit.TypeName(v.Type))
	}
	var m bitwise
	for it := bsonkit.Iterate(v.Value); it.Next(); {
		operator := string(it.Key())
		if operator != "and" && operator != "or" && operator != "xor" {
			return nil, mongoerr.New(mongoerr.BadValue,
				"The $bit modifier only supports 'and', 'or', and 'xor', not '%s' which is an unknown operator: {%s: %s}",
				operator, operator, bsonkit.Describe(it.Value()))
		}
		if t := it.Value().Type; t != bson.TypeInt32 && t != bson.TypeInt64 {
			return nil, mongoerr.New(mongoerr.BadValue,
				"The $bit modifier field must be an Integer(32/64 bit); a '%s' is not supported here: {%s: %s}",
				bsonkit.TypeName(t), operator, bsonkit.Describe(it.Value()))
		}
		m.steps = append(m.steps, bitStep{operator, it.Value()})
	}
	if m.steps == nil {
		return nil, mongoerr.New(mongoerr.BadValue,
			"You must pass in at least one bitwise operation. The format is: {$bit: {field: {and/or/xor: #}}")
	}
	return m, nil
}

func (m bitwise) apply(present bson.RawValue, at place) (outcome, error) {
	v := present
	switch present.Type {
	case bsonkit.Missing:
		v = bsonkit.Int32(0)
	case bson.TypeInt32, bson.TypeInt64:
	default:
		return outcome{}, mongoerr.New(mongoerr.BadValue,
			"Cannot apply $bit to a value of non-integral type.%s has the field %s of non-integer type %s",
			describeID(at.doc), at.field(), bsonkit.TypeName(present.Type))
	}
	for _, s := range m.steps {
		v = s.on(v)
	}
	return become(present, v), nil
}

func (s bitStep) on(v bson.RawValue) bson.RawValue {
	a, _ := bsonkit.Truncated(v)
	b, _ := bsonkit.Truncated(s.operand)
	switch s.operator {
	case "and":
		a &= b
	case "or":
		a |= b
	case "xor":
		a ^= b
	}
	if v.Type == bson.TypeInt64 || s.operand.Type == bson.TypeInt64 {
		return bsonkit.Int64(a)
	}
	return bsonkit.Int32(int32(a))
}
