package expression

import (
	"errors"
	"fmt"

	"github.com/expr-lang/expr/ast"
	"go.mongodb.org/mongo-driver/v2/bson"
)

// absent is what a node has instead of a value: a field that is not there, the
// first element of an empty list. Only ??, ?. and a comparison with nil take it.
type absent struct{ node ast.Node }

// skipped is what is left of a chain behind ?. where there is nothing to go on with.
type skipped struct{}

// isNone tells whether there is no value: absent, BSON's undefined, or null.
func isNone(v any) bool {
	if v == nil {
		return true
	}
	return isAbsent(v)
}

// isAbsent tells whether there is no value, not even null. BSON's undefined
// stands for a field that has none.
func isAbsent(v any) bool {
	switch v.(type) {
	case absent, bson.Undefined:
		return true
	}
	return false
}

// need is a node's value, which must be there.
func (e *evaluation) need(node ast.Node) (any, error) {
	v, err := e.eval(node)
	if err != nil {
		return nil, err
	}
	if a, ok := v.(absent); ok {
		return nil, a.problem()
	}
	if isAbsent(v) {
		return nil, fmt.Errorf("%s is undefined: write ?? and what it is then, if it may be", shown(node))
	}
	return v, nil
}

func (a absent) problem() error {
	if n, ok := a.node.(*ast.MemberNode); ok {
		if name, ok := n.Property.(*ast.StringNode); ok {
			return fmt.Errorf("%s is missing: write ?.%s if it may be, or ?? and what it is then", shown(n), name.Value)
		}
	}
	return fmt.Errorf("%s has no value: write ?? and what it is then, if that may be", shown(a.node))
}

// shown is a node's source, cut where it is long.
func shown(node ast.Node) string { return fmt.Sprintf("%.100s", node.String()) }

// located is an error that says where in the expression it is.
type located struct {
	node ast.Node
	error
}

func (l *located) Error() string { return shown(l.node) + ": " + l.error.Error() }

func (l *located) Unwrap() error { return l.error }

// at says where an error is, unless that has been said, or it is about the whole.
func at(node ast.Node, err error) error {
	_, said := errors.AsType[*located](err)
	_, bound := errors.AsType[boundError](err)
	if said || bound || errors.Is(err, ErrInterrupted) {
		return err
	}
	return &located{node, err}
}
