package modify

import (
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
	"changerelay/services/sandbox/internal/mongodb/query/fieldpath"
)

// MaxStoredDepth is how deep a stored document may nest.
const MaxStoredDepth = 180

func tooDeep() error {
	return mongoerr.New(mongoerr.Overflow, "Document exceeds maximum nesting depth of %d", MaxStoredDepth)
}

// checkStorable refuses what an update may not leave behind in a collection.
func checkStorable(doc bson.Raw) error {
	for it := bsonkit.Iterate(doc); it.Next(); {
		if string(it.Key()) == "_id" {
			if err := checkID(it.Value()); err != nil {
				return err
			}
		}
	}
	return checkStorableFields(doc, "", 1)
}

// checkStorableValue is for a value that goes to path.
func checkStorableValue(v bson.RawValue, path string) error {
	if v.Type != bson.TypeEmbeddedDocument && v.Type != bson.TypeArray {
		return nil
	}
	return checkStorableFields(v.Value, path, 2+strings.Count(path, "."))
}

func checkID(id bson.RawValue) error {
	switch id.Type {
	case bson.TypeArray, bson.TypeRegex, bson.TypeUndefined:
		return mongoerr.New(mongoerr.InvalidIDField, "The '_id' value cannot be of type %s", bsonkit.TypeName(id.Type))
	}
	return nil
}

func checkStorableFields(doc []byte, path string, depth int) error {
	if depth > MaxStoredDepth {
		return tooDeep()
	}
	for it := bsonkit.Iterate(doc); it.Next(); {
		if key := it.Key(); len(key) > 0 && key[0] == '$' && !isReferenceField(string(key)) {
			return mongoerr.New(mongoerr.DollarPrefixedFieldName,
				"The dollar ($) prefixed field '%s' in '%s' is not valid for storage.", key, fieldpath.Join(path, string(key)))
		}
		v := it.Value()
		if v.Type != bson.TypeEmbeddedDocument && v.Type != bson.TypeArray {
			continue
		}
		if err := checkStorableFields(v.Value, fieldpath.Join(path, string(it.Key())), depth+1); err != nil {
			return err
		}
	}
	return nil
}

// isReferenceField has the names that a database reference is made of.
func isReferenceField(name string) bool {
	return name == "$ref" || name == "$id" || name == "$db"
}
