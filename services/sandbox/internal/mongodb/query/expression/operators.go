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
	return func(c *compiler, name string, argument bson.RawValue) (operand, error) {
		args, err := c.exactly(name, argument, 1)
		if err != nil {
			return operand{}, err
		}
		a := args[0]
		return folded(args, func(s *scope) (bson.RawValue, error) {
			v, err := a.in(s)
			if err != nil {
				return v, err
			}
			return f(v)
		}), nil
	}
}

// binary builds an operator with two arguments.
func binary(f func(a, b bson.RawValue) (bson.RawValue, error)) builder {
	return func(c *compiler, name string, argument bson.RawValue) (operand, error) {
		args, err := c.exactly(name, argument, 2)
		if err != nil {
			return operand{}, err
		}
		a, b := args[0], args[1]
		return folded(args, func(s *scope) (bson.RawValue, error) {
			v, err := a.in(s)
			if err != nil {
				return v, err
			}
			w, err := b.in(s)
			if err != nil {
				return w, err
			}
			return f(v, w)
		}), nil
	}
}

// variadic builds an operator with least to most arguments; most may be -1.
func variadic(least, most int, f func(args []bson.RawValue) (bson.RawValue, error)) builder {
	return func(c *compiler, name string, argument bson.RawValue) (operand, error) {
		args, err := c.arguments(argument)
		if err != nil {
			return operand{}, err
		}
		if len(args) < least || most >= 0 && len(args) > most {
			return operand{}, mongoerr.New(28667, "Expression %s takes at least %d arguments, and at most %d, but %d were passed in.",
				name, least, most, len(args))
		}
		return folded(args, func(s *scope) (bson.RawValue, error) {
			values, err := evalAll(s, args)
			if err != nil {
				return bson.RawValue{}, err
			}
			return f(values)
		}), nil
	}
}

func (c *compiler) exactly(name string, argument bson.RawValue, n int) ([]operand, error) {
	args, err := c.arguments(argument)
	if err == nil && len(args) != n {
		err = mongoerr.New(16020, "Expression %s takes exactly %d arguments. %d were passed in.", name, n, len(args))
	}
	return args, err
}
