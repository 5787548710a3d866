package schema

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/command"
	"changerelay/services/sandbox/internal/mongodb/engine/storage"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
	"changerelay/services/sandbox/internal/mongodb/query/collation"
	"changerelay/services/sandbox/internal/mongodb/query/expression"
	"changerelay/services/sandbox/internal/mongodb/query/match"
	"changerelay/services/sandbox/internal/mongodb/serverversion"
)

// indexRequest is one element of createIndexes' indexes.
type indexRequest struct {
	key            bson.Raw
	name           string
	version        int64
	unique, sparse bool
	partial        bson.Raw
	collation      *collation.Collation
	hidden         bool
	// others are listed as they came.
	others bson.D
}

// parseIndexSpec reads such an element and refuses what cannot be an index. by
// is the collation of an index that names none, and of that of _id; lenient
// leaves out what there is not.
func parseIndexSpec(version serverversion.Version, doc bson.Raw, by *collation.Collation, lenient bool) (storage.IndexSpec, error) {
	q := indexRequest{collation: by, version: 2}
	a := command.Arguments{Mismatch: mongoerr.TypeMismatch}
	for it := bsonkit.Iterate(doc); it.Next(); {
		name, v := string(it.Key()), it.Value()
		switch name {
		case "key":
			q.key = a.Document(name, v)
		case "name":
			if q.name = a.Text(name, v); q.name == "" {
				a.Fail(mongoerr.CannotCreateIndex, "index name cannot be empty")
			}
			if strings.ContainsRune(q.name, 0) {
				a.Fail(mongoerr.CannotCreateIndex, "index name cannot contain a null byte")
			}
		case "unique":
			q.unique = bsonkit.Truthy(v)
		case "sparse":
			q.sparse = bsonkit.Truthy(v)
			q.others = append(q.others, bson.E{Key: name, Value: v})
		case "expireAfterSeconds":
			expireAfter(&a, v, version)
			q.others = append(q.others, bson.E{Key: name, Value: v})
		case "partialFilterExpression":
			q.partial = a.Document(name, v)
			q.others = append(q.others, bson.E{Key: name, Value: v})
		case "collation":
			q.collation = collationSetting(&a, v)
		case "hidden":
			q.hidden = a.Boolean(name, v)
		case "v":
			q.version = indexVersion(&a, v)
		case "ns", "dropDups": // they were once
		case "storageEngine":
			if v.Type != bson.TypeEmbeddedDocument || len(v.Value) == len(bsonkit.Empty) {
				a.Fail(mongoerr.CannotCreateIndex, "\"storageEngine\" options must be a document with options if present")
			}
			q.others = append(q.others, bson.E{Key: name, Value: v})
		case "background", "weights", "default_language", "language_override", "textIndexVersion", "2dsphereIndexVersion", "bits",
			"max", "min", "bucketSize", "wildcardProjection":
			q.others = append(q.others, bson.E{Key: name, Value: v})
		default:
			if lenient {
				continue
			}
			a.Fail(mongoerr.InvalidIndexSpecificationOption,
				"Error in specification %s :: caused by :: The field '%s' is not valid for an index specification.", doc, name)
		}
	}
	if q.key == nil {
		a.Fail(mongoerr.FailedToParse, "Error in specification %s :: caused by :: The 'key' field is a required property of an index specification", doc)
	}
	if q.name == "" {
		a.Fail(mongoerr.FailedToParse, "Error in specification %s :: caused by :: The 'name' field is a required property of an index specification", doc)
	}
	// Before a text index gets the fields that it is kept under.
	if fields := storage.FieldsOf(q.key); len(fields) > 1 && q.has("expireAfterSeconds") {
		a.Fail(mongoerr.CannotCreateIndex, "TTL indexes are single-field indexes, compound indexes do not support TTL. Index spec: %s",
			bsonkit.Describe(bsonkit.Document(doc)))
	}
	if isTextIndex(q.key) {
		textIndex(&a, &q)
	}
	indexKey(&a, q.key)
	reservedNames(&a, &q)
	if q.name == storage.IDIndexName && !bytes.Equal(q.collation.Spec(), by.Spec()) {
		a.Fail(mongoerr.CannotCreateIndex, "_id index must have the collection default collation")
	}
	indexKindOptions(&a, &q)
	wildcard(&a, q, version)
	partial(&a, q)
	if a.Err != nil {
		return storage.IndexSpec{}, a.Err
	}
	listed, err := q.listed()
	if err != nil {
		return storage.IndexSpec{}, err
	}
	return storage.NewIndexSpec(listed)
}

