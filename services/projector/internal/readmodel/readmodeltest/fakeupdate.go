package readmodeltest

import (
	"fmt"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// apply runs update operators on a document of top-level fields.
func apply(fields map[string]any, update bson.D) string {
	for _, operator := range update {
		for _, e := range operator.Value.(bson.D) {
			old, exists := fields[e.Key]
			switch operator.Key {
			case "$set":
				fields[e.Key] = e.Value
			case "$unset":
				delete(fields, e.Key)
			case "$inc":
				if exists && !isInteger(old) {
					return fmt.Sprintf("Cannot apply $inc to field %q of type %T", e.Key, old)
				}
				fields[e.Key] = integer(old) + integer(e.Value)
			case "$push":
				list, ok := old.(bson.A)
				if exists && !ok {
					return fmt.Sprintf("The field %q must be an array", e.Key)
				}
				fields[e.Key] = push(slices.Clone(list), e.Value)
			default:
				panic("the fake does not know " + operator.Key)
			}
		}
	}
	return ""
}

func push(list bson.A, operand any) bson.A {
	modifiers, ok := operand.(bson.D)
	if !ok || len(modifiers) != 2 || modifiers[0].Key != "$each" {
		return append(list, operand)
	}
	list = append(list, modifiers[0].Value.(bson.A)...)
	last := -modifiers[1].Value.(int)
	return list[max(0, len(list)-last):]
}

func isInteger(v any) bool {
	switch v.(type) {
	case int, int32, int64:
		return true
	}
	return false
}

func integer(v any) int64 {
	switch v := v.(type) {
	case int:
		return int64(v)
	case int32:
		return int64(v)
	case int64:
		return v
	}
	return 0
}
