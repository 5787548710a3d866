package expression

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
)

// Expr is a compiled expression. It may be used by several goroutines at once.
type Expr struct {
	root        operand
	slots       int
	reads       bool
	interrupted func() error
}

// Compile reads an expression: a literal, a field path, a variable, an
// operator, or a document or array of expressions.
func Compile(v bson.RawValue, env Env) (*Expr, error) {
	c := &compiler{env: env}
	root, err := c.value(v)
	if err != nil {
		return nil, err
	}
	return &Expr{root: root, slots: c.slots, reads: c.reads, interrupted: env.Interrupted}, nil
}

// CompileRedact is Compile for $redact, whose expressions know the variables
// $$DESCEND, $$PRUNE and $$KEEP. They evaluate to these names.
func CompileRedact(v bson.RawValue, env Env) (*Expr, error) {
	c := &compiler{env: env, redact: true}
	root, err := c.value(v)
	if err != nil {
		return nil, err
	}
	return &Expr{root: root, slots: c.slots, reads: c.reads, interrupted: env.Interrupted}, nil
}

// Literal is an expression that always has the value v.
func Literal(v bson.RawValue) *Expr { return &Expr{root: constant(v)} }

// Eval computes the expression for a document, which is $$ROOT and $$CURRENT.
func (e *Expr) Eval(doc bson.Raw) (bson.RawValue, error) { return e.EvalIn(doc, doc) }

// EvalAll computes expressions whose values together are no larger than one may be.
func EvalAll(exprs []*Expr, doc bson.Raw) ([]bson.RawValue, error) {
	return together(len(exprs), func(i int) (bson.RawValue, error) { return exprs[i].Eval(doc) })
}

// EvalIn computes the expression with a $$CURRENT that is a part of $$ROOT.
func (e *Expr) EvalIn(root, current bson.Raw) (bson.RawValue, error) {
	if e.root.eval == nil {
		return e.root.value, nil
	}
	s := scope{root: root, current: current, interrupted: e.interrupted}
	if e.slots > 0 {
		s.slots = make([]bson.RawValue, e.slots)
	}
	return e.root.in(&s)
}

// Reads tells that the expression looks at the document.
func (e *Expr) Reads() bool { return e.reads }

// Constant is the expression's value, if that depends on no document.
func (e *Expr) Constant() (bson.RawValue, bool) { return e.root.value, e.root.eval == nil }

// Compare orders values as the comparison operators do: as bsonkit.Compare,
// but with a missing value before null.
func Compare(a, b bson.RawValue) int {
	if a.Type == bsonkit.Missing {
		a.Type = bson.TypeUndefined
	}
	if b.Type == bsonkit.Missing {
		b.Type = bson.TypeUndefined
	}
	return bsonkit.Compare(a, b)
}

// scope is what one evaluation sees.
type scope struct {
	root, current bson.Raw
	slots         []bson.RawValue // the variables of $let, $map and their kind
	interrupted   func() error
	steps         int
	// stopped is why the evaluation is to end. It stays, and takes the place of
	// whatever an operator makes of a walk that it cut short.
	stopped error
}

// maxValue bounds every value on the way to a result, in bytes.
const maxValue = 32 << 20

// CheckTogether refuses values that are kept together and take so many bytes.
func CheckTogether(size int) error {
	if size > maxValue {
		return errTooLarge(size)
	}
	return nil
}

func errTooLarge(size int) error {
	return mongoerr.New(mongoerr.BSONObjectTooLarge, "BSONObj size: %d is invalid. Size must be between 0 and 16793600(16MB)", size)
}

// operand is a compiled part of an expression: a constant while eval is nil.
type operand struct {
	eval  func(s *scope) (bson.RawValue, error)
	value bson.RawValue
}

func constant(v bson.RawValue) operand { return operand{value: v} }

func (o operand) in(s *scope) (bson.RawValue, error) {
	if o.eval == nil {
		return o.value, nil
	}
	if !s.goesOn(1) {
		return bson.RawValue{}, s.stopped
	}
	v, err := o.eval(s)
	if !s.goesOn(len(v.Value) / bytesOfStep) {
		return bson.RawValue{}, s.stopped
	}
	if err == nil && len(v.Value) > maxValue {
		err = errTooLarge(len(v.Value))
	}
	return v, err
}

// nullish has the values that most operators answer with null.
func nullish(v bson.RawValue) bool {
	return v.Type == bson.TypeNull || v.Type == bson.TypeUndefined || v.Type == bsonkit.Missing
}
