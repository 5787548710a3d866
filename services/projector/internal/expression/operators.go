package expression

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"github.com/expr-lang/expr/ast"
	"go.mongodb.org/mongo-driver/v2/bson"
)

func (e *evaluation) unary(n *ast.UnaryNode) (any, error) {
	switch n.Operator {
	case "!", "not":
		yes, err := e.truth(n.Node)
		return !yes, err
	case "+", "-":
		v, err := e.need(n.Node)
		if err != nil {
			return nil, err
		}
		if n.Operator == "-" {
			return negate(v)
		}
		if !isNumber(v) {
			return nil, fmt.Errorf("%s is %s, not a number", shown(n.Node), kind(v))
		}
		return v, nil
	}
	return nil, fmt.Errorf("operator %q is not of this language", n.Operator)
}

func (e *evaluation) binary(n *ast.BinaryNode) (any, error) {
	switch n.Operator {
	case "??":
		left, err := e.eval(n.Left)
		if err != nil || !isNone(left) {
			return left, err
		}
		return e.eval(n.Right)
	case "and", "&&", "or", "||":
		left, err := e.truth(n.Left)
		if err != nil || left == (n.Operator == "or" || n.Operator == "||") {
			return left, err
		}
		return e.truth(n.Right)
	case "==", "!=":
		same, err := e.same(n.Left, n.Right)
		return same == (n.Operator == "=="), err
	}
	a, err := e.need(n.Left)
	if err != nil {
		return nil, err
	}
	b, err := e.need(n.Right)
	if err != nil {
		return nil, err
	}
	v, err := e.operate(n.Operator, a, b)
	if err != nil {
		return nil, at(n, err)
	}
	return v, nil
}

// operate applies an operator that needs both values.
func (e *evaluation) operate(operator string, a, b any) (any, error) {
	switch operator {
	case "+":
		return e.add(a, b)
	case "-":
		return subtract(a, b)
	case "*":
		return multiply(a, b)
	case "/":
		return divide(a, b)
	case "%":
		return modulo(a, b)
	case "**", "^":
		return power(a, b)
	case "..":
		return e.span(a, b)
	case "<", "<=", ">", ">=":
		return e.inOrder(operator, a, b)
	case "in":
		return e.contains(b, a)
	case "matches", "contains", "startsWith", "endsWith":
		return e.compareTexts(operator, a, b)
	}
	return nil, fmt.Errorf("operator %q is not of this language", operator)
}

// same compares two nodes. A comparison with nil itself asks whether there is a value.
func (e *evaluation) same(left, right ast.Node) (bool, error) {
	if _, asks := left.(*ast.NilNode); asks {
		left, right = right, left
	}
	if _, asks := right.(*ast.NilNode); asks {
		v, err := e.eval(left)
		return isNone(v), err
	}
	a, err := e.need(left)
	if err != nil {
		return false, err
	}
	b, err := e.need(right)
	if err != nil {
		return false, err
	}
	return e.equal(a, b, 0)
}

// equal compares two values. Numbers are equal by value, documents whatever the
// order of their fields; what is of different kinds is not equal.
func (e *evaluation) equal(a, b any, depth int) (bool, error) {
	if depth > maxDepth {
		return false, errTooDeep
	}
	if err := e.spend(1); err != nil {
		return false, err
	}
	switch x := a.(type) {
	case string:
		y, ok := b.(string)
		if !ok || len(x) != len(y) {
			return false, nil
		}
		return x == y, e.scan(x)
	case int, int32, int64, float64:
		order, ok := compareNumbers(a, b)
		return ok && order == 0, nil
	case time.Time:
		y, ok := b.(time.Time)
		return ok && x.Equal(y), nil
	case []any:
		y, ok := b.([]any)
		if !ok || len(x) != len(y) {
			return false, nil
		}
		return e.equalLists(x, y, depth+1)
	case bson.Raw, map[string]any:
		return e.equalDocuments(a, b, depth+1)
	case bson.RawValue:
		y, ok := b.(bson.RawValue)
		return ok && x.Type == y.Type && bytes.Equal(x.Value, y.Value), e.spend(1 + len(x.Value)/bytesPerStep)
	}
	// What is left can be compared as it is.
	switch b.(type) {
	case []any, bson.Raw, map[string]any, bson.RawValue:
		return false, nil
	}
	return a == b, nil
}

