package match

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/query/expression"
)

// Filter is a compiled filter. A nil Filter matches everything.
type Filter struct {
	root condition
	// equalities are what the top-level conjunction demands to be equal to one
	// value, in the filter's order.
	equalities []Equality
}

// Equality says that every match has a value at a path, alone or as an element
// of an array there.
type Equality struct {
	Path  string
	Value bson.RawValue
}

// Equalities are what the filter demands of paths by equalities, in its order.
func (f *Filter) Equalities() []Equality {
	if f == nil {
		return nil
	}
	return f.equalities
}

// Compile reads a filter. A nil or empty filter matches everything.
func Compile(filter bson.Raw, env expression.Env) (*Filter, error) {
	if env.Patterns == nil {
		env.Patterns = &expression.Patterns{}
	}
	p := filterParser{env: env, topLevel: true}
	root, err := p.document(filter)
	if err != nil {
		return nil, err
	}
	return &Filter{root: root, equalities: appendEqualities(nil, root)}, nil
}

// CompileQuery is Compile for the filter of a statement, which the server
// optimizes before there is a document: constants that fail do so at once.
func CompileQuery(filter bson.Raw, env expression.Env) (*Filter, error) {
	env.Folding = &expression.Folding{}
	f, err := Compile(filter, env)
	if err == nil {
		err = env.Folding.Err()
	}
	return f, err
}

// appendEqualities collects the equalities that hold for every match: those of
// conjunctions, and of a disjunction that leaves no choice.
func appendEqualities(dst []Equality, c condition) []Equality {
	switch c := c.(type) {
	case allOf:
		for _, part := range c {
			dst = appendEqualities(dst, part)
		}
	case anyOf:
		if len(c) == 1 {
			dst = appendEqualities(dst, c[0])
		}
	case *pathCondition:
		if v, ok := onlyValue(c.test); ok {
			dst = append(dst, Equality{Path: c.path.String(), Value: v})
		}
	}
	return dst
}

// onlyValue is the value that a predicate wants, if that is a single one.
func onlyValue(p predicate) (bson.RawValue, bool) {
	switch p := p.(type) {
	case *comparison:
		return p.value, p.op == opEq
	case *membership:
		return p.only()
	case *collated:
		return p.equal, p.equal.Type != 0
	}
	return bson.RawValue{}, false
}

// Match reports whether the document fulfils the filter. Only $expr and $where can
// fail.
func (f *Filter) Match(doc bson.Raw) (bool, error) {
	if f == nil {
		return true, nil
	}
	return f.root.match(doc, nil)
}

// Position finds the array element that the positional operator means: the one
// that fulfilled the last condition on an array. It is -1 where there is none.
func (f *Filter) Position(doc bson.Raw) int {
	if f == nil {
		return -1
	}
	at := -1
	if ok, err := f.root.match(doc, &at); err != nil || !ok {
		return -1
	}
	return at
}

// Equal is the one value that the filter demands of path by an equality: as
// {path: value}, as {path: {$eq: value}}, or by either inside a top-level $and.
// Every match has that value at path, alone or as an element of an array there.
// It reports false for null and for arrays, which match in more ways than that.
func (f *Filter) Equal(path string) (bson.RawValue, bool) {
	if f == nil {
		return bson.RawValue{}, false
	}
	for _, e := range f.equalities {
		if e.Path == path && e.Value.Type != bson.TypeNull && e.Value.Type != bson.TypeArray {
			return e.Value, true
		}
	}
	return bson.RawValue{}, false
}

// condition is fulfilled or not by a document as a whole. Where at is not nil
// it is set to the index of the array element that decided.
type condition interface {
	match(doc bson.Raw, at *int) (bool, error)
}

// allOf with no parts matches everything.
type allOf []condition

func (c allOf) match(doc bson.Raw, at *int) (bool, error) {
	for _, part := range c {
		if ok, err := part.match(doc, at); err != nil || !ok {
			return false, err
		}
	}
	return true, nil
}

type anyOf []condition

func (c anyOf) match(doc bson.Raw, at *int) (bool, error) {
	for _, part := range c {
		if ok, err := part.match(doc, at); err != nil || ok {
			return ok, err
		}
	}
	return false, nil
}

type not struct{ condition }

func (c not) match(doc bson.Raw, _ *int) (bool, error) {
	ok, err := c.condition.match(doc, nil)
	return !ok && err == nil, err
}

// pathCondition is fulfilled by a document in which any value at the path
// passes the test.
type pathCondition struct {
	path bsonkit.Path
	test predicate
	// whole gives an array at the end of the path to the test only as itself.
	whole bool
}

func (c *pathCondition) match(doc bson.Raw, at *int) (bool, error) {
	if v, ok := c.path.Single(doc); ok {
		return c.test.pass(v, nil), nil
	}
	return c.walk(doc, at), nil
}

func (c *pathCondition) walk(doc bson.Raw, at *int) bool {
	passed := false
	visit := func(f bsonkit.Found) bool {
		if !c.test.pass(f.Value, at) {
			return true
		}
		if at != nil && f.Index >= 0 {
			*at = f.Index
		}
		passed = true
		return false
	}
	if c.whole {
		c.path.WalkLeaves(doc, visit)
	} else {
		c.path.Walk(doc, visit)
	}
	return passed
}
