package expression

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// typeOf names a value's type as expr does.
func typeOf(_ *evaluation, args []any) (any, error) {
	switch v := args[0].(type) {
	case nil:
		return "nil", nil
	case absent:
		return nil, v.problem()
	case bool:
		return "bool", nil
	case string:
		return "string", nil
	case int, int32, int64:
		return "int", nil
	case float64:
		return "float", nil
	case []any:
		return "array", nil
	case bson.Raw, map[string]any:
		return "map", nil
	case bson.RawValue:
		return "bson." + v.Type.String(), nil
	}
	return fmt.Sprintf("%T", args[0]), nil
}

// get is a field or an element; nothing where there is none.
func get(e *evaluation, args []any) (any, error) {
	if isNone(args[0]) || isNone(args[1]) {
		return nothing{}, nil
	}
	v, there, err := e.lookup(args[0], args[1])
	if err != nil || !there {
		return nothing{}, err
	}
	return v, nil
}

func first(_ *evaluation, args []any) (any, error) {
	list, err := listOf(args, 0)
	if err != nil || len(list) == 0 {
		return nothing{}, err
	}
	return list[0], nil
}

func last(_ *evaluation, args []any) (any, error) {
	list, err := listOf(args, 0)
	if err != nil || len(list) == 0 {
		return nothing{}, err
	}
	return list[len(list)-1], nil
}

func take(_ *evaluation, args []any) (any, error) {
	list, err := listOf(args, 0)
	if err != nil {
		return nil, err
	}
	n, err := wholeOf(args, 1)
	if err == nil && n < 0 {
		err = errors.New("cannot take less than 0 elements")
	}
	if err != nil {
		return nil, err
	}
	n = min(n, int64(len(list)))
	return list[:n:n], nil
}

func keys(e *evaluation, args []any) (any, error) {
	return e.ofEntries(args, func(entry entry) any { return entry.key })
}

func values(e *evaluation, args []any) (any, error) {
	return e.ofEntries(args, func(entry entry) any { return entry.value })
}

func toPairs(e *evaluation, args []any) (any, error) {
	return e.ofEntries(args, func(entry entry) any { return []any{entry.key, entry.value} })
}

// ofEntries lists what of makes of a document's fields, in the order of their names.
func (e *evaluation) ofEntries(args []any, of func(entry) any) (any, error) {
	entries, err := e.entries(args[0])
	if err != nil {
		return nil, err
	}
	if err := e.make(len(entries) * entrySize); err != nil {
		return nil, err
	}
	list := make([]any, len(entries))
	for i := range entries {
		list[i] = of(entries[i])
	}
	return list, nil
}

func fromPairs(e *evaluation, args []any) (any, error) {
	list, err := listOf(args, 0)
	if err != nil {
		return nil, err
	}
	if err := e.make(len(list) * entrySize); err != nil {
		return nil, err
	}
	m := make(map[string]any, len(list))
	for i := range list {
		pair, ok := list[i].([]any)
		if !ok || len(pair) != 2 {
			return nil, errors.New("takes a list of pairs, lists of two")
		}
		name, err := textOf(pair, 0)
		if err != nil {
			return nil, fmt.Errorf("the name of a field: %w", err)
		}
		m[name] = pair[1]
	}
	return m, nil
}

func reverse(e *evaluation, args []any) (any, error) {
	list, err := listOf(args, 0)
	if err != nil {
		return nil, err
	}
	if err := e.list(len(list)); err != nil {
		return nil, err
	}
	reversed := slices.Clone(list)
	slices.Reverse(reversed)
	return reversed, nil
}

func concat(e *evaluation, args []any) (any, error) {
	size := 0
	for i := range args {
		list, err := listOf(args, i)
		if err != nil {
			return nil, err
		}
		size += len(list)
	}
	if err := e.list(size); err != nil {
		return nil, err
	}
	all := make([]any, 0, size)
	for i := range args {
		all = append(all, args[i].([]any)...)
	}
	return all, nil
}

