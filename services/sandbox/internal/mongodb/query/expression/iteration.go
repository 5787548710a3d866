package expression

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
)

// iterationOperator has the operators that evaluate an expression for every
// element of an array, with variables for the element.
func iterationOperator(name string) builder {
	switch name {
	case "$filter":
		return buildFilter
	case "$map":
		return buildMap
	case "$reduce":
		return buildReduce
	}
	return nil
}

// parts splits the argument of such an operator into its raw fields.
func parts(name string, argument bson.RawValue, notDocument, unknown mongoerr.Code, required map[string]mongoerr.Code) (map[string]bson.RawValue, error) {
	if argument.Type != bson.TypeEmbeddedDocument {
		return nil, mongoerr.New(notDocument, "%s only supports an object as its argument", name)
	}
	fields := map[string]bson.RawValue{}
	for it := bsonkit.Iterate(argument.Value); it.Next(); {
		key := string(it.Key())
		if _, ok := required[key]; !ok {
			return nil, mongoerr.New(unknown, "Unrecognized parameter to %s: %s", name, key)
		}
		fields[key] = it.Value()
	}
	for key, code := range required {
		if _, ok := fields[key]; !ok && code != 0 {
			return nil, mongoerr.New(code, "Missing '%s' parameter to %s", key, name)
		}
	}
	return fields, nil
}

// elementName is the variable that $map and $filter bind.
func elementName(as bson.RawValue) (string, error) {
	if as.Type == bsonkit.Missing {
		return "this", nil
	}
	name, _ := as.StringValueOK()
	return name, CheckVariable(name)
}

// body compiles an expression that sees the variables.
func (c *compiler) body(v bson.RawValue, names ...string) (body operand, slots []int, err error) {
	for _, name := range names {
		slot, unbind := c.bind(name)
		defer unbind()
		slots = append(slots, slot)
	}
	body, err = c.value(v)
	return body, slots, err
}

func buildFilter(c *compiler, name string, argument bson.RawValue) (operand, error) {
	fields, err := parts(name, argument, 28646, 28647, map[string]mongoerr.Code{"input": 28648, "as": 0, "cond": 28650})
	if err != nil {
		return operand{}, err
	}
	input, body, slot, err := c.elementwise(fields, "cond")
	if err != nil {
		return operand{}, err
	}
	return operand{eval: func(s *scope) (bson.RawValue, error) {
		v, err := input.in(s)
		switch {
		case err != nil:
			return v, err
		case nullish(v):
			return bsonkit.Null(), nil
		case v.Type != bson.TypeArray:
			return v, mongoerr.New(28651, "input to $filter must be an array not %s", typeName(v))
		}
		var kept []bson.RawValue
		for it := s.walk(v); it.Next(); {
			s.slots[slot] = it.Value()
			keep, err := body.in(s)
			if err != nil {
				return v, err
			}
			if bsonkit.Truthy(keep) {
				kept = append(kept, it.Value())
			}
		}
		return bsonkit.Array(kept), nil
	}}, nil
}

func buildMap(c *compiler, name string, argument bson.RawValue) (operand, error) {
	fields, err := parts(name, argument, 16878, 16879, map[string]mongoerr.Code{"input": 16880, "as": 0, "in": 16882})
	if err != nil {
		return operand{}, err
	}
	input, body, slot, err := c.elementwise(fields, "in")
	if err != nil {
		return operand{}, err
	}
	return operand{eval: func(s *scope) (bson.RawValue, error) {
		v, err := input.in(s)
		switch {
		case err != nil:
			return v, err
		case nullish(v):
			return bsonkit.Null(), nil
		case v.Type != bson.TypeArray:
			return v, mongoerr.New(16883, "input to $map must be an array not %s", typeName(v))
		}
		var made []bson.RawValue
		size := 0
		for it := s.walk(v); it.Next(); {
			s.slots[slot] = it.Value()
			w, err := body.in(s)
			if size += len(w.Value); err == nil && size > maxValue {
				err = errTooLarge(size)
			}
			if err != nil {
				return v, err
			}
			made = append(made, orNull(w))
		}
		return bsonkit.Array(made), nil
	}}, nil
}

// elementwise compiles the input and the expression for each element.
func (c *compiler) elementwise(fields map[string]bson.RawValue, each string) (input, body operand, slot int, err error) {
	as, err := elementName(fields["as"])
	if err != nil {
		return input, body, 0, err
	}
	if input, err = c.value(fields["input"]); err != nil {
		return input, body, 0, err
	}
	body, slots, err := c.body(fields[each], as)
	if err != nil {
		return input, body, 0, err
	}
	return input, body, slots[0], nil
}

func buildReduce(c *compiler, name string, argument bson.RawValue) (operand, error) {
	fields, err := parts(name, argument, 40075, 40076, map[string]mongoerr.Code{"input": 40077, "initialValue": 40078, "in": 40079})
	if err != nil {
		return operand{}, err
	}
	input, err := c.value(fields["input"])
	if err != nil {
		return operand{}, err
	}
	initial, err := c.value(fields["initialValue"])
	if err != nil {
		return operand{}, err
	}
	body, slots, err := c.body(fields["in"], "this", "value")
	return operand{eval: func(s *scope) (bson.RawValue, error) {
		v, err := input.in(s)
		switch {
		case err != nil:
			return v, err
		case nullish(v):
			return bsonkit.Null(), nil
		case v.Type != bson.TypeArray:
			return v, mongoerr.New(40080, "$reduce requires that 'input' be an array, found: %s", bsonkit.Describe(v))
		}
		result, err := initial.in(s)
		for it := s.walk(v); err == nil && it.Next(); {
			s.slots[slots[0]], s.slots[slots[1]] = it.Value(), result
			result, err = body.in(s)
		}
		return result, err
	}}, err
}
