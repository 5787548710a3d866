package match

import (
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
	"changerelay/services/sandbox/internal/mongodb/query/expression"
)

func newSchemaCondition(v bson.RawValue) (condition, error) {
	s, err := newSchema(v)
	return schemaCondition{s}, err
}

func newSchema(v bson.RawValue) (schema, error) {
	if v.Type != bson.TypeEmbeddedDocument {
		return nil, schemaType("$jsonSchema", "an object", v)
	}
	var s schema
	for it := bsonkit.Iterate(v.Value); it.Next(); {
		r, err := schemaRule(string(it.Key()), it.Value(), v.Value)
		if err != nil {
			return nil, err
		}
		if r != nil {
			s = append(s, r)
		}
	}
	return s, nil
}

func schemaType(keyword, want string, v bson.RawValue) error {
	return mongoerr.New(mongoerr.TypeMismatch, "$jsonSchema keyword '%s' must be %s, but found an element of type %s", keyword, want, bsonkit.TypeName(v.Type))
}

// schemaRule reads one keyword; siblings are all keywords of the schema. It is
// nil for one that says nothing by itself.
func schemaRule(keyword string, v bson.RawValue, siblings bson.Raw) (rule, error) {
	switch keyword {
	case "title", "description", "exclusiveMinimum", "exclusiveMaximum":
		return nil, nil
	case "bsonType", "type":
		return schemaTypes(keyword, v)
	case "enum":
		return schemaEnum(v)
	case "minimum", "maximum":
		return schemaLimit(keyword, v, siblings)
	case "multipleOf":
		return schemaMultiple(v)
	case "minLength", "maxLength":
		return schemaSize(keyword, v, isText, characters)
	case "minItems", "maxItems":
		return schemaSize(keyword, v, isArray, count)
	case "minProperties", "maxProperties":
		return schemaSize(keyword, v, isDocument, count)
	case "pattern":
		return schemaPattern(v)
	case "required":
		return schemaRequired(v)
	case "properties":
		return schemaProperties(v, siblings)
	case "additionalProperties":
		if _, ok := bsonkit.Get(siblings, "properties"); ok {
			return nil, nil // read with them
		}
		others, err := schemaOrFlag(keyword, v)
		return properties(nil, others), err
	case "items":
		return schemaItems(v)
	case "uniqueItems":
		if bsonkit.Truthy(v) {
			return only(isArray, uniqueItems), nil
		}
		return nil, nil
	case "allOf", "anyOf", "oneOf":
		return schemaCombination(keyword, v)
	case "not":
		s, err := newSchema(v)
		return func(v bson.RawValue) bool { return !s.follows(v) }, err
	}
	return nil, mongoerr.New(mongoerr.FailedToParse, "Unknown $jsonSchema keyword: %s", keyword)
}

// schemaTypes reads names of BSON's types, or of JSON's under "type".
func schemaTypes(keyword string, v bson.RawValue) (rule, error) {
	names := []bson.RawValue{v}
	if v.Type == bson.TypeArray {
		names = bsonkit.Values(v)
	}
	types := typeTest{}
	for _, n := range names {
		name, ok := n.StringValueOK()
		if !ok {
			return nil, schemaType(keyword, "a string or an array of strings", n)
		}
		if keyword == "type" && name == "boolean" {
			name = "bool"
		}
		if name == "integer" {
			return nil, mongoerr.New(mongoerr.FailedToParse, "$jsonSchema type 'integer' is not currently supported.")
		}
		if err := types.addAlias(name); err != nil {
			return nil, err
		}
	}
	return func(v bson.RawValue) bool { return types.pass(v, nil) }, nil
}

func schemaEnum(v bson.RawValue) (rule, error) {
	if v.Type != bson.TypeArray {
		return nil, schemaType("enum", "an array", v)
	}
	values := bsonkit.Values(v)
	if len(values) == 0 {
		return nil, mongoerr.New(mongoerr.FailedToParse, "$jsonSchema keyword 'enum' cannot be an empty array")
	}
	return oneOfValues(values), nil
}

func schemaLimit(keyword string, v bson.RawValue, siblings bson.Raw) (rule, error) {
	if !bsonkit.IsNumber(v.Type) {
		return nil, schemaType(keyword, "a number", v)
	}
	op := opGte
	exclusive, _ := bsonkit.Get(siblings, "exclusive"+strings.ToUpper(keyword[:1])+keyword[1:])
	switch {
	case keyword == "minimum" && bsonkit.Truthy(exclusive):
		op = opGt
	case keyword == "maximum" && bsonkit.Truthy(exclusive):
		op = opLt
	case keyword == "maximum":
		op = opLte
	}
	limit, err := newComparison(op, keyword, v)
	return only(bsonkit.IsNumber, func(v bson.RawValue) bool { return limit.pass(v, nil) }), err
}

