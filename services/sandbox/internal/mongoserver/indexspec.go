package mongoserver

import (
	"math"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"changerelay/services/sandbox/internal/bsonkit"
	"changerelay/services/sandbox/internal/engine"
	"changerelay/services/sandbox/internal/mongoerr"
	"changerelay/services/sandbox/internal/query/collation"
)

// indexRequest is one element of createIndexes' indexes.
type indexRequest struct {
	key            bson.Raw
	name           string
	unique, sparse bool
	expireAfter    *int32
	partial        bson.Raw
	collation      *collation.Collation
	hidden         bool
	// others are options that do nothing here: they are listed as they came.
	others bson.D
}

// parseIndexSpec reads such an element and refuses what can not be an index. by
// is the collation of an index that names none.
func parseIndexSpec(doc bson.Raw, by *collation.Collation) (engine.IndexSpec, error) {
	q := indexRequest{collation: by}
	a := arguments{mismatch: mongoerr.TypeMismatch}
	for it := bsonkit.Iterate(doc); it.Next(); {
		name, v := string(it.Key()), it.Value()
		switch name {
		case "key":
			q.key = a.document(name, v)
		case "name":
			if q.name = a.text(name, v); q.name == "" {
				a.fail(mongoerr.CannotCreateIndex, "index name cannot be empty")
			}
		case "unique":
			q.unique = truthy(v)
		case "sparse":
			q.sparse = truthy(v)
		case "expireAfterSeconds":
			q.expireAfter = a.expireAfter(v)
		case "partialFilterExpression":
			q.partial = a.document(name, v)
		case "collation":
			q.collation = a.collation(v)
		case "hidden":
			q.hidden = a.boolean(name, v)
		case "v", "background", "ns":
		case "weights", "default_language", "language_override", "textIndexVersion", "2dsphereIndexVersion", "bits",
			"max", "min", "bucketSize", "storageEngine", "wildcardProjection":
			q.others = append(q.others, bson.E{Key: name, Value: v})
		default:
			a.fail(mongoerr.InvalidIndexSpecificationOption,
				"Error in specification %s :: caused by :: The field '%s' is not valid for an index specification.", doc, name)
		}
	}
	if q.key == nil {
		a.fail(mongoerr.FailedToParse, "Error in specification %s :: caused by :: The 'key' field is a required property of an index specification", doc)
	}
	if q.name == "" {
		a.fail(mongoerr.FailedToParse, "Error in specification %s :: caused by :: The 'name' field is a required property of an index specification", doc)
	}
	if isTextIndex(q.key) {
		a.textIndex(&q)
	}
	a.indexKey(q.key)
	a.partial(q)
	if a.err != nil {
		return engine.IndexSpec{}, a.err
	}
	listed, err := q.listed()
	if err != nil {
		return engine.IndexSpec{}, err
	}
	return engine.NewIndexSpec(listed)
}

// truthy takes any value for a flag, as index specifications do: everything but
// false, zero and null is true.
func truthy(v bson.RawValue) bool {
	switch {
	case v.Type == bson.TypeBoolean:
		b, _ := v.BooleanOK()
		return b
	case bsonkit.IsNumber(v.Type):
		f, _ := v.AsFloat64OK()
		return f != 0
	}
	return v.Type != bson.TypeNull && v.Type != bson.TypeUndefined
}

func (a *arguments) expireAfter(v bson.RawValue) *int32 {
	if !bsonkit.IsNumber(v.Type) {
		a.fail(mongoerr.CannotCreateIndex, "TTL index 'expireAfterSeconds' option must be numeric, but received a type of '%s'", v.Type)
		return nil
	}
	seconds := a.integer("expireAfterSeconds", v)
	if seconds < 0 || seconds > math.MaxInt32 {
		a.fail(mongoerr.CannotCreateIndex, "TTL index 'expireAfterSeconds' option must be within an acceptable range, found %d", seconds)
		return nil
	}
	after := int32(seconds)
	return &after
}

// indexKind refuses the kinds of the server that are not supported, and those
// that are none.
func (a *arguments) indexKind(kind string) {
	switch kind {
	case "text":
	case "2d", "2dsphere", "hashed", "geoHaystack":
		a.fail(mongoerr.CannotCreateIndex, "indexes of kind '%s' are not supported", kind)
	default:
		a.fail(mongoerr.CannotCreateIndex, "Unknown index plugin '%s'", kind)
	}
}

// maxIndexFields bounds a compound index.
const maxIndexFields = 32

func (a *arguments) indexKey(key bson.Raw) {
	for it := bsonkit.Iterate(key); it.Next(); {
		name, v := string(it.Key()), it.Value()
		if kind, ok := v.StringValueOK(); ok {
			a.indexKind(kind)
			continue
		}
		if n, ok := v.AsFloat64OK(); !ok || n == 0 || math.IsNaN(n) {
			a.fail(mongoerr.CannotCreateIndex, "Values in the index key pattern cannot be %s.", v)
		}
		if name == "" || strings.HasSuffix(name, ".") || strings.HasPrefix(name, "$") && name != engine.Wildcard {
			a.fail(mongoerr.CannotCreateIndex, "Index key contains an illegal field name: '%s'", name)
		}
	}
	fields := engine.FieldsOf(key)
	if key != nil && (len(fields) == 0 || len(fields) > maxIndexFields) {
		a.fail(mongoerr.CannotCreateIndex, "Index keys must have 1 to %d fields", maxIndexFields)
	}
}

// partial looks at the filter expression, which only some operators may be in.
func (a *arguments) partial(q indexRequest) {
	if q.partial == nil {
		return
	}
	if q.sparse {
		a.fail(mongoerr.CannotCreateIndex, "cannot mix \"partialFilterExpression\" and \"sparse\" options")
	}
	if operator := notPartial(q.partial); operator != "" {
		a.fail(mongoerr.CannotCreateIndex, "unsupported expression in partial index: %s", operator)
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
		case v.Type == bson.TypeEmbeddedDocument:
			for sub := bsonkit.Iterate(v.Value); sub.Next(); {
				switch operator := string(sub.Key()); operator {
				case "$eq", "$gt", "$gte", "$lt", "$lte", "$type":
				case "$exists":
					if !truthy(sub.Value()) {
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
	b := bsoncore.NewDocumentBuilder().AppendInt32("v", 2)
	if q.unique {
		b.AppendBoolean("unique", true)
	}
	b.AppendDocument("key", q.key).AppendString("name", q.name)
	if q.sparse {
		b.AppendBoolean("sparse", true)
	}
	if q.expireAfter != nil {
		b.AppendInt32("expireAfterSeconds", *q.expireAfter)
	}
	if q.partial != nil {
		b.AppendDocument("partialFilterExpression", q.partial)
	}
	if q.hidden {
		b.AppendBoolean("hidden", true)
	}
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