func expireAfter(a *command.Arguments, v bson.RawValue, version serverversion.Version) {
	if !bsonkit.IsNumber(v.Type) {
		a.Fail(mongoerr.CannotCreateIndex, "TTL index 'expireAfterSeconds' option must be numeric, but received a type of '%s'",
			bsonkit.TypeName(v.Type))
		return
	}
	seconds := a.Integer("expireAfterSeconds", v)
	if seconds < 0 || seconds > math.MaxInt32 || seconds > time.Now().Unix() && !version.Has(5) {
		a.Fail(mongoerr.CannotCreateIndex, "TTL index 'expireAfterSeconds' option must be within an acceptable range, found %d", seconds)
	}
}

// indexVersion takes the versions that indexes may still be made in.
func indexVersion(a *command.Arguments, v bson.RawValue) int64 {
	if !bsonkit.IsNumber(v.Type) {
		a.WrongType("v", v, "number")
		return 0
	}
	version := a.Integer("v", v)
	if version != 1 && version != 2 {
		a.Fail(mongoerr.CannotCreateIndex, "Invalid index specification: cannot create an index with v=%d", version)
	}
	return version
}

// reservedNames keeps the name and the key of the index that every collection
// has to it.
func reservedNames(a *command.Arguments, q *indexRequest) {
	fields := storage.FieldsOf(q.key)
	onID := len(fields) == 1 && fields[0].Path == "_id"
	switch {
	case q.name == "*":
		a.Fail(mongoerr.BadValue, "The index name '*' is not valid.")
	case q.name == storage.IDIndexName && !onID:
		a.Fail(mongoerr.BadValue, "The index name '_id_' is reserved for the _id index, which must have key pattern {_id: 1}, found key: %s",
			bsonkit.Describe(bsonkit.Document(q.key)))
	case !onID || isHashed(q.key):
	case fields[0].Descending:
		a.Fail(mongoerr.BadValue, "The field 'key' for an _id index must be {_id: 1}, but got %s", bsonkit.Describe(bsonkit.Document(q.key)))
	case q.unique || q.hidden || len(q.others) > 0:
		a.Fail(mongoerr.InvalidIndexSpecificationOption, "The field is not valid for an _id index specification. Specification: %s",
			bsonkit.Describe(bsonkit.Document(q.key)))
	default:
		q.name = storage.IDIndexName
	}
}

// indexKind refuses what is no kind of index. Those that are, and are not
// ascending or descending, are listed and hold no keys.
func indexKind(a *command.Arguments, kind string) {
	switch kind {
	case "text", "2d", "2dsphere", "hashed":
	case "geoHaystack":
		a.Fail(mongoerr.CannotCreateIndex, "indexes of kind '%s' are not supported", kind)
	default:
		a.Fail(mongoerr.CannotCreateIndex, "Unknown index plugin '%s'", kind)
	}
}

// isHashed finds a hashed field.
func isHashed(key bson.Raw) bool { return fieldsOfKind(key, "hashed") > 0 }

func fieldsOfKind(key bson.Raw, kind string) int {
	n := 0
	for it := bsonkit.Iterate(key); it.Next(); {
		if s, ok := it.Value().StringValueOK(); ok && s == kind {
			n++
		}
	}
	return n
}

// indexKindOptions refuses options that a kind of index does not take, and adds
// those that it always has.
func indexKindOptions(a *command.Arguments, q *indexRequest) {
	switch hashed := fieldsOfKind(q.key, "hashed"); {
	case hashed > 1:
		a.Fail(31303, "A maximum of one index field is allowed to be hashed but found %d for 'key' %s",
			hashed, bsonkit.Describe(bsonkit.Document(q.key)))
	case hashed == 1 && q.unique:
		a.Fail(16764, "Currently hashed indexes cannot guarantee uniqueness. Use a regular index.")
	}
	if fieldsOfKind(q.key, "2dsphere") > 0 {
		q.others = append(q.others, bson.E{Key: "2dsphereIndexVersion", Value: int32(3)})
	}
}

