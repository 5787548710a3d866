package schema

import (
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/command"
	"changerelay/services/sandbox/internal/mongodb/engine/storage"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
	"changerelay/services/sandbox/internal/mongodb/serverversion"
)

// wildcard refuses what an index of all fields cannot have
// (https://www.mongodb.com/docs/v4.4/core/index-wildcard/#restrictions).
func wildcard(a *command.Arguments, q indexRequest, version serverversion.Version) {
	fields := storage.FieldsOf(q.key)
	whole, some := false, false
	for _, field := range fields {
		whole = whole || field.Path == storage.Wildcard
		some = some || field.Path == storage.Wildcard || strings.HasSuffix(field.Path, "."+storage.Wildcard)
	}
	some = some && !isTextIndex(q.key)
	projection, projected := q.other("wildcardProjection")
	switch {
	case projected && !some:
		a.Fail(mongoerr.BadValue, "The field 'wildcardProjection' is only allowed in an 'wildcard' index")
	case projected && projection.Type != bson.TypeEmbeddedDocument:
		a.WrongType("wildcardProjection", projection, "object")
	case projected && !whole:
		a.Fail(mongoerr.FailedToParse, "The field 'wildcardProjection' is only allowed when 'key' is {\"$**\": ±1}")
	case projected && len(projection.Value) == len(bsonkit.Empty):
		a.Fail(mongoerr.FailedToParse, "The 'wildcardProjection' field can't be an empty object")
	case !some:
	case q.version == 1:
		a.Fail(mongoerr.CannotCreateIndex, "'wildcard' index plugin is not allowed with index version v:1")
	case len(fields) > 1 && !version.Has(7):
		a.Fail(mongoerr.CannotCreateIndex, "wildcard indexes do not allow compounding")
	case slices.ContainsFunc(fields, func(f storage.IndexField) bool { return f.Descending }):
		a.Fail(mongoerr.CannotCreateIndex, "A numeric value in a $** index key pattern must be positive.")
	case q.unique:
		a.Fail(mongoerr.CannotCreateIndex, "Index type 'wildcard' does not support the unique option")
	case q.sparse:
		a.Fail(mongoerr.CannotCreateIndex, "Index type 'wildcard' does not support the sparse option")
	case q.has("expireAfterSeconds"):
		a.Fail(mongoerr.CannotCreateIndex, "Index type 'wildcard' cannot be a TTL index")
	}
}

// other is an option that is listed as it came.
func (q indexRequest) other(name string) (bson.RawValue, bool) {
	for _, e := range q.others {
		if e.Key == name {
			v, ok := e.Value.(bson.RawValue)
			return v, ok
		}
	}
	return bson.RawValue{}, false
}

func (q indexRequest) has(name string) bool {
	_, there := q.other(name)
	return there
}