func schemaMultiple(v bson.RawValue) (rule, error) {
	if !bsonkit.IsNumber(v.Type) {
		return nil, schemaType("multipleOf", "a number", v)
	}
	of := bsonkit.ToDecimal(v)
	if bsonkit.IsZero(v) {
		return nil, mongoerr.New(mongoerr.FailedToParse, "$jsonSchema keyword 'multipleOf' must have a positive value")
	}
	return only(bsonkit.IsNumber, func(v bson.RawValue) bool {
		return bsonkit.IsZero(bsonkit.Decimal(bsonkit.RemainderDecimals(bsonkit.ToDecimal(v), of)))
	}), nil
}

// schemaSize reads a minimum or maximum of what size counts.
func schemaSize(keyword string, v bson.RawValue, applies func(bson.Type) bool, size func(bson.RawValue) int64) (rule, error) {
	n, ok := bsonkit.WholeNumber(v)
	if !ok {
		return nil, schemaType(keyword, "a whole number", v)
	}
	if n < 0 {
		return nil, mongoerr.New(mongoerr.FailedToParse, "$jsonSchema keyword '%s' must not be negative", keyword)
	}
	least := strings.HasPrefix(keyword, "min")
	return only(applies, func(v bson.RawValue) bool {
		if least {
			return size(v) >= n
		}
		return size(v) <= n
	}), nil
}

func schemaPattern(v bson.RawValue) (rule, error) {
	pattern, ok := v.StringValueOK()
	if !ok {
		return nil, schemaType("pattern", "a string", v)
	}
	re, err := expression.CompileRegex(pattern, "")
	if err != nil {
		return nil, err
	}
	return only(isText, func(v bson.RawValue) bool { return re.Match(bsonkit.Text(v)) }), nil
}

func schemaRequired(v bson.RawValue) (rule, error) {
	if v.Type != bson.TypeArray {
		return nil, schemaType("required", "an array", v)
	}
	var names []string
	for _, n := range bsonkit.Values(v) {
		name, ok := n.StringValueOK()
		if !ok {
			return nil, schemaType("required", "an array of strings", n)
		}
		names = append(names, name)
	}
	if names == nil {
		return nil, mongoerr.New(mongoerr.FailedToParse, "$jsonSchema keyword 'required' cannot be an empty array")
	}
	return required(names), nil
}

func schemaProperties(v bson.RawValue, siblings bson.Raw) (rule, error) {
	if v.Type != bson.TypeEmbeddedDocument {
		return nil, schemaType("properties", "an object", v)
	}
	named := map[string]schema{}
	for it := bsonkit.Iterate(v.Value); it.Next(); {
		s, err := newSchema(it.Value())
		if err != nil {
			return nil, err
		}
		named[string(it.Key())] = s
	}
	additional, ok := bsonkit.Get(siblings, "additionalProperties")
	if !ok {
		return properties(named, nil), nil
	}
	others, err := schemaOrFlag("additionalProperties", additional)
	return properties(named, others), err
}

// schemaOrFlag reads a schema, true for one that all values follow, or false
// for one that none does.
func schemaOrFlag(keyword string, v bson.RawValue) (schema, error) {
	switch v.Type {
	case bson.TypeEmbeddedDocument:
		return newSchema(v)
	case bson.TypeBoolean:
		if bsonkit.Truthy(v) {
			return nil, nil
		}
		return schema{func(bson.RawValue) bool { return false }}, nil
	}
	return nil, schemaType(keyword, "an object or a boolean", v)
}

func schemaItems(v bson.RawValue) (rule, error) {
	if v.Type == bson.TypeEmbeddedDocument {
		s, err := newSchema(v)
		return items(nil, s), err
	}
	first, err := schemaList("items", v)
	return items(first, nil), err
}

func schemaCombination(keyword string, v bson.RawValue) (rule, error) {
	all, err := schemaList(keyword, v)
	if err == nil && len(all) == 0 {
		err = mongoerr.New(mongoerr.BadValue, "$jsonSchema keyword '%s' must be a non-empty array", keyword)
	}
	least, most := 1, len(all)
	switch keyword {
	case "allOf":
		least = len(all)
	case "oneOf":
		most = 1
	}
	return combination(all, least, most), err
}

func schemaList(keyword string, v bson.RawValue) ([]schema, error) {
	if v.Type != bson.TypeArray {
		return nil, schemaType(keyword, "an array", v)
	}
	var all []schema
	for _, e := range bsonkit.Values(v) {
		s, err := newSchema(e)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}