// maxIndexFields bounds a compound index.
const maxIndexFields = 32

func indexKey(a *command.Arguments, key bson.Raw) {
	for it := bsonkit.Iterate(key); it.Next(); {
		name, v := string(it.Key()), it.Value()
		if kind, ok := v.StringValueOK(); ok {
			indexKind(a, kind)
			continue
		}
		if n, ok := v.AsFloat64OK(); !ok || n == 0 || math.IsNaN(n) {
			a.Fail(mongoerr.CannotCreateIndex, "Values in the index key pattern cannot be %s.", v)
		}
		if hasEmptyPart(name) || hasOperatorPart(name) {
			a.Fail(mongoerr.CannotCreateIndex, "Index key contains an illegal field name: '%s'", name)
		}
	}
	fields := storage.FieldsOf(key)
	if key != nil && (len(fields) == 0 || len(fields) > maxIndexFields) {
		a.Fail(mongoerr.CannotCreateIndex, "Index keys must have 1 to %d fields", maxIndexFields)
	}
}

// hasEmptyPart finds a part of a path that has no name.
func hasEmptyPart(path string) bool {
	return slices.Contains(strings.Split(path, "."), "")
}

// hasOperatorPart finds a part of a path that begins with $, other than the
// wildcard and the fields of references.
func hasOperatorPart(path string) bool {
	for part := range strings.SplitSeq(strings.TrimSuffix(path, storage.Wildcard), ".") {
		if strings.HasPrefix(part, "$") && part != "$id" && part != "$ref" && part != "$db" {
			return true
		}
	}
	return false
}

// partial looks at the filter expression, which only some operators may be in.
func partial(a *command.Arguments, q indexRequest) {
	if q.partial == nil {
		return
	}
	if q.sparse {
		a.Fail(mongoerr.CannotCreateIndex, "cannot mix \"partialFilterExpression\" and \"sparse\" options")
	}
	if _, err := match.Compile(q.partial, expression.Env{}); mongoerr.Is(err, mongoerr.BadValue) && a.Err == nil {
		a.Err = err
	}
	if operator := notPartial(q.partial); operator != "" {
		a.Fail(mongoerr.CannotCreateIndex, "unsupported expression in partial index: %s", operator)
	}
}

// notPartial finds an operator that partial indexes do not take
// (https://www.mongodb.com/docs/v4.4/core/index-partial/).
func notPartial(filter bson.Raw) string {
	for it := bsonkit.Iterate(filter); it.Next(); {
		name, v := string(it.Key()), it.Value()
		switch {
		case name == "$and":
			for sub := bsonkit.Iterate(v.Value); sub.Next(); {
				if operator := notPartial(sub.Value().Value); operator != "" {
					return operator
				}
			}
		case strings.HasPrefix(name, "$"):
			return name
		case v.Type == bson.TypeRegex:
			return "$regex"
		case v.Type == bson.TypeEmbeddedDocument:
			for sub := bsonkit.Iterate(v.Value); sub.Next(); {
				switch operator := string(sub.Key()); operator {
				case "$eq", "$gt", "$gte", "$lt", "$lte", "$type":
				case "$exists":
					if !bsonkit.Truthy(sub.Value()) {
						return operator
					}
				default:
					if strings.HasPrefix(operator, "$") {
						return operator
					}
				}
			}
		}
	}
	return ""
}

// listed is the index as listIndexes shows it.
func (q indexRequest) listed() (bson.Raw, error) {
	b := bsoncore.NewDocumentBuilder().AppendInt32("v", int32(q.version))
	if q.unique {
		b.AppendBoolean("unique", true)
	}
	if q.hidden {
		b.AppendBoolean("hidden", true)
	}
	b.AppendDocument("key", q.key).AppendString("name", q.name)
	if !q.collation.IsSimple() {
		b.AppendDocument("collation", bsoncore.Document(q.collation.Spec()))
	}
	for _, option := range q.others {
		kind, data, err := bson.MarshalValue(option.Value)
		if err != nil {
			return nil, err
		}
		b.AppendValue(option.Key, bsoncore.Value{Type: bsoncore.Type(kind), Data: data})
	}
	return bson.Raw(b.Build()), nil
}
