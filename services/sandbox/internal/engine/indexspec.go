package engine

import (
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/bsonkit"
	"changerelay/services/sandbox/internal/query"
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
		case "unique":
			spec.Unique, _ = v.BooleanOK()
		case "sparse":
			spec.Sparse, _ = v.BooleanOK()
		case "expireAfterSeconds":
			if after, ok := v.Int32OK(); ok {
				spec.ExpireAfter = &after
			}
		case "partialFilterExpression":
			spec.PartialFilter = v.Value
		}
	}
	if spec.Name == IDIndexName {
		spec.Unique = true // though it is not shown so
	}
	if spec.PartialFilter == nil {
		return spec, nil
	}
	filter, err := query.CompileFilter(spec.PartialFilter, query.Env{})
	if err != nil {
		return spec, fmt.Errorf("partial filter of index %q: %w", spec.Name, err)
	}
	spec.Partial = filter.Match
	return spec, nil
}

// NewCollectionOptions makes options from the document that listCollections
// shows. A validator that only warns, or is off, refuses nothing.
func NewCollectionOptions(listed bson.Raw) (CollectionOptions, error) {
	o := CollectionOptions{Listed: listed}
	validator, there := bsonkit.Get(listed, "validator")
	level, _ := bsonkit.Get(listed, "validationLevel")
	action, _ := bsonkit.Get(listed, "validationAction")
	if levelName, _ := level.StringValueOK(); !there || levelName == "off" {
		return o, nil
	}
	if actionName, _ := action.StringValueOK(); actionName == "warn" {
		return o, nil
	}
	filter, err := query.CompileFilter(validator.Value, query.Env{})
	if err != nil {
		return o, err
	}
	o.Validator = filter.Match
	return o, nil
}