func (e *evaluation) equalLists(a, b []any, depth int) (bool, error) {
	for i := range a {
		if same, err := e.equal(a[i], b[i], depth); err != nil || !same {
			return false, err
		}
	}
	return true, nil
}

func (e *evaluation) equalDocuments(a, b any, depth int) (bool, error) {
	switch b.(type) {
	case bson.Raw, map[string]any:
	default:
		return false, nil
	}
	x, err := e.entries(a)
	if err != nil {
		return false, err
	}
	y, err := e.entries(b)
	if err != nil || len(x) != len(y) {
		return false, err
	}
	for i := range x {
		if x[i].key != y[i].key {
			return false, nil
		}
		if same, err := e.equal(x[i].value, y[i].value, depth); err != nil || !same {
			return false, err
		}
	}
	return true, nil
}

func (e *evaluation) inOrder(operator string, a, b any) (bool, error) {
	order, ordered, err := e.compare(a, b)
	if err != nil || !ordered {
		return false, err
	}
	switch operator {
	case "<":
		return order < 0, nil
	case "<=":
		return order <= 0, nil
	case ">":
		return order > 0, nil
	}
	return order >= 0, nil
}

// compare orders two values of a kind that has an order; false where one of them
// is not a number, which is neither more nor less than any.
func (e *evaluation) compare(a, b any) (order int, ordered bool, err error) {
	switch x := a.(type) {
	case string:
		if y, ok := b.(string); ok {
			return strings.Compare(x, y), true, e.scan(x[:min(len(x), len(y))])
		}
	case time.Time:
		if y, ok := b.(time.Time); ok {
			return x.Compare(y), true, e.spend(1)
		}
	case time.Duration:
		if y, ok := b.(time.Duration); ok {
			return compareWhole(int64(x), int64(y)), true, e.spend(1)
		}
	}
	if isNumber(a) && isNumber(b) {
		order, ordered = compareNumbers(a, b)
		return order, ordered, e.spend(1)
	}
	return 0, false, fmt.Errorf("%s and %s have no order", kind(a), kind(b))
}

// contains tells whether a list has an element, or a document a field.
func (e *evaluation) contains(container, v any) (bool, error) {
	switch c := container.(type) {
	case nil:
		return false, nil
	case []any:
		for i := range c {
			if same, err := e.equal(c[i], v, 0); err != nil || same {
				return same, err
			}
		}
		return false, nil
	case bson.Raw, map[string]any:
		name, ok := v.(string)
		if !ok {
			return false, nil
		}
		field, there, err := e.field(c, name)
		return there && !isAbsent(field), err
	}
	return false, fmt.Errorf("%s holds nothing", kind(container))
}

// compareTexts compares texts; null is no text, and like none.
func (e *evaluation) compareTexts(operator string, a, b any) (bool, error) {
	if a == nil || b == nil {
		return false, nil
	}
	text, isText := a.(string)
	other, isOther := b.(string)
	if !isText || !isOther {
		return false, fmt.Errorf("compares texts, not %s and %s", kind(a), kind(b))
	}
	if operator == "matches" {
		return e.matches(text, other)
	}
	if err := e.scan(text, other); err != nil {
		return false, err
	}
	switch operator {
	case "contains":
		return strings.Contains(text, other), nil
	case "startsWith":
		return strings.HasPrefix(text, other), nil
	}
	return strings.HasSuffix(text, other), nil
}

// span is the list of the whole numbers from a to b.
func (e *evaluation) span(a, b any) (any, error) {
	from, ok := wholeNumber(a)
	to, alsoOK := wholeNumber(b)
	if !ok || !alsoOK {
		return nil, fmt.Errorf("a range is between whole numbers, not %s and %s", kind(a), kind(b))
	}
	if to < from {
		return []any{}, nil
	}
	// Unsigned, the distance fits whatever the ends are.
	if uint64(to)-uint64(from) >= maxMade/slotSize {
		return nil, errTooMuchMade
	}
	n := int(to-from) + 1
	if err := e.list(n); err != nil {
		return nil, err
	}
	list := make([]any, n)
	for i := range list {
		list[i] = int(from) + i
	}
	return list, nil
}
