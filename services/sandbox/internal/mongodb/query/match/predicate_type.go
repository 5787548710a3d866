package match

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
)

// typeTest is $type: a set of BSON types.
type typeTest map[bson.Type]bool

func newTypeTest(v bson.RawValue) (typeTest, error) {
	t := typeTest{}
	if v.Type != bson.TypeArray {
		return t, t.add(v)
	}
	for it := bsonkit.Iterate(v.Value); it.Next(); {
		if err := t.add(it.Value()); err != nil {
			return nil, err
		}
	}
	if len(t) == 0 {
		return nil, mongoerr.New(mongoerr.FailedToParse, "$type must match at least one type")
	}
	return t, nil
}

func (t typeTest) add(v bson.RawValue) error {
	if v.Type == bson.TypeString {
		return t.addAlias(v.StringValue())
	}
	if !bsonkit.IsNumber(v.Type) {
		return mongoerr.New(mongoerr.TypeMismatch, "type must be represented as a number or a string")
	}
	code, ok := bsonkit.WholeNumber(v)
	if !ok || code < -1 || code > 127 || code == 0 || bsonkit.TypeName(bson.Type(code)) == "" {
		return mongoerr.New(mongoerr.BadValue, "Invalid numerical type code: %s", bsonkit.Describe(v))
	}
	t[bson.Type(code)] = true
	return nil
}

func (t typeTest) addAlias(alias string) error {
	if alias == "number" {
		for _, n := range []bson.Type{bson.TypeInt32, bson.TypeInt64, bson.TypeDouble, bson.TypeDecimal128} {
			t[n] = true
		}
		return nil
	}
	named, ok := bsonkit.TypeByName(alias)
	if !ok || named == bsonkit.Missing {
		return mongoerr.New(mongoerr.BadValue, "Unknown type name alias: %s", alias)
	}
	t[named] = true
	return nil
}

func (t typeTest) pass(v bson.RawValue, _ *int) bool { return t[v.Type] }