func flatten(e *evaluation, args []any) (any, error) {
	list, err := listOf(args, 0)
	if err != nil {
		return nil, err
	}
	return e.flat(nil, list, 0)
}

// flat appends a list's elements, and those of the lists in it.
func (e *evaluation) flat(all, list []any, depth int) (_ []any, err error) {
	if depth > maxDepth {
		return nil, errTooDeep
	}
	for _, v := range list {
		if inner, ok := v.([]any); ok {
			if err := e.spend(1); err != nil {
				return nil, err
			}
			if all, err = e.flat(all, inner, depth+1); err != nil {
				return nil, err
			}
			continue
		}
		// Twice, since it grows.
		if err := e.list(2); err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	if all == nil {
		all = []any{}
	}
	return all, nil
}

// uniq leaves the first of equal elements. Texts and numbers are found by their
// value; other elements are compared with each other.
func uniq(e *evaluation, args []any) (any, error) {
	list, err := listOf(args, 0)
	if err != nil {
		return nil, err
	}
	if err := e.make(len(list) * (slotSize + entrySize)); err != nil {
		return nil, err
	}
	left, seen := make([]any, 0, len(list)), make(map[any]bool, len(list))
	var others []any
	for _, v := range list {
		known, err := e.known(v, seen, &others)
		if err != nil {
			return nil, err
		}
		if !known {
			left = append(left, v)
		}
	}
	return left, nil
}

// known tells whether a value is among those seen, and notes it.
func (e *evaluation) known(v any, seen map[any]bool, others *[]any) (bool, error) {
	key := v
	switch v := v.(type) {
	case nil, bool:
	case string:
		if err := e.scan(v); err != nil {
			return false, err
		}
	case int, int32, int64:
		key, _ = wholeNumber(v)
	case float64:
		if n := int64(v); float64(n) == v {
			key = n
		}
	default:
		for i := range *others {
			if same, err := e.equal((*others)[i], v, 0); err != nil || same {
				return same, err
			}
		}
		*others = append(*others, v)
		return false, nil
	}
	if seen[key] {
		return true, nil
	}
	seen[key] = true
	return false, nil
}

// sorted is a list in order; those that are equal stay in theirs.
func sorted(e *evaluation, args []any) (any, error) {
	list, err := listOf(args, 0)
	if err != nil {
		return nil, err
	}
	order := any("asc")
	if len(args) == 2 {
		order = args[1]
	}
	return e.sortedBy(list, list, order)
}

// sortedBy is a list in the order of keys, asc or desc.
func (e *evaluation) sortedBy(list, keys []any, order any) (any, error) {
	if err := e.sorting(len(list)); err != nil {
		return nil, err
	}
	pairs := make([]entryBy, len(list))
	for i := range list {
		pairs[i] = entryBy{list[i], keys[i]}
	}
	if err := e.sort(pairs, order); err != nil {
		return nil, err
	}
	inOrder := make([]any, len(list))
	for i := range pairs {
		inOrder[i] = pairs[i].value
	}
	return inOrder, nil
}

// entryBy is an element with what it is sorted by.
type entryBy struct{ value, by any }

// sort puts elements in order, asc or desc.
func (e *evaluation) sort(list []entryBy, order any) error {
	sign := 1
	switch order {
	case "asc":
	case "desc":
		sign = -1
	default:
		return errors.New(`the order is "asc" or "desc"`)
	}
	var failed error
	slices.SortStableFunc(list, func(a, b entryBy) int {
		if failed != nil {
			return 0
		}
		var order int
		order, _, failed = e.compare(a.by, b.by)
		return order * sign
	})
	return failed
}

// sorting takes what sorting n elements needs besides comparing them.
func (e *evaluation) sorting(n int) error {
	if err := e.list(4 * n); err != nil {
		return err
	}
	return e.spend(n * bits.Len(uint(n)))
}
