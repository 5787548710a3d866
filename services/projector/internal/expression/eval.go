package expression

import (
	"fmt"
	"slices"
	"time"

	"github.com/expr-lang/expr/ast"
	"go.mongodb.org/mongo-driver/v2/bson"
)

// evaluation is one run of a program. Values are
//
//	nil, bool, string, int, int32, int64, float64
//	time.Time, time.Duration, time.Month, time.Weekday, *time.Location
//	[]any, and documents: bson.Raw as they came, map[string]any as they are made
//	bson.ObjectID, bson.Decimal128, and bson.RawValue for what BSON has besides,
//	which are passed on and compared
//	absent, which is no value
//
// They are not changed once they are made.
type evaluation struct {
	budget
	program *Program
	data    any
	hasData bool
	event   map[string]any
	state   bson.Raw // nil where there is none
	element any

	hasElement bool

	variables []variable
	items     []item
	// seen are large values of the data by where they begin, so that each is made once.
	seen map[*byte]any
	// came are the lists of the data by their first element, as they came.
	came map[*any]original
	// patterns are those that are not written in the program.
	patterns map[string]*pattern
}

// original is a list as it came, with how many elements it has.
type original struct {
	value  bson.RawValue
	length int
}

type variable struct {
	name  string
	value any
}

// item is what a predicate sees.
type item struct {
	value any
	index int
	acc   any
}

// eval is a node's value, which may be absent.
func (e *evaluation) eval(node ast.Node) (any, error) {
	if err := e.spend(1); err != nil {
		return nil, err
	}
	switch n := node.(type) {
	case *ast.NilNode:
		return nil, nil
	case *ast.BoolNode:
		return n.Value, nil
	case *ast.IntegerNode:
		return n.Value, nil
	case *ast.FloatNode:
		return n.Value, nil
	case *ast.StringNode:
		return n.Value, nil
	case *ast.IdentifierNode:
		return e.name(n)
	case *ast.PointerNode:
		return e.pointer(n)
	case *ast.MemberNode:
		return e.member(n)
	case *ast.ChainNode:
		return e.chain(n)
	case *ast.SliceNode:
		return e.slice(n)
	case *ast.CallNode:
		return e.call(n)
	case *ast.BuiltinNode:
		return e.builtin(n)
	case *ast.UnaryNode:
		return e.unary(n)
	case *ast.BinaryNode:
		return e.binary(n)
	case *ast.ConditionalNode:
		return e.conditional(n)
	case *ast.VariableDeclaratorNode:
		return e.let(n)
	case *ast.SequenceNode:
		return e.sequence(n)
	case *ast.ArrayNode:
		return e.array(n)
	case *ast.MapNode:
		return e.mapping(n)
	}
	return nil, fmt.Errorf("%s is not of this language", shown(node))
}

func (e *evaluation) name(n *ast.IdentifierNode) (any, error) {
	for _, v := range slices.Backward(e.variables) {
		if v.name == n.Value {
			return v.value, nil
		}
	}
	switch {
	case n.Value == "event":
		return e.event, nil
	case n.Value == "data" && e.hasData:
		return e.data, nil
	case n.Value == "state" && e.state != nil:
		return e.state, nil
	case n.Value == "item" && e.hasElement:
		return e.element, nil
	}
	return absent{n}, nil
}

func (e *evaluation) pointer(n *ast.PointerNode) (any, error) {
	if len(e.items) == 0 {
		return nil, fmt.Errorf("#%s stands outside of a predicate", n.Name)
	}
	switch item := e.items[len(e.items)-1]; n.Name {
	case "":
		return item.value, nil
	case "index":
		return item.index, nil
	case "acc":
		return item.acc, nil
	}
	return nil, fmt.Errorf("#%s is not of this language", n.Name)
}

// chain ends what ?. skips.
func (e *evaluation) chain(n *ast.ChainNode) (any, error) {
	v, err := e.eval(n.Node)
	if _, skip := v.(skipped); skip {
		return nil, err
	}
	return v, err
}

// member is a field of a document or an element of a list. It is absent where
// there is none, and also where there is nothing that could have it.
func (e *evaluation) member(n *ast.MemberNode) (any, error) {
	base, err := e.eval(n.Node)
	if err != nil {
		return nil, err
	}
	if _, skip := base.(skipped); skip || n.Optional && isNone(base) {
		return skipped{}, nil
	}
	if a, ok := base.(absent); ok {
		return a, nil
	}
	if isNone(base) {
		return absent{n}, nil
	}
	key, err := e.need(n.Property)
	if err != nil {
		return nil, err
	}
	v, there, err := e.lookup(base, key)
	switch {
	case err != nil:
		return nil, at(n, err)
	case !there && n.Optional:
		return nil, nil
	case !there:
		return absent{n}, nil
	case n.Optional && isAbsent(v):
		return nil, nil
	}
	return v, nil
}

