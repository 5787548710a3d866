package expression

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
)

// setOperator has the operators that take arrays as sets. Results keep the
// first of equal values, in the order in which they come.
func setOperator(name string) builder {
	switch name {
	case "$setUnion":
		return variadic(0, -1, union)
	case "$setIntersection":
		return variadic(0, -1, intersection)
	case "$setDifference":
		return binary(difference)
	case "$setEquals":
		return variadic(2, -1, equalSets)
	case "$setIsSubset":
		return binary(isSubset)
	case "$allElementsTrue":
		return quantifier(name, 17040, true)
	case "$anyElementTrue":
		return quantifier(name, 17041, false)
	}
	return nil
}

// keys are a set's values by their keys.
func keys(array bson.RawValue) map[string]bool {
	set := map[string]bool{}
	for it := bsonkit.Iterate(array.Value); it.Next(); {
		set[string(bsonkit.AppendKey(nil, it.Value()))] = true
	}
	return set
}

// pick lists the distinct values of an array that pass.
func pick(array bson.RawValue, pass func(key string) bool) []bson.RawValue {
	var picked []bson.RawValue
	seen := map[string]bool{}
	for it := bsonkit.Iterate(array.Value); it.Next(); {
		key := string(bsonkit.AppendKey(nil, it.Value()))
		if !seen[key] && pass(key) {
			picked = append(picked, it.Value())
		}
		seen[key] = true
	}
	return picked
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

func union(args []bson.RawValue) (bson.RawValue, error) {
	null, err := checkSets("$setUnion", 17043, args)
	if err != nil || null {
		return bsonkit.Null(), err
	}
	all := &distinct{seen: map[string]bool{}}
	for _, array := range args {
		for it := bsonkit.Iterate(array.Value); it.Next(); {
			_ = all.Add(it.Value()) // collecting cannot fail
		}
	}
	return all.Result(), nil
}

func intersection(args []bson.RawValue) (bson.RawValue, error) {
	null, err := checkSets("$setIntersection", 17047, args)
	if err != nil || null {
		return bsonkit.Null(), err
	}
	if len(args) == 0 {
		return bsonkit.Array(nil), nil
	}
	var others []map[string]bool
	for _, array := range args[1:] {
		others = append(others, keys(array))
	}
	return bsonkit.Array(pick(args[0], func(key string) bool {
		for _, set := range others {
			if !set[key] {
				return false
			}
		}
		return true
	})), nil
}

func difference(a, b bson.RawValue) (bson.RawValue, error) {
	switch {
	case nullish(a) || nullish(b):
		return bsonkit.Null(), nil
	case a.Type != bson.TypeArray:
		return a, mongoerr.New(17048, "both operands of $setDifference must be arrays. First argument is of type: %s", typeName(a))
	case b.Type != bson.TypeArray:
		return b, mongoerr.New(17049, "both operands of $setDifference must be arrays. Second argument is of type: %s", typeName(b))
	}
	unwanted := keys(b)
	return bsonkit.Array(pick(a, func(key string) bool { return !unwanted[key] })), nil
}

func equalSets(args []bson.RawValue) (bson.RawValue, error) {
	for _, v := range args {
		if v.Type != bson.TypeArray {
			return v, mongoerr.New(17044, "All operands of $setEquals must be arrays. One argument is of type: %s", typeName(v))
		}
	}
	wanted := keys(args[0])
	for _, array := range args[1:] {
		set := keys(array)
		if len(set) != len(wanted) || !within(set, wanted) {
			return bsonkit.Boolean(false), nil
		}
	}
	return bsonkit.Boolean(true), nil
}

func isSubset(a, b bson.RawValue) (bson.RawValue, error) {
	switch {
	case a.Type != bson.TypeArray:
		return a, mongoerr.New(17046, "both operands of $setIsSubset must be arrays. First argument is of type: %s", typeName(a))
	case b.Type != bson.TypeArray:
		return b, mongoerr.New(17042, "both operands of $setIsSubset must be arrays. Second argument is of type: %s", typeName(b))
	}
	return bsonkit.Boolean(within(keys(a), keys(b))), nil
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
	return unary(func(v bson.RawValue) (bson.RawValue, error) {
		if v.Type != bson.TypeArray {
			return v, mongoerr.New(code, "%s's argument must be an array, but is %s", name, typeName(v))
		}
		for it := bsonkit.Iterate(v.Value); it.Next(); {
			if bsonkit.Truthy(it.Value()) != all {
				return bsonkit.Boolean(!all), nil
			}
		}
		return bsonkit.Boolean(all), nil
	})
}
