package expression

import (
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
)

// setOperator has the operators that take arrays as sets. $setUnion and
// $setIntersection answer in the order of the values, $setDifference in that of
// its first operand; of equal values the first stays.
func setOperator(name string) builder {
	switch name {
	case "$setUnion":
		return variadicIn(0, -1, union)
	case "$setIntersection":
		return variadicIn(0, -1, intersection)
	case "$setDifference":
		return binaryIn(difference)
	case "$setEquals":
		return atLeastTwoSets(variadicIn(0, -1, equalSets))
	case "$setIsSubset":
		return buildIsSubset
	case "$allElementsTrue":
		return quantifier(name, 17040, true)
	case "$anyElementTrue":
		return quantifier(name, 17041, false)
	}
	return nil
}

// atLeastTwoSets refuses fewer.
func atLeastTwoSets(build builder) builder {
	return func(c *compiler, name string, argument bson.RawValue) (operand, error) {
		given := 1
		if argument.Type == bson.TypeArray {
			given = len(bsonkit.Values(argument))
		}
		if given < 2 {
			return operand{}, mongoerr.New(17045, "%s needs at least two arguments had: %d", name, given)
		}
		return build(c, name, argument)
	}
}

// keys are a set's values by their keys.
func keys(s *scope, array bson.RawValue) map[string]bool {
	set := map[string]bool{}
	for it := s.walk(array); it.Next(); {
		set[string(bsonkit.AppendKey(nil, it.Value()))] = true
	}
	return set
}

// pick lists the distinct values of an array that pass.
func pick(s *scope, array bson.RawValue, pass func(key string) bool) bson.RawValue {
	var picked []bson.RawValue
	seen := map[string]bool{}
	for it := s.walk(array); it.Next(); {
		key := string(bsonkit.AppendKey(nil, it.Value()))
		if !seen[key] && pass(key) {
			picked = append(picked, it.Value())
		}
		seen[key] = true
	}
	return bsonkit.Array(picked)
}

// checkSets reports whether an argument is null, and refuses what is no array.
func checkSets(name string, code mongoerr.Code, args []bson.RawValue) (null bool, err error) {
	for _, v := range args {
		if nullish(v) {
			return true, nil
		}
		if v.Type != bson.TypeArray {
			return false, mongoerr.New(code, "All operands of %s must be arrays. One argument is of type: %s", name, typeName(v))
		}
	}
	return false, nil
}

// ordered has the distinct values of an array, least first.
func ordered(s *scope, array bson.RawValue) []bson.RawValue {
	values := bsonkit.Values(pick(s, array, func(string) bool { return true }))
	slices.SortFunc(values, func(a, b bson.RawValue) int {
		if !s.goesOn(1) {
			return 0
		}
		return bsonkit.Compare(a, b)
	})
	return values
}

func union(s *scope, args []bson.RawValue) (bson.RawValue, error) {
	null, err := checkSets("$setUnion", 17043, args)
	if err != nil || null {
		return bsonkit.Null(), err
	}
	all := &distinct{seen: map[string]bool{}}
	for _, array := range args {
		for it := s.walk(array); it.Next(); {
			_ = all.Add(it.Value()) // collecting cannot fail
		}
	}
	return bsonkit.Array(ordered(s, all.Result())), nil
}

// intersection takes the values that it keeps from the smaller of two sets,
// which tells where equal values are of different types.
func intersection(s *scope, args []bson.RawValue) (bson.RawValue, error) {
	null, err := checkSets("$setIntersection", 17047, args)
	if err != nil || null {
		return bsonkit.Null(), err
	}
	if len(args) == 0 {
		return bsonkit.Array(nil), nil
	}
	common := bsonkit.Array(ordered(s, args[0]))
	for _, array := range args[1:] {
		next := bsonkit.Array(ordered(s, array))
		if s.count(common) > s.count(next) {
			common, next = next, common
		}
		wanted := keys(s, next)
		common = pick(s, common, func(key string) bool { return wanted[key] })
	}
	return common, nil
}

func difference(s *scope, a, b bson.RawValue) (bson.RawValue, error) {
	switch {
	case nullish(a) || nullish(b):
		return bsonkit.Null(), nil
	case a.Type != bson.TypeArray:
		return a, mongoerr.New(17048, "both operands of $setDifference must be arrays. First argument is of type: %s", typeName(a))
	case b.Type != bson.TypeArray:
		return b, mongoerr.New(17049, "both operands of $setDifference must be arrays. Second argument is of type: %s", typeName(b))
	}
	unwanted := keys(s, b)
	return pick(s, a, func(key string) bool { return !unwanted[key] }), nil
}

func equalSets(s *scope, args []bson.RawValue) (bson.RawValue, error) {
	for _, v := range args {
		if v.Type != bson.TypeArray {
			return v, mongoerr.New(17044, "All operands of $setEquals must be arrays. One argument is of type: %s", typeName(v))
		}
	}
	wanted := keys(s, args[0])
	for _, array := range args[1:] {
		set := keys(s, array)
		if len(set) != len(wanted) || !within(set, wanted) {
			return bsonkit.Boolean(false), nil
		}
	}
	return bsonkit.Boolean(true), nil
}

// buildIsSubset has codes of its own for a constant second operand, of which the
// server makes a set beforehand.
func buildIsSubset(c *compiler, name string, argument bson.RawValue) (operand, error) {
	args, err := c.exactly(name, argument, 2)
	if err != nil {
		return operand{}, err
	}
	a, b := args[0], args[1]
	first := mongoerr.Code(17046)
	if a.eval != nil && b.eval == nil {
		if first = 17310; b.value.Type != bson.TypeArray {
			return c.failed(notSubset("Second", 17311, b.value)), nil
		}
	}
	return c.applied(args, func(s *scope, args []bson.RawValue) (bson.RawValue, error) {
		switch v, w := args[0], args[1]; {
		case v.Type != bson.TypeArray:
			return v, notSubset("First", first, v)
		case w.Type != bson.TypeArray:
			return w, notSubset("Second", 17042, w)
		default:
			return bsonkit.Boolean(within(keys(s, v), keys(s, w))), nil
		}
	}), nil
}

func notSubset(which string, code mongoerr.Code, v bson.RawValue) error {
	return mongoerr.New(code, "both operands of $setIsSubset must be arrays. %s argument is of type: %s", which, typeName(v))
}

func within(set, of map[string]bool) bool {
	for key := range set {
		if !of[key] {
			return false
		}
	}
	return true
}

// quantifier is $allElementsTrue and $anyElementTrue.
func quantifier(name string, code mongoerr.Code, all bool) builder {
	return unaryIn(func(s *scope, v bson.RawValue) (bson.RawValue, error) {
		if v.Type != bson.TypeArray {
			return v, mongoerr.New(code, "%s's argument must be an array, but is %s", name, typeName(v))
		}
		for it := s.walk(v); it.Next(); {
			if bsonkit.Truthy(it.Value()) != all {
				return bsonkit.Boolean(!all), nil
			}
		}
		return bsonkit.Boolean(all), nil
	})
}
