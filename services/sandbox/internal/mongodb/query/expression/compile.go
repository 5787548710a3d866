package expression

import (
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
)

type compiler struct {
	env    Env
	redact bool
	// bound are the variables in scope, innermost last, each with a slot of its
	// own in the scope.
	bound []binding
	slots int
	// reads tells that the document is looked at.
	reads bool
	// foldedBytes is the size of what was computed of constants.
	foldedBytes int
}

type binding struct {
	name string
	slot int
}

// value reads any expression.
func (c *compiler) value(v bson.RawValue) (operand, error) {
	switch v.Type {
	case bson.TypeString:
		return c.text(v)
	case bson.TypeEmbeddedDocument:
		return c.document(v)
	case bson.TypeArray:
		return c.array(v)
	}
	return constant(v), nil
}

func (c *compiler) text(v bson.RawValue) (operand, error) {
	text := string(bsonkit.Text(v))
	switch {
	case strings.HasPrefix(text, "$$"):
		return c.variable(text[2:])
	case strings.HasPrefix(text, "$"):
		c.reads = true
		return fieldPath(text[1:])
	}
	return constant(v), nil
}

func (c *compiler) document(v bson.RawValue) (operand, error) {
	it := bsonkit.Iterate(v.Value)
	if it.Next() && strings.HasPrefix(string(it.Key()), "$") {
		name, argument := string(it.Key()), it.Value()
		if it.Next() {
			return operand{}, mongoerr.New(15983, "An object representing an expression must have exactly one field: %s", bsonkit.Describe(v))
		}
		return c.operator(name, argument)
	}
	return c.fields(v)
}

func (c *compiler) operator(name string, argument bson.RawValue) (operand, error) {
	build, ok := operatorNamed(name)
	if !ok {
		return operand{}, mongoerr.New(mongoerr.InvalidPipelineOperator, "Unrecognized expression '%s'", name)
	}
	return build(c, name, argument)
}

// fields reads a document whose values are expressions.
func (c *compiler) fields(v bson.RawValue) (operand, error) {
	var names []string
	var values []operand
	seen := map[string]bool{}
	for it := bsonkit.Iterate(v.Value); it.Next(); {
		name := string(it.Key())
		switch {
		case name == "":
			return operand{}, mongoerr.New(15998, "FieldPath field names may not be empty strings.")
		case seen[name]:
			return operand{}, mongoerr.New(16406, "duplicate field name specified in object literal: %s", bsonkit.Describe(v))
		case strings.HasPrefix(name, "$"):
			return operand{}, mongoerr.New(16410, "FieldPath field names may not start with '$'.")
		case strings.Contains(name, "."):
			return operand{}, mongoerr.New(16412, "FieldPath field names may not contain '.'.")
		}
		seen[name] = true
		value, err := c.value(it.Value())
		if err != nil {
			return operand{}, err
		}
		names, values = append(names, name), append(values, value)
	}
	return c.folded(values, func(s *scope) (bson.RawValue, error) {
		b := bsonkit.NewBuilder(nil)
		size := 0
		for i, value := range values {
			v, err := value.in(s)
			if size += len(v.Value); err == nil && size > maxValue {
				err = errTooLarge(size)
			}
			if err != nil {
				return v, err
			}
			b.Append(names[i], v)
		}
		return bsonkit.Document(b.Finish()), nil
	}), nil
}

func (c *compiler) array(v bson.RawValue) (operand, error) {
	elements, err := c.list(v)
	return c.folded(elements, func(s *scope) (bson.RawValue, error) {
		values, err := evalAll(s, elements)
		return bsonkit.Array(values), err
	}), err
}

// list reads the elements of an array, each an expression.
func (c *compiler) list(v bson.RawValue) ([]operand, error) {
	var elements []operand
	for it := bsonkit.Iterate(v.Value); it.Next(); {
		element, err := c.value(it.Value())
		if err != nil {
			return nil, err
		}
		elements = append(elements, element)
	}
	return elements, nil
}

// arguments reads what an operator is given: an array of arguments, or one
// argument without an array around it.
func (c *compiler) arguments(v bson.RawValue) ([]operand, error) {
	if v.Type == bson.TypeArray {
		return c.list(v)
	}
	argument, err := c.value(v)
	return []operand{argument}, err
}

func evalAll(s *scope, operands []operand) ([]bson.RawValue, error) {
	return together(len(operands), func(i int) (bson.RawValue, error) { return operands[i].in(s) })
}

// together computes n values that are kept at the same time: they are no larger than
// one value may be.
func together(n int, eval func(i int) (bson.RawValue, error)) ([]bson.RawValue, error) {
	values := make([]bson.RawValue, n)
	size := 0
	for i := range values {
		v, err := eval(i)
		if size += len(v.Value); err == nil && size > maxValue {
			err = errTooLarge(size)
		}
		if err != nil {
			return nil, err
		}
		values[i] = v
	}
	return values, nil
}

const (
	// maxConstant bounds a value that is kept, and maxFolded all those that are
	// computed before there is a document to compute them for.
	maxConstant = 64 << 10
	maxFolded   = 1 << 20
)

// folded computes an operation on constants once, as the server does when it
// optimizes. One that fails also fails when it is reached, and one whose result is
// large is computed then.
func (c *compiler) folded(operands []operand, eval func(s *scope) (bson.RawValue, error)) operand {
	if !constants(operands) || c.foldedBytes >= maxFolded {
		return operand{eval: eval}
	}
	v, err := operand{eval: eval}.in(&scope{interrupted: c.env.Interrupted})
	c.foldedBytes += len(v.Value)
	if err != nil {
		return c.failed(err)
	}
	if len(v.Value) > maxConstant {
		return operand{eval: eval}
	}
	return constant(v)
}

// failed is an operation of which it is known beforehand how it fails.
func (c *compiler) failed(err error) operand {
	c.env.Folding.note(err)
	return operand{eval: func(*scope) (bson.RawValue, error) { return bson.RawValue{}, err }}
}

func constants(operands []operand) bool {
	return !slices.ContainsFunc(operands, func(o operand) bool { return o.eval != nil })
}

// named reads an argument that is a document of named expressions.
func (c *compiler) named(v bson.RawValue, allowed func(name string) error) (map[string]operand, error) {
	fields := map[string]operand{}
	for it := bsonkit.Iterate(v.Value); it.Next(); {
		name := string(it.Key())
		if err := allowed(name); err != nil {
			return nil, err
		}
		field, err := c.value(it.Value())
		if err != nil {
			return nil, err
		}
		fields[name] = field
	}
	return fields, nil
}
