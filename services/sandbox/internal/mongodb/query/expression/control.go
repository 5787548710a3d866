package expression

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
)

func controlOperator(name string) builder {
	switch name {
	case "$literal", "$const":
		return func(_ *compiler, _ string, v bson.RawValue) (operand, error) { return constant(v), nil }
	case "$expr":
		return func(c *compiler, _ string, v bson.RawValue) (operand, error) { return c.value(v) }
	case "$and":
		return logical(false)
	case "$or":
		return logical(true)
	case "$not":
		return unary(func(v bson.RawValue) (bson.RawValue, error) { return bsonkit.Boolean(!bsonkit.Truthy(v)), nil })
	case "$cond":
		return buildCond
	case "$ifNull":
		return buildIfNull
	case "$switch":
		return buildSwitch
	case "$let":
		return buildLet
	}
	return nil
}

// logical is $and and $or: it stops at the first operand that decides.
func logical(decides bool) builder {
	return func(c *compiler, _ string, argument bson.RawValue) (operand, error) {
		args, err := c.arguments(argument)
		return c.folded(args, func(s *scope) (bson.RawValue, error) {
			for _, a := range args {
				v, err := a.in(s)
				if err != nil {
					return v, err
				}
				if bsonkit.Truthy(v) == decides {
					return bsonkit.Boolean(decides), nil
				}
			}
			return bsonkit.Boolean(!decides), nil
		}), err
	}
}

func buildCond(c *compiler, name string, argument bson.RawValue) (operand, error) {
	args, err := c.condArguments(name, argument)
	if err != nil {
		return operand{}, err
	}
	return c.folded(args, func(s *scope) (bson.RawValue, error) {
		v, err := args[0].in(s)
		if err != nil {
			return v, err
		}
		if bsonkit.Truthy(v) {
			return args[1].in(s)
		}
		return args[2].in(s)
	}), nil
}

func (c *compiler) condArguments(name string, argument bson.RawValue) ([]operand, error) {
	if argument.Type != bson.TypeEmbeddedDocument {
		return c.exactly(name, argument, 3)
	}
	fields, err := c.named(argument, func(field string) error {
		if field != "if" && field != "then" && field != "else" {
			return mongoerr.New(17083, "Unrecognized parameter to $cond: %s", field)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	var args []operand
	for i, field := range []string{"if", "then", "else"} {
		a, ok := fields[field]
		if !ok {
			return nil, mongoerr.New(mongoerr.Code(17080+i), "Missing '%s' parameter to $cond", field)
		}
		args = append(args, a)
	}
	return args, nil
}

func buildIfNull(c *compiler, name string, argument bson.RawValue) (operand, error) {
	args, err := c.exactly(name, argument, 2)
	if err != nil {
		return operand{}, err
	}
	return c.folded(args, func(s *scope) (bson.RawValue, error) {
		v, err := args[0].in(s)
		if err != nil || !nullish(v) {
			return v, err
		}
		return args[1].in(s)
	}), nil
}

type branch struct{ when, then operand }

func buildSwitch(c *compiler, _ string, argument bson.RawValue) (operand, error) {
	if argument.Type != bson.TypeEmbeddedDocument {
		return operand{}, mongoerr.New(40060, "$switch requires an object as an argument, found: %s", bsonkit.TypeName(argument.Type))
	}
	var branches []branch
	var otherwise *operand
	for it := bsonkit.Iterate(argument.Value); it.Next(); {
		switch string(it.Key()) {
		case "branches":
			var err error
			if branches, err = c.branches(it.Value()); err != nil {
				return operand{}, err
			}
		case "default":
			o, err := c.value(it.Value())
			if err != nil {
				return operand{}, err
			}
			otherwise = &o
		default:
			return operand{}, mongoerr.New(40067, "$switch found an unknown argument: %s", it.Key())
		}
	}
	if len(branches) == 0 {
		return operand{}, mongoerr.New(40068, "$switch requires at least one branch.")
	}
	return operand{eval: func(s *scope) (bson.RawValue, error) { return choose(s, branches, otherwise) }}, nil
}

func (c *compiler) branches(v bson.RawValue) ([]branch, error) {
	if v.Type != bson.TypeArray {
		return nil, mongoerr.New(40061, "$switch expected an array for 'branches', found: %s", bsonkit.TypeName(v.Type))
	}
	var branches []branch
	for it := bsonkit.Iterate(v.Value); it.Next(); {
		if it.Value().Type != bson.TypeEmbeddedDocument {
			return nil, mongoerr.New(40062, "$switch expected each branch to be an object, found: %s", bsonkit.TypeName(it.Value().Type))
		}
		fields, err := c.named(it.Value(), func(field string) error {
			if field != "case" && field != "then" {
				return mongoerr.New(40063, "$switch found an unknown argument to a branch: %s", field)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		when, ok := fields["case"]
		if !ok {
			return nil, mongoerr.New(40064, "$switch requires each branch have a 'case' expression")
		}
		then, ok := fields["then"]
		if !ok {
			return nil, mongoerr.New(40065, "$switch requires each branch have a 'then' expression.")
		}
		branches = append(branches, branch{when, then})
	}
	return branches, nil
}

func choose(s *scope, branches []branch, otherwise *operand) (bson.RawValue, error) {
	for _, b := range branches {
		v, err := b.when.in(s)
		if err != nil {
			return v, err
		}
		if bsonkit.Truthy(v) {
			return b.then.in(s)
		}
	}
	if otherwise == nil {
		return bson.RawValue{}, mongoerr.New(40066, "$switch could not find a matching branch for an input, and no default was specified.")
	}
	return otherwise.in(s)
}

func buildLet(c *compiler, _ string, argument bson.RawValue) (operand, error) {
	if argument.Type != bson.TypeEmbeddedDocument {
		return operand{}, mongoerr.New(16874, "$let only supports an object as its argument")
	}
	for it := bsonkit.Iterate(argument.Value); it.Next(); {
		if key := string(it.Key()); key != "vars" && key != "in" {
			return operand{}, mongoerr.New(16875, "Unrecognized parameter to $let: %s", key)
		}
	}
	vars, ok := bsonkit.Get(argument.Value, "vars")
	if !ok {
		return operand{}, mongoerr.New(16876, "Missing 'vars' parameter to $let")
	}
	in, ok := bsonkit.Get(argument.Value, "in")
	if !ok {
		return operand{}, mongoerr.New(16877, "Missing 'in' parameter to $let")
	}
	if vars.Type != bson.TypeEmbeddedDocument {
		return operand{}, mongoerr.New(10065, "invalid parameter: expected an object (vars)")
	}
	var values []operand
	var names []string
	for it := bsonkit.Iterate(vars.Value); it.Next(); {
		name := string(it.Key())
		if err := CheckVariable(name); err != nil {
			return operand{}, err
		}
		value, err := c.value(it.Value())
		if err != nil {
			return operand{}, err
		}
		values, names = append(values, value), append(names, name)
	}
	return c.let(names, values, in)
}

// let binds the names only after all values have been read: they do not see
// each other. Together they are no larger than one value may be.
func (c *compiler) let(names []string, values []operand, in bson.RawValue) (operand, error) {
	slots := make([]int, len(names))
	for i, name := range names {
		slot, unbind := c.bind(name)
		defer unbind()
		slots[i] = slot
	}
	body, err := c.value(in)
	return operand{eval: func(s *scope) (bson.RawValue, error) {
		bound, err := evalAll(s, values)
		if err != nil {
			return bson.RawValue{}, err
		}
		for i, v := range bound {
			s.slots[slots[i]] = v
		}
		return body.in(s)
	}}, err
}
