package expression

import (
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
)

func objectOperator(name string) builder {
	switch name {
	case "$mergeObjects":
		return variadicIn(0, -1, func(s *scope, args []bson.RawValue) (bson.RawValue, error) {
			if len(args) == 1 && args[0].Type == bson.TypeArray {
				args = s.values(args[0])
			}
			return mergeObjects(s, args)
		})
	case "$objectToArray":
		return unaryIn(objectToArray)
	case "$arrayToObject":
		return unaryIn(arrayToObject)
	case "$bsonSize":
		return unary(bsonSize)
	case "$binarySize":
		return unary(binarySize)
	}
	return nil
}

// mergeObjects lets later fields replace earlier ones, which keep their place.
func mergeObjects(s *scope, args []bson.RawValue) (bson.RawValue, error) {
	var made fields
	for _, v := range args {
		if err := made.merge(s, v); err != nil {
			return v, err
		}
	}
	return made.document(), nil
}

// fields makes a document of many: a field that is set again keeps its place.
type fields struct {
	names  []string
	values map[string]bson.RawValue
}

func (f *fields) set(name string, v bson.RawValue) {
	if f.values == nil {
		f.values = map[string]bson.RawValue{}
	}
	if _, ok := f.values[name]; !ok {
		f.names = append(f.names, name)
	}
	f.values[name] = v
}

// merge sets what $mergeObjects is given.
func (f *fields) merge(s *scope, v bson.RawValue) error {
	if nullish(v) {
		return nil
	}
	if v.Type != bson.TypeEmbeddedDocument {
		return mongoerr.New(40400, "$mergeObjects requires object inputs, but input %s is of type %s", bsonkit.Describe(v), typeName(v))
	}
	for it := s.walk(v); it.Next(); {
		f.set(string(it.Key()), it.Value())
	}
	return nil
}

func (f *fields) document() bson.RawValue {
	b := bsonkit.NewBuilder(nil)
	for _, name := range f.names {
		b.Append(name, f.values[name])
	}
	return bsonkit.Document(b.Finish())
}

func objectToArray(s *scope, v bson.RawValue) (bson.RawValue, error) {
	if nullish(v) {
		return bsonkit.Null(), nil
	}
	if v.Type != bson.TypeEmbeddedDocument {
		return v, mongoerr.New(40390, "$objectToArray requires a document input, found: %s", typeName(v))
	}
	var pairs []bson.RawValue
	for it := s.walk(v); it.Next(); {
		b := bsonkit.NewBuilder(nil)
		b.Append("k", bsonkit.String(string(it.Key())))
		b.Append("v", it.Value())
		pairs = append(pairs, bsonkit.Document(b.Finish()))
	}
	return bsonkit.Array(pairs), nil
}

func arrayToObject(s *scope, v bson.RawValue) (bson.RawValue, error) {
	if nullish(v) {
		return bsonkit.Null(), nil
	}
	if v.Type != bson.TypeArray {
		return v, mongoerr.New(40386, "$arrayToObject requires an array input, found: %s", typeName(v))
	}
	var made fields
	var form bson.Type
	for it := s.walk(v); it.Next(); {
		if form == bsonkit.Missing {
			form = it.Value().Type
		}
		key, value, err := pair(it.Value(), form)
		if err == nil && strings.ContainsRune(key, 0) {
			err = mongoerr.New(4940400, "Key field cannot contain an embedded null byte")
		}
		if err != nil {
			return v, err
		}
		made.set(key, value)
	}
	return made.document(), nil
}

// pair reads {k: …, v: …} or [k, v], whichever form the first element has.
func pair(v bson.RawValue, form bson.Type) (string, bson.RawValue, error) {
	const inconsistent = "$arrayToObject requires a consistent input format. Elements must all be arrays or all be objects. %s was detected, now found: %s"
	var key, value bson.RawValue
	switch form {
	case bson.TypeArray:
		if v.Type != form {
			return "", v, mongoerr.New(40396, inconsistent, "Array", typeName(v))
		}
		values := bsonkit.Values(v)
		if len(values) != 2 {
			return "", v, mongoerr.New(40397, "$arrayToObject requires an array of size 2 arrays,found array of size: %d", len(values))
		}
		if values[0].Type != bson.TypeString {
			return "", v, mongoerr.New(40395, "$arrayToObject requires an array of key-value pairs, where the key must be of type string. Found key type: %s", typeName(values[0]))
		}
		key, value = values[0], values[1]
	case bson.TypeEmbeddedDocument:
		if v.Type != form {
			return "", v, mongoerr.New(40391, inconsistent, "Object", typeName(v))
		}
		if n := len(bsonkit.Values(v)); n != 2 {
			return "", v, mongoerr.New(40392, "$arrayToObject requires an object keys of 'k' and 'v'. Found incorrect number of keys:%d", n)
		}
		var hasKey, hasValue bool
		key, hasKey = bsonkit.Get(v.Value, "k")
		value, hasValue = bsonkit.Get(v.Value, "v")
		if !hasKey || !hasValue {
			return "", v, mongoerr.New(40393, "$arrayToObject requires an object with keys 'k' and 'v'. Missing either or both keys from: %s", bsonkit.Describe(v))
		}
		if key.Type != bson.TypeString {
			return "", v, mongoerr.New(40394, "$arrayToObject requires an object with keys 'k' and 'v', where the value of 'k' must be of type string. Found type: %s", typeName(key))
		}
	default:
		return "", v, mongoerr.New(40398, "Unrecognised input type format for $arrayToObject: %s", typeName(v))
	}
	name := content(key)
	for i := range len(name) {
		if name[i] == 0 {
			return "", v, mongoerr.New(4940400, "Key field cannot contain an embedded null byte")
		}
	}
	return name, value, nil
}

func bsonSize(v bson.RawValue) (bson.RawValue, error) {
	if nullish(v) {
		return bsonkit.Null(), nil
	}
	if v.Type != bson.TypeEmbeddedDocument {
		return v, mongoerr.New(31393, "$bsonSize requires a document input, found: %s", typeName(v))
	}
	return bsonkit.Int32(int32(len(v.Value))), nil
}

func binarySize(v bson.RawValue) (bson.RawValue, error) {
	switch {
	case nullish(v):
		return bsonkit.Null(), nil
	case v.Type == bson.TypeString:
		return bsonkit.Int32(int32(len(bsonkit.Text(v)))), nil
	case v.Type == bson.TypeBinary:
		_, data := v.Binary()
		return bsonkit.Int32(int32(len(data))), nil
	}
	return v, mongoerr.New(51276, "$binarySize requires a string or BinData argument, found: %s", typeName(v))
}
