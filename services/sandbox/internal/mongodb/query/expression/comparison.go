package expression

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
)

func comparisonOperator(name string) builder {
	switch name {
	case "$eq":
		return comparing(func(c int) bool { return c == 0 })
	case "$ne":
		return comparing(func(c int) bool { return c != 0 })
	case "$gt":
		return comparing(func(c int) bool { return c > 0 })
	case "$gte":
		return comparing(func(c int) bool { return c >= 0 })
	case "$lt":
		return comparing(func(c int) bool { return c < 0 })
	case "$lte":
		return comparing(func(c int) bool { return c <= 0 })
	case "$cmp":
		return binary(func(a, b bson.RawValue) (bson.RawValue, error) {
			return bsonkit.Int32(int32(Compare(a, b))), nil
		})
	}
	return nil
}

// comparing compares values of any types, by type first: there is no type
// bracketing in expressions.
func comparing(holds func(c int) bool) builder {
	return binary(func(a, b bson.RawValue) (bson.RawValue, error) {
		return bsonkit.Boolean(holds(Compare(a, b))), nil
	})
}