// lookup is a field or an element; false where there is none.
func (e *evaluation) lookup(base, key any) (any, bool, error) {
	switch base := base.(type) {
	case bson.Raw, map[string]any:
		name, ok := key.(string)
		if !ok {
			return nil, false, fmt.Errorf("a field's name is a text, not %s", kind(key))
		}
		return e.field(base, name)
	case []any:
		n, ok := wholeNumber(key)
		if !ok {
			return nil, false, fmt.Errorf("the place in a list is a whole number, not %s", kind(key))
		}
		if n < 0 {
			n += int64(len(base))
		}
		if n < 0 || n >= int64(len(base)) {
			return nil, false, nil
		}
		return base[n], true, nil
	}
	return nil, false, fmt.Errorf("%s has no fields", kind(base))
}

func (e *evaluation) slice(n *ast.SliceNode) (any, error) {
	base, err := e.need(n.Node)
	if err != nil {
		return nil, err
	}
	length := 0
	switch base := base.(type) {
	case string:
		length = len(base)
	case []any:
		length = len(base)
	default:
		return nil, fmt.Errorf("%s: cannot take a part of %s", shown(n), kind(base))
	}
	from, err := e.bound(n.From, 0, length)
	if err != nil {
		return nil, err
	}
	to, err := e.bound(n.To, length, length)
	if err != nil {
		return nil, err
	}
	from = min(from, to)
	if text, ok := base.(string); ok {
		return text[from:to], nil
	}
	return base.([]any)[from:to:to], nil
}

// bound is one end of a slice, within a length.
func (e *evaluation) bound(node ast.Node, otherwise, length int) (int, error) {
	if node == nil {
		return otherwise, nil
	}
	v, err := e.need(node)
	if err != nil {
		return 0, err
	}
	n, ok := wholeNumber(v)
	if !ok {
		return 0, fmt.Errorf("%s is %s, not a whole number", shown(node), kind(v))
	}
	if n < 0 {
		n += int64(length)
	}
	return int(max(0, min(n, int64(length)))), nil
}

func (e *evaluation) conditional(n *ast.ConditionalNode) (any, error) {
	yes, err := e.truth(n.Cond)
	if err != nil {
		return nil, err
	}
	if yes {
		return e.eval(n.Exp1)
	}
	return e.eval(n.Exp2)
}

// truth is a condition's value.
func (e *evaluation) truth(node ast.Node) (bool, error) {
	v, err := e.need(node)
	if err != nil {
		return false, err
	}
	yes, ok := v.(bool)
	if !ok {
		return false, fmt.Errorf("%s is %s, neither true nor false", shown(node), kind(v))
	}
	return yes, nil
}

func (e *evaluation) let(n *ast.VariableDeclaratorNode) (any, error) {
	value, err := e.eval(n.Value)
	if err != nil {
		return nil, err
	}
	e.variables = append(e.variables, variable{n.Name, value})
	defer func() { e.variables = e.variables[:len(e.variables)-1] }()
	return e.eval(n.Expr)
}

func (e *evaluation) sequence(n *ast.SequenceNode) (v any, err error) {
	for _, node := range n.Nodes {
		if v, err = e.eval(node); err != nil {
			return nil, err
		}
	}
	return v, nil
}

func (e *evaluation) array(n *ast.ArrayNode) (any, error) {
	if err := e.list(len(n.Nodes)); err != nil {
		return nil, err
	}
	return e.all(n.Nodes)
}

// all are the values of nodes.
func (e *evaluation) all(nodes []ast.Node) ([]any, error) {
	values := make([]any, len(nodes))
	for i, node := range nodes {
		var err error
		if values[i], err = e.need(node); err != nil {
			return nil, err
		}
	}
	return values, nil
}

func (e *evaluation) mapping(n *ast.MapNode) (any, error) {
	if err := e.make(len(n.Pairs) * entrySize); err != nil {
		return nil, err
	}
	m := make(map[string]any, len(n.Pairs))
	for _, node := range n.Pairs {
		pair := node.(*ast.PairNode)
		key, err := e.need(pair.Key)
		if err != nil {
			return nil, err
		}
		name, ok := key.(string)
		if !ok {
			return nil, fmt.Errorf("%s is %s, not the name of a field", shown(pair.Key), kind(key))
		}
		if m[name], err = e.need(pair.Value); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// kind names a value's kind for who reads an error.
func kind(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return "a boolean"
	case string:
		return "a text"
	case int, int32, int64:
		return "a whole number"
	case float64:
		return "a double"
	case time.Time:
		return "a time"
	case time.Duration:
		return "a duration"
	case []any:
		return "a list"
	case bson.Raw, map[string]any:
		return "a document"
	case bson.Decimal128:
		return "a decimal"
	case bson.RawValue:
		return fmt.Sprintf("a value of BSON type %s", v.Type)
	}
	return fmt.Sprintf("a %T", v)
}
