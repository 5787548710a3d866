package expression

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
)

// whole is $ceil and $floor.
func whole(name string, f func(float64) float64) builder {
	return numeric(name, func(v bson.RawValue) (bson.RawValue, error) {
		switch v.Type {
		case bson.TypeDouble:
			return bsonkit.Double(f(v.Double())), nil
		case bson.TypeDecimal128:
			return bsonkit.Decimal(bsonkit.RoundDecimal(v.Decimal128(), 0, modeOf(name))), nil
		}
		return v, nil
	})
}

func modeOf(name string) bsonkit.Rounding {
	switch name {
	case "$ceil":
		return bsonkit.Up
	case "$floor":
		return bsonkit.Down
	case "$trunc":
		return bsonkit.TowardsZero
	}
	return bsonkit.HalfToEven
}

// rounding is $round and $trunc, with the number of decimal places as a second
// argument, which may be negative.
func rounding(name string) builder {
	return variadic(1, 2, func(args []bson.RawValue) (bson.RawValue, error) {
		v, places := args[0], int64(0)
		if nullish(v) {
			return bsonkit.Null(), nil
		}
		if !bsonkit.IsNumber(v.Type) {
			return v, mongoerr.New(51081, "%s only supports numeric types, not %s", name, typeName(v))
		}
		if len(args) == 2 {
			if nullish(args[1]) {
				return bsonkit.Null(), nil
			}
			n, ok := bsonkit.WholeNumber(args[1])
			if !ok {
				return v, mongoerr.New(51082, "precision argument to  %s must be a integral value", name)
			}
			if n < -20 || n > 100 {
				return v, mongoerr.New(51083, "cannot apply %s with precision value %d value must be in [-20, 100]", name, n)
			}
			places = n
		}
		rounded := bsonkit.Round(v, int(places), modeOf(name))
		if v.Type == bson.TypeInt64 && rounded.Type != bson.TypeInt64 {
			return v, mongoerr.New(51080, "invalid conversion from Decimal128 result in %s resulting from arguments: [%s, %d]",
				name, bsonkit.Describe(v), places)
		}
		return rounded, nil
	})
}
