package query

import (
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/javascript"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
	"changerelay/services/sandbox/internal/mongodb/query/expression"
)

// scripted is an accumulator whose functions are JavaScript.
type scripted interface {
	expression.Accumulator
	// Finish ends it: there is a result after that.
	Finish() error
}

// pendingBytes is how much a script is given at once.
const pendingBytes = 1 << 20

// custom is what a $accumulator says.
type custom struct {
	scripts                           *javascript.Session
	init, accumulate, merge, finalize string
	initArgs                          *expression.Expr
}

// newCustom reads a $accumulator, and what it evaluates for each document.
func newCustom(v bson.RawValue, env expression.Env) (*custom, *expression.Expr, error) {
	if v.Type != bson.TypeEmbeddedDocument {
		return nil, nil, mongoerr.New(4544703, "$accumulator expects an object as an argument; found: %s", bsonkit.TypeName(v.Type))
	}
	a := &custom{scripts: env.Scripts, initArgs: expression.Literal(bsonkit.Array(nil))}
	codes := map[string]*string{"init": &a.init, "accumulate": &a.accumulate, "merge": &a.merge, "finalize": &a.finalize}
	var args *expression.Expr
	for it := bsonkit.Iterate(v.Value); it.Next(); {
		var err error
		switch name := string(it.Key()); name {
		case "init", "accumulate", "merge", "finalize":
			*codes[name], err = constantCode(name, it.Value(), env)
		case "initArgs":
			a.initArgs, err = expression.Compile(it.Value(), env)
		case "accumulateArgs":
			args, err = expression.Compile(it.Value(), env)
		case "lang":
			language, ok := it.Value().StringValueOK()
			if !ok {
				err = mongoerr.New(4544704, "$accumulator lang must be a string; found: %s", bsonkit.TypeName(it.Value().Type))
			} else if language != "js" {
				err = mongoerr.New(4544705, "$accumulator only supports lang: 'js'")
			}
		default:
			err = mongoerr.New(4544706, "$accumulator got an unexpected field: %s", name)
		}
		if err != nil {
			return nil, nil, err
		}
	}
	for i, name := range []string{"init", "accumulate", "merge"} {
		if *codes[name] == "" {
			return nil, nil, mongoerr.New(4544707+mongoerr.Code(i), "$accumulator missing required argument '%s'", name)
		}
	}
	if args == nil {
		return nil, nil, mongoerr.New(4544710, "$accumulator missing required argument 'accumulateArgs'")
	}
	return a, args, nil
}

func constantCode(name string, v bson.RawValue, env expression.Env) (string, error) {
	e, err := expression.Compile(v, env)
	if err != nil {
		return "", err
	}
	constant, ok := e.Constant()
	if !ok {
		return "", mongoerr.New(4544701, "$accumulator '%s' must be a constant expression", name)
	}
	code, ok := javascript.Code(constant)
	if !ok {
		return "", mongoerr.New(4544702, "$accumulator '%s' must be a String or Code", name)
	}
	return code, nil
}

// start makes the accumulator of a group.
func (a *custom) start(id bson.RawValue) (expression.Accumulator, error) {
	key, ok := id.DocumentOK()
	if !ok {
		key = bsonkit.Empty
	}
	args, err := a.initArgs.Eval(key)
	if err != nil {
		return nil, err
	}
	if args.Type != bson.TypeArray {
		return nil, mongoerr.New(4544711, "$accumulator initArgs must evaluate to an array: %s", bsonkit.Describe(args))
	}
	state, err := a.scripts.Call(a.init, bsonkit.Values(args)...)
	return &customState{custom: a, state: state}, err
}

type customState struct {
	*custom
	state bson.RawValue
	// calls are the arguments that the state was not given yet.
	calls []bson.RawValue
	bytes int
}

func (s *customState) Add(v bson.RawValue) error {
	if v.Type != bson.TypeArray {
		return mongoerr.New(4544712, "$accumulator accumulateArgs must evaluate to an array: %s", bsonkit.Describe(v))
	}
	s.calls = append(s.calls, v)
	if s.bytes += len(v.Value) + 16; s.bytes < pendingBytes {
		return nil
	}
	return s.flush()
}

func (s *customState) flush() (err error) {
	if len(s.calls) > 0 {
		s.state, err = s.scripts.Fold(s.accumulate, s.state, bsonkit.Array(s.calls))
		s.calls, s.bytes = nil, 0
	}
	return err
}

func (s *customState) Finish() error {
	err := s.flush()
	if err == nil && s.finalize != "" {
		s.state, err = s.scripts.Call(s.finalize, s.state)
	}
	return err
}

func (s *customState) Result() bson.RawValue { return s.state }

// reduction reduces what mapReduce has mapped, as the server does: from the last
// value to the first, also a single one.
type reduction struct {
	scripts *javascript.Session
	code    string
	key     bson.RawValue
	values  []bson.RawValue
}

// newReduction reads a $_internalJsReduce: the function, and the document of key and
// value that it is given.
func newReduction(v bson.RawValue, env expression.Env) (code string, data *expression.Expr, err error) {
	doc, _ := v.DocumentOK()
	eval, _ := bsonkit.Get(doc, "eval")
	code, ok := javascript.Code(eval)
	argument, given := bsonkit.Get(doc, "data")
	if !ok || !given {
		return "", nil, mongoerr.New(31245, "$_internalJsReduce requires 'eval' and 'data'")
	}
	data, err = expression.Compile(argument, env)
	return code, data, err
}

func (r *reduction) Add(v bson.RawValue) error {
	doc, _ := v.DocumentOK()
	key, hasKey := bsonkit.Get(doc, "k")
	value, hasValue := bsonkit.Get(doc, "v")
	if !hasKey || !hasValue {
		return mongoerr.New(31251, "$_internalJsReduce requires the 'data' argument to have a 'k' and 'v' field")
	}
	r.key, r.values = key, append(r.values, value)
	return nil
}

func (r *reduction) Finish() error {
	for {
		var some []bson.RawValue
		size := len(r.key.Value)
		for _, v := range slices.Backward(r.values) {
			if size += len(v.Value) + 16; size > bsonkit.MaxDocument {
				break
			}
			some = append(some, v)
		}
		if len(some) < 2 && len(some) < len(r.values) {
			return mongoerr.New(31392, "Value too large to reduce")
		}
		reduced, err := r.scripts.Call(r.code, r.key, bsonkit.Array(some))
		if err != nil {
			return err
		}
		left := len(r.values) - len(some)
		r.values = append(r.values[:left], reduced)
		if left == 0 {
			return nil
		}
	}
}

func (r *reduction) Result() bson.RawValue { return r.values[0] }
