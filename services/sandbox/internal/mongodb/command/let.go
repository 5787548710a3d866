package command

import (
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
	"changerelay/services/sandbox/internal/mongodb/query/expression"
)

// TakesLet reads the field let, the variables of a command, where the version has
// it. Each is evaluated once, before any document is looked at, and may read those
// before it. Together they are no larger than one may be.
func (c *Call) TakesLet(a *Arguments, name string, v bson.RawValue) bool {
	if name != "let" || !c.Server.Version.Has(5) {
		return false
	}
	variables, ok := v.DocumentOK()
	if !ok {
		a.Fail(mongoerr.TypeMismatch, "BSON field '%s.let' is the wrong type '%s', expected type 'object'", c.Name, bsonkit.TypeName(v.Type))
	}
	size := 0
	for it := bsonkit.Iterate(variables); it.Next() && a.Err == nil; {
		name := string(it.Key())
		value, err := c.variable(name, it.Value())
		if size += len(value.Value); err == nil {
			err = expression.CheckTogether(size)
		}
		if err != nil {
			a.Err = err
			break
		}
		b := bsonkit.NewBuilder(nil)
		b.Append(name, value)
		c.let = c.variables(b.Finish())
	}
	return true
}

// variable evaluates a variable of the command.
func (c *Call) variable(name string, v bson.RawValue) (bson.RawValue, error) {
	if err := expression.CheckVariable(name); err != nil {
		return v, err
	}
	e, err := expression.Compile(v, c.Env(nil))
	if err != nil {
		return v, err
	}
	if e.Reads() {
		return v, mongoerr.New(4890500, "Command let Expression tried to access a field, but this is not allowed because "+
			"Command let expressions run before the query examines any documents.")
	}
	value, err := e.Eval(bsonkit.Empty)
	if value.Type == bsonkit.Missing {
		value.Type = bson.TypeUndefined
	}
	return value, err
}

// variables are those of a statement with those of the command behind them.
func (c *Call) variables(constants bson.Raw) []bson.Raw {
	if len(constants) == 0 {
		return c.let
	}
	return slices.Concat([]bson.Raw{constants}, c.let)
}
