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
		return variadic(0, -1, func(args []bson.RawValue) (bson.RawValue, error) {
			if len(args) == 1 && args[0].Type == bson.TypeArray {
				args = bsonkit.Values(args[0])
			}
			return mergeObjects(args)
		})
	case "$objectToArray":
		return unary(objectToArray)
	case "$arrayToObject":
		return unary(arrayToObject)
	case "$bsonSize":
		return unary(bsonSize)
	case "$binarySize":
		return unary(binarySize)
	}
	return nil
}

// mergeObjects lets later fields replace earlier ones, which keep their place.
func mergeObjects(args []bson.RawValue) (bson.RawValue, error) {
	root := bsonkit.NewNode(bsonkit.Document(bsonkit.NewBuilder(nil).Finish()))
	for _, v := range args {
		if nullish(v) {
			continue
		}
		if v.Type != bson.TypeEmbeddedDocument {
			return v, mongoerr.New(40400, "$mergeObjects requires object inputs, but input %s is of type %s", bsonkit.Describe(v), typeName(v))
		}
		for it := bsonkit.Iterate(v.Value); it.Next(); {
			setField(root, string(it.Key()), it.Value())
		}
	}
	return root.Value(), nil
}

func setField(doc *bsonkit.Node, key string, v bson.RawValue) {
	if i := doc.Find(key); i >= 0 {
		doc.At(i).Set(v)
		return
	}
	doc.Append(key, v)
}

func objectToArray(v bson.RawValue) (bson.RawValue, error) {
	if nullish(v) {
		return bsonkit.Null(), nil
	}
	if v.Type != bson.TypeEmbeddedDocument {
		return v, mongoerr.New(40390, "$objectToArray requires a document input, found: %s", typeName(v))
	}
	var pairs []bson.RawValue
	for it := bsonkit.Iterate(v.Value); it.Next(); {
		b := bsonkit.NewBuilder(nil)
		b.Append("k", bsonkit.String(string(it.Key())))
		b.Append("v", it.Value())
		pairs = append(pairs, bsonkit.Document(b.Finish()))
	}
	return bsonkit.Array(pairs), nil
}

func arrayToObject(v bson.RawValue) (bson.RawValue, error) {
	if nullish(v) {
		return bsonkit.Null(), nil
	}
	if v.Type != bson.TypeArray {
		return v, mongoerr.New(40386, "$arrayToObject requires an array input, found: %s", typeName(v))
	}
	root := bsonkit.NewNode(bsonkit.Document(bsonkit.NewBuilder(nil).Finish()))
	for it := bsonkit.Iterate(v.Value); it.Next(); {
		key, value, err := pair(it.Value())
		if err == nil && strings.ContainsRune(key, 0) {
			err = mongoerr.New(4940400, "Key field cannot contain an embedded null byte")
		}
		if err != nil {
			return v, err
		}
		setField(root, key, value)
	}
	return root.Value(), nil
}

// pair reads {k: …, v: …} or [k, v].
func pair(v bson.RawValue) (string, bson.RawValue, error) {
	var key, value bson.RawValue
	switch v.Type {
	case bson.TypeArray:
		values := bsonkit.Values(v)
		if len(values) != 2 {
			return "", v, mongoerr.New(40397, "$arrayToObject requires an array of size 2 arrays,found array of size: %d", len(values))
		}
		if values[0].Type != bson.TypeString {
			return "", v, mongoerr.New(40395, "$arrayToObject requires an array of key-value pairs, where the key must be of type string. Found key type: %s", typeName(values[0]))
		}
		key, value = values[0], values[1]
	case bson.TypeEmbeddedDocument:
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
