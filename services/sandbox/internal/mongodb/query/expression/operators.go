package expression

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/mongoerr"
)

// builder compiles one operator with its argument.
type builder func(c *compiler, name string, argument bson.RawValue) (operand, error)

// Known reports whether there is an operator of that name.
func Known(name string) bool {
	_, ok := operatorNamed(name)
	return ok
}

func operatorNamed(name string) (builder, bool) {
	for _, group := range []func(string) builder{
		controlOperator, comparisonOperator, arithmeticOperator, trigonometricOperator, accumulatorOperator, stringOperator,
		arrayOperator, iterationOperator, setOperator, objectOperator, conversionOperator, dateOperator, scriptOperator,
	} {
		if b := group(name); b != nil {
			return b, true
		}
	}
	return nil, false
}

// unary builds an operator with one argument.
func unary(f func(v bson.RawValue) (bson.RawValue, error)) builder {
	return unaryIn(func(_ *scope, v bson.RawValue) (bson.RawValue, error) { return f(v) })
}

// unaryIn is unary for what may take long.
func unaryIn(f func(s *scope, v bson.RawValue) (bson.RawValue, error)) builder {
	return func(c *compiler, name string, argument bson.RawValue) (operand, error) {
		args, err := c.exactly(name, argument, 1)
		if err != nil {
			return operand{}, err
		}
		a := args[0]
		return c.folded(args, func(s *scope) (bson.RawValue, error) {
			v, err := a.in(s)
			if err != nil {
				return v, err
			}
			return f(s, v)
		}), nil
	}
}

// binary builds an operator with two arguments.
func binary(f func(a, b bson.RawValue) (bson.RawValue, error)) builder {
	return binaryIn(func(_ *scope, a, b bson.RawValue) (bson.RawValue, error) { return f(a, b) })
}

// binaryIn is binary for what may take long.
func binaryIn(f func(s *scope, a, b bson.RawValue) (bson.RawValue, error)) builder {
	return func(c *compiler, name string, argument bson.RawValue) (operand, error) {
		args, err := c.exactly(name, argument, 2)
		if err != nil {
			return operand{}, err
		}
		a, b := args[0], args[1]
		return c.folded(args, func(s *scope) (bson.RawValue, error) {
			v, err := a.in(s)
			if err != nil {
				return v, err
			}
			w, err := b.in(s)
			if err != nil {
				return w, err
			}
			return f(s, v, w)
		}), nil
	}
}

// variadic builds an operator with least to most arguments; most may be -1.
func variadic(least, most int, f func(args []bson.RawValue) (bson.RawValue, error)) builder {
	return variadicIn(least, most, func(_ *scope, args []bson.RawValue) (bson.RawValue, error) { return f(args) })
}

// variadicIn is variadic for what may take long.
func variadicIn(least, most int, f func(s *scope, args []bson.RawValue) (bson.RawValue, error)) builder {
	return func(c *compiler, name string, argument bson.RawValue) (operand, error) {
		args, err := c.between(name, argument, least, most)
		if err != nil {
			return operand{}, err
		}
		return c.applied(args, f), nil
	}
}

// applied is an operation on values.
func (c *compiler) applied(args []operand, f func(s *scope, args []bson.RawValue) (bson.RawValue, error)) operand {
	return c.folded(args, func(s *scope) (bson.RawValue, error) {
		values, err := evalAll(s, args)
		if err != nil {
			return bson.RawValue{}, err
		}
		return f(s, values)
	})
}

// between reads least to most arguments; most may be -1.
func (c *compiler) between(name string, argument bson.RawValue, least, most int) ([]operand, error) {
	args, err := c.arguments(argument)
	if err == nil && (len(args) < least || most >= 0 && len(args) > most) {
		err = mongoerr.New(28667, "Expression %s takes at least %d arguments, and at most %d, but %d were passed in.",
			name, least, most, len(args))
	}
	return args, err
}

func (c *compiler) exactly(name string, argument bson.RawValue, n int) ([]operand, error) {
	args, err := c.arguments(argument)
	if err == nil && len(args) != n {
		err = mongoerr.New(16020, "Expression %s takes exactly %d arguments. %d were passed in.", name, n, len(args))
	}
	return args, err
}
