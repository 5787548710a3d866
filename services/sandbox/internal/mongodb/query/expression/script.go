package expression

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/javascript"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
)

// scriptOperator has the operators that run JavaScript. What they give is never
// computed while compiling.
func scriptOperator(name string) builder {
	switch name {
	case "$function":
		return buildFunction
	case "$_internalJsEmit":
		return buildEmit
	}
	return nil
}

func buildFunction(c *compiler, name string, argument bson.RawValue) (operand, error) {
	scripts := c.env.Scripts
	if scripts == nil {
		return operand{}, mongoerr.New(4660800, "$function cannot be used inside a validator.")
	}
	if argument.Type != bson.TypeEmbeddedDocument {
		return operand{}, mongoerr.New(31260, "%s requires an object as an argument, found: %s", name, typeName(argument))
	}
	body, hasBody := bsonkit.Get(argument.Value, "body")
	args, hasArgs := bsonkit.Get(argument.Value, "args")
	language, hasLanguage := bsonkit.Get(argument.Value, "lang")
	if !hasBody {
		return operand{}, mongoerr.New(31261, "The body function must be specified.")
	}
	code, err := c.code(body)
	if err != nil {
		return operand{}, err
	}
	if !hasArgs {
		return operand{}, mongoerr.New(31263, "The args field must be specified.")
	}
	given, err := c.value(args)
	if err != nil {
		return operand{}, err
	}
	if !hasLanguage {
		return operand{}, mongoerr.New(31418, "The lang field must be specified.")
	}
	if text, _ := language.StringValueOK(); text != "js" {
		return operand{}, mongoerr.New(31419, "Currently the only supported language specifier is 'js'.")
	}
	return operand{eval: func(s *scope) (bson.RawValue, error) {
		v, err := given.in(s)
		if err != nil {
			return v, err
		}
		if v.Type != bson.TypeArray {
			return v, mongoerr.New(31266, "The args field must be of type array")
		}
		return scripts.Call(code, bsonkit.Values(v)...)
	}}, nil
}

// code reads the body of a $function.
func (c *compiler) code(v bson.RawValue) (string, error) {
	body, err := c.value(v)
	if err != nil {
		return "", err
	}
	if body.eval != nil {
		return "", mongoerr.New(31432, "The body function must be a constant expression")
	}
	code, ok := javascript.Code(body.value)
	if !ok {
		return "", mongoerr.New(31262, "The body function must evaluate to type string or code")
	}
	return code, nil
}

// buildEmit is what mapReduce maps by: an array of what a function emits for the
// document.
func buildEmit(c *compiler, name string, argument bson.RawValue) (operand, error) {
	scripts := c.env.Scripts
	doc, _ := argument.DocumentOK()
	eval, _ := bsonkit.Get(doc, "eval")
	code, isCode := javascript.Code(eval)
	this, given := bsonkit.Get(doc, "this")
	if scripts == nil || !isCode || !given {
		return operand{}, mongoerr.New(31221, "%s requires 'eval' and 'this'", name)
	}
	self, err := c.value(this)
	if err != nil {
		return operand{}, err
	}
	return operand{eval: func(s *scope) (bson.RawValue, error) {
		v, err := self.in(s)
		if err != nil {
			return v, err
		}
		if v.Type != bson.TypeEmbeddedDocument {
			return v, mongoerr.New(31225, "'this' must be an object.")
		}
		return scripts.Emits(code, v.Value)
	}}, nil
}
