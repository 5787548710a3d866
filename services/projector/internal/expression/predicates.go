package expression

import (
	"errors"
	"fmt"

	"github.com/expr-lang/expr/ast"
)

// isPredicate tells the functions that evaluate a node for each element of a list.
func isPredicate(name string) bool {
	switch name {
	case "all", "none", "any", "one", "count", "filter", "map", "find", "findLast",
		"findIndex", "findLastIndex", "sum", "groupBy", "sortBy", "reduce":
		return true
	}
	return false
}

func (e *evaluation) predicate(n *ast.BuiltinNode) (any, error) {
	list, err := e.elementsOf(n)
	if err != nil {
		return nil, err
	}
	switch n.Name {
	case "all":
		return e.decided(n, list, false, false)
	case "any":
		return e.decided(n, list, true, true)
	case "none":
		return e.decided(n, list, true, false)
	case "one", "count":
		return e.counted(n, list)
	case "filter":
		return e.filter(n, list)
	case "map":
		return e.results(n, list)
	case "find", "findIndex":
		return e.search(n, list, 0, 1)
	case "findLast", "findLastIndex":
		return e.search(n, list, len(list)-1, -1)
	case "sum":
		return e.sum(n, list)
	case "groupBy":
		return e.groupBy(n, list)
	case "sortBy":
		return e.sortBy(n, list)
	case "reduce":
		return e.reduce(n, list)
	}
	return nil, fmt.Errorf("%s is not of this language", shown(n))
}

func (e *evaluation) elementsOf(n *ast.BuiltinNode) ([]any, error) {
	v, err := e.need(n.Arguments[0])
	if err != nil {
		return nil, err
	}
	list, ok := v.([]any)
	if !ok {
		return nil, fmt.Errorf("%s: takes a list, not %s", n.Name, kind(v))
	}
	return list, nil
}

// on evaluates the predicate for an element; without one it is the element.
func (e *evaluation) on(n *ast.BuiltinNode, it item) (any, error) {
	e.items = append(e.items, it)
	defer func() { e.items = e.items[:len(e.items)-1] }()
	if len(n.Arguments) > 1 {
		if p, ok := n.Arguments[1].(*ast.PredicateNode); ok {
			return e.need(p.Node)
		}
	}
	if err := e.spend(1); err != nil {
		return nil, err
	}
	if isAbsent(it.value) {
		return nil, fmt.Errorf("%s: an element is undefined", n.Name)
	}
	return it.value, nil
}

// holds is the predicate of an element as a condition.
func (e *evaluation) holds(n *ast.BuiltinNode, it item) (bool, error) {
	v, err := e.on(n, it)
	if err != nil {
		return false, err
	}
	yes, ok := v.(bool)
	if !ok {
		return false, fmt.Errorf("%s: its predicate is %s, neither true nor false", n.Name, kind(v))
	}
	return yes, nil
}

// decided is found where the predicate of some element is decisive, and else not
// found.
func (e *evaluation) decided(n *ast.BuiltinNode, list []any, decisive, found bool) (any, error) {
	for i := range list {
		yes, err := e.holds(n, item{value: list[i], index: i})
		if err != nil || yes == decisive {
			return found, err
		}
	}
	return !found, nil
}

func (e *evaluation) counted(n *ast.BuiltinNode, list []any) (any, error) {
	count := 0
	for i := range list {
		yes, err := e.holds(n, item{value: list[i], index: i})
		if err != nil {
			return nil, err
		}
		if yes {
			count++
		}
	}
	if n.Name == "one" {
		return count == 1, nil
	}
	return count, nil
}

func (e *evaluation) filter(n *ast.BuiltinNode, list []any) (any, error) {
	left := []any{}
	for i := range list {
		yes, err := e.holds(n, item{value: list[i], index: i})
		if err != nil {
			return nil, err
		}
		if !yes {
			continue
		}
		// Twice, since it grows.
		if err := e.list(2); err != nil {
			return nil, err
		}
		left = append(left, list[i])
	}
	return left, nil
}

// results are the predicate's values.
func (e *evaluation) results(n *ast.BuiltinNode, list []any) ([]any, error) {
	if err := e.list(len(list)); err != nil {
		return nil, err
	}
	results := make([]any, len(list))
	for i := range list {
		var err error
		if results[i], err = e.on(n, item{value: list[i], index: i}); err != nil {
			return nil, err
		}
	}
	return results, nil
}

// search is the first element for which the predicate holds, or its place.
func (e *evaluation) search(n *ast.BuiltinNode, list []any, from, step int) (any, error) {
	for i := from; i >= 0 && i < len(list); i += step {
		yes, err := e.holds(n, item{value: list[i], index: i})
		switch {
		case err != nil:
			return nil, err
		case yes && (n.Name == "find" || n.Name == "findLast"):
			return list[i], nil
		case yes:
			return i, nil
		}
	}
	return absent{n}, nil
}

func (e *evaluation) sum(n *ast.BuiltinNode, list []any) (any, error) {
	var sum any = 0
	for i := range list {
		v, err := e.on(n, item{value: list[i], index: i})
		if err != nil {
			return nil, err
		}
		if sum, err = addNumbers(sum, v); err != nil {
			return nil, fmt.Errorf("sum: %w", err)
		}
	}
	return sum, nil
}

func (e *evaluation) groupBy(n *ast.BuiltinNode, list []any) (any, error) {
	groups := map[string]any{}
	for i := range list {
		key, err := e.on(n, item{value: list[i], index: i})
		if err != nil {
			return nil, err
		}
		name, ok := key.(string)
		if !ok {
			return nil, fmt.Errorf("groupBy: the name of a group is %s, not a text: write string(…)", kind(key))
		}
		if err := e.make(entrySize + 2*slotSize); err != nil {
			return nil, err
		}
		group, _ := groups[name].([]any)
		groups[name] = append(group, list[i])
	}
	return groups, nil
}

func (e *evaluation) sortBy(n *ast.BuiltinNode, list []any) (any, error) {
	order := any("asc")
	if len(n.Arguments) > 2 {
		var err error
		if order, err = e.need(n.Arguments[2]); err != nil {
			return nil, err
		}
	}
	keys, err := e.results(n, list)
	if err != nil {
		return nil, err
	}
	return e.sortedBy(list, keys, order)
}

// reduce goes through a list with what it has so far. Without a first value it
// begins with the first element.
func (e *evaluation) reduce(n *ast.BuiltinNode, list []any) (acc any, err error) {
	switch {
	case len(n.Arguments) > 2:
		if acc, err = e.need(n.Arguments[2]); err != nil {
			return nil, err
		}
	case len(list) == 0:
		return nil, errors.New("reduce: the list is empty, and there is no first value")
	default:
		acc = list[0]
	}
	from := 0
	if len(n.Arguments) <= 2 {
		from = 1
	}
	for i := from; i < len(list); i++ {
		if acc, err = e.on(n, item{value: list[i], index: i, acc: acc}); err != nil {
			return nil, err
		}
	}
	return acc, nil
}
