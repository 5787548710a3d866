package readmodel

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// updateMerger makes one update that does what several do, one after another. The zero
// one does nothing.
//
// It takes an update in only where the outcome is the same for any document
// that each of the updates could be applied to, but for the order of its fields: the
// same operator on the same field again, $inc on what was just set, or $set on what was
// just unset. Where one of the updates would fail, the merged one may fail elsewhere or
// not at all; so whoever applies it applies its updates one by one when it is refused.
type updateMerger struct {
	// fields are the changed fields in the order of their first change.
	fields []mergedField
	places map[string]int // in fields, by path
}

type mergedField struct {
	operator, path string
	operand        any
}

// add takes one more update in. False leaves the merger as it was.
func (f *updateMerger) add(update bson.D) bool {
	fields, ok := flatten(update)
	if !ok {
		// It can stand alone, whatever it is.
		return false
	}
	merged := make([]any, len(fields))
	operators := make([]string, len(fields))
	for i, next := range fields {
		place, known := f.places[next.path]
		if !known {
			if f.overlaps(next.path) {
				return false
			}
			continue
		}
		operators[i], merged[i], ok = then(f.fields[place], next)
		if !ok {
			return false
		}
	}
	if f.places == nil {
		f.places = make(map[string]int, len(fields))
	}
	for i, next := range fields {
		if place, known := f.places[next.path]; known {
			f.fields[place].operator, f.fields[place].operand = operators[i], merged[i]
			continue
		}
		f.places[next.path] = len(f.fields)
		f.fields = append(f.fields, next)
	}
	return true
}

// overlaps tells whether a path leads through a changed field, or a changed
// field through it. The server refuses an update with both.
func (f *updateMerger) overlaps(path string) bool {
	for i := range f.fields {
		taken := f.fields[i].path
		if strings.HasPrefix(taken, path+".") || strings.HasPrefix(path, taken+".") {
			return true
		}
	}
	return false
}

// update is the merged update.
func (f *updateMerger) update() bson.D {
	var update bson.D
	places := map[string]int{}
	for _, field := range f.fields {
		place, known := places[field.operator]
		if !known {
			place = len(update)
			places[field.operator] = place
			update = append(update, bson.E{Key: field.operator, Value: bson.D{}})
		}
		update[place].Value = append(update[place].Value.(bson.D), bson.E{Key: field.path, Value: field.operand})
	}
	return update
}

// flatten lists an update's fields; false when it names a field or an operator
// twice, which the server refuses, or has an operator that then does not know.
func flatten(update bson.D) ([]mergedField, bool) {
	var fields []mergedField
	for i, operator := range update {
		operands, ok := operator.Value.(bson.D)
		if !ok || !mergeable[operator.Key] || slices.ContainsFunc(update[:i], func(e bson.E) bool { return e.Key == operator.Key }) {
			return nil, false
		}
		for _, operand := range operands {
			for i := range fields {
				if fields[i].path == operand.Key {
					return nil, false
				}
			}
			fields = append(fields, mergedField{operator.Key, operand.Key, operand.Value})
		}
	}
	return fields, true
}

// mergeable are the operators that then knows.
var mergeable = map[string]bool{
	"$set": true, "$unset": true, "$inc": true, "$min": true, "$max": true,
	"$push": true, "$addToSet": true, "$pullAll": true,
}

// then is what one operator does after another on the same field.
func then(first, second mergedField) (operator string, operand any, ok bool) {
	switch {
	case first.operator == "$set" && second.operator == "$inc":
		operand, ok = sum(first.operand, second.operand)
		return "$set", operand, ok
	case first.operator == "$unset" && second.operator == "$set":
		return "$set", second.operand, true
	}
	if first.operator != second.operator {
		return "", nil, false
	}
	switch first.operator {
	case "$set", "$unset":
		return first.operator, second.operand, true
	case "$inc":
		operand, ok = sum(first.operand, second.operand)
	case "$min":
		operand, ok = extreme(first.operand, second.operand, -1)
	case "$max":
		operand, ok = extreme(first.operand, second.operand, 1)
	case "$push", "$addToSet":
		operand, ok = pushes(first.operand, second.operand)
	case "$pullAll":
		operand, ok = lists(first.operand, second.operand)
	}
	return first.operator, operand, ok
}

// sum adds whole numbers as the server does: two of 32 bits make one of 32 bits
// where it fits. Doubles and decimals are not merged: their sum depends on the order.
func sum(a, b any) (any, bool) {
	x, xWide, ok := whole(a)
	if !ok {
		return nil, false
	}
	y, yWide, ok := whole(b)
	if !ok || y > 0 && x > math.MaxInt64-y || y < 0 && x < math.MinInt64-y {
		return nil, false
	}
	if total := x + y; xWide || yWide || int64(int32(total)) != total {
		return total, true
	}
	return int32(x + y), true
}

// whole is a whole number, and whether the driver stores it in 64 bits.
func whole(v any) (n int64, wide, ok bool) {
	switch v := v.(type) {
	case int:
		return int64(v), int64(int32(v)) != int64(v), true
	case int32:
		return int64(v), false, true
	case int64:
		return v, true, true
	}
	return 0, false, false
}

// extreme is the lower (sign -1) or higher (1) of two operands; of two equal
// ones it is the first, as on the server.
func extreme(a, b any, sign int) (any, bool) {
	order, ok := compare(a, b)
	if !ok {
		return nil, false
	}
	if order*sign < 0 {
		return b, true
	}
	return a, true
}

// compare orders two times, or two numbers that compare the same way everywhere.
func compare(a, b any) (int, bool) {
	if x, ok := a.(time.Time); ok {
		y, ok := b.(time.Time)
		return cmp.Compare(x.UnixMilli(), y.UnixMilli()), ok
	}
	if x, ok := a.(float64); ok {
		y, ok := b.(float64)
		return cmp.Compare(x, y), ok && !math.IsNaN(x) && !math.IsNaN(y)
	}
	x, _, ok := whole(a)
	if !ok {
		return 0, false
	}
	y, _, ok := whole(b)
	return cmp.Compare(x, y), ok
}

// pushes joins two operands of the form {$each: […]}, or {$each: […], $slice: n}
// with the same negative n: then the array keeps its last ones, and what it
// keeps in between does not matter.
func pushes(a, b any) (any, bool) {
	x, ok := a.(bson.D)
	if !ok {
		return nil, false
	}
	y, ok := b.(bson.D)
	if !ok || len(x) != len(y) || len(x) == 0 || len(x) > 2 || x[0].Key != "$each" || y[0].Key != "$each" {
		return nil, false
	}
	each, ok := lists(x[0].Value, y[0].Value)
	if !ok {
		return nil, false
	}
	joined := bson.D{{Key: "$each", Value: each}}
	if len(x) == 1 {
		return joined, true
	}
	last, ok := slice(x[1])
	if other, same := slice(y[1]); !ok || !same || last != other {
		return nil, false
	}
	return append(joined, x[1]), true
}

// slice is how many of the last elements a $slice keeps, as a number below 0.
func slice(e bson.E) (int, bool) {
	n, ok := e.Value.(int)
	return n, ok && n < 0 && e.Key == "$slice"
}

// lists joins two arrays, leaving both as they are.
func lists(a, b any) (any, bool) {
	x, ok := a.(bson.A)
	if !ok {
		return nil, false
	}
	y, ok := b.(bson.A)
	if !ok {
		return nil, false
	}
	joined := make(bson.A, 0, len(x)+len(y))
	return append(append(joined, x...), y...), true
}
