package storage

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/query/collation"
	"changerelay/services/sandbox/internal/mongodb/query/expression"
	"changerelay/services/sandbox/internal/mongodb/query/match"
)

const (
	// Wildcard ends the path of an index over all fields below another.
	Wildcard = "$**"
	// TextField stands in the key of a text index for the fields it is over.
	TextField = "_fts"
)

// NewIndexSpec makes the specification of an index from the document that
// listIndexes shows.
func NewIndexSpec(listed bson.Raw) (IndexSpec, error) {
	spec := IndexSpec{Listed: listed}
	for it := bsonkit.Iterate(listed); it.Next(); {
		v := it.Value()
		switch string(it.Key()) {
		case "name":
			spec.Name, _ = v.StringValueOK()
		case "key":
			spec.Fields = FieldsOf(v.Value)
			spec.Inert = hasKind(v.Value)
			spec.hashed = slices.ContainsFunc(bsonkit.Values(v), func(kind bson.RawValue) bool {
				name, _ := kind.StringValueOK()
				return name == "hashed"
			})
		case "unique":
			spec.Unique, _ = v.BooleanOK()
		case "sparse":
			spec.Sparse = bsonkit.Truthy(v)
		case "expireAfterSeconds":
			if seconds, ok := bsonkit.Truncated(v); ok {
				after := int32(max(min(seconds, math.MaxInt32), math.MinInt32))
				spec.ExpireAfter = &after
			}
		case "partialFilterExpression":
			spec.PartialFilter = v.Value
		case "hidden":
			spec.Hidden, _ = v.BooleanOK()
		case "collation":
			var err error
			if spec.Collation, err = collation.Parse(v.Value); err != nil {
				return spec, fmt.Errorf("collation of index %q: %w", spec.Name, err)
			}
		}
	}
	for _, field := range spec.Fields {
		spec.Inert = spec.Inert || strings.HasSuffix(field.Path, Wildcard) || field.Path == TextField
	}
	if spec.Name == IDIndexName {
		spec.Unique = true // though it is not shown so
	}
	if spec.PartialFilter == nil {
		return spec, nil
	}
	filter, err := match.Compile(spec.PartialFilter, expression.Env{})
	if err != nil {
		return spec, fmt.Errorf("partial filter of index %q: %w", spec.Name, err)
	}
	spec.Partial = filter.Match
	return spec, nil
}

// hasKind tells indexes of a kind of their own: hashed, text, geospatial.
func hasKind(key bson.Raw) bool {
	for it := bsonkit.Iterate(key); it.Next(); {
		if it.Value().Type == bson.TypeString {
			return true
		}
	}
	return false
}

// HasField reports whether a path is among the fields of the index.
func (s IndexSpec) HasField(path string) bool {
	return slices.ContainsFunc(s.Fields, func(f IndexField) bool { return f.Path == path })
}
