package match

import (
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
)

func (p filterParser) schemaCondition(v bson.RawValue) (condition, error) {
	s, err := p.newSchema(v)
	return schemaCondition{s}, err
}

func (p filterParser) newSchema(v bson.RawValue) (schema, error) {
	if v.Type != bson.TypeEmbeddedDocument {
		return nil, schemaType("$jsonSchema", "an object", v)
	}
	var s schema
	seen := map[string]bool{}
	for it := bsonkit.Iterate(v.Value); it.Next(); {
		keyword := string(it.Key())
		if seen[keyword] {
			return nil, schemaInvalid("Duplicate $jsonSchema keyword: %s", keyword)
		}
		seen[keyword] = true
		r, err := p.schemaRule(keyword, it.Value(), v.Value)
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

func schemaInvalid(format string, args ...any) error {
	return mongoerr.New(mongoerr.FailedToParse, format, args...)
}

func has(doc bson.Raw, name string) bool {
	_, there := bsonkit.Get(doc, name)
	return there
}

// checkExclusive refuses a keyword that makes a limit exclusive where there is
// none, and one that is no boolean.
func checkExclusive(exclusive string, v bson.RawValue, siblings bson.Raw) error {
	limit := strings.ToLower(strings.TrimPrefix(exclusive, "exclusive"))
	switch {
	case !has(siblings, limit):
		return schemaInvalid("$jsonSchema keyword '%s' must be a present if %s is present", limit, exclusive)
	case v.Type != bson.TypeBoolean:
		return schemaType(exclusive, "a boolean", v)
	}
	return nil
}

// schemaRule reads one keyword; siblings are all keywords of the schema. It is
// nil for one that says nothing by itself.
func (p filterParser) schemaRule(keyword string, v bson.RawValue, siblings bson.Raw) (rule, error) {
	switch keyword {
	case "title", "description":
		if v.Type != bson.TypeString {
			return nil, schemaType(keyword, "a string", v)
		}
		return nil, nil
	case "exclusiveMinimum", "exclusiveMaximum":
		return nil, checkExclusive(keyword, v, siblings)
	case "bsonType", "type":
		if has(siblings, "bsonType") && has(siblings, "type") {
			return nil, schemaInvalid("Cannot specify both $jsonSchema keywords 'type' and 'bsonType'")
		}
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
		return p.schemaPattern(v)
	case "required":
		return schemaRequired(v)
	case "properties":
		named, err := p.schemasByName(keyword, v)
		return properties(named), err
	case "patternProperties":
		return p.schemaAllowed(siblings)
	case "additionalProperties":
		if has(siblings, "patternProperties") {
			return nil, nil // read with them
		}
		return p.schemaAllowed(siblings)
	case "dependencies":
		return p.schemaDependencies(v)
	case "items":
		return p.schemaItems(v, siblings)
	case "additionalItems":
		_, err := p.schemaOrFlag(keyword, v) // read with the items
		return nil, err
	case "uniqueItems":
		if v.Type != bson.TypeBoolean {
			return nil, schemaType(keyword, "a boolean", v)
		}
		if bsonkit.Truthy(v) {
			return only(isArray, uniqueItems), nil
		}
		return nil, nil
	case "allOf", "anyOf", "oneOf":
		return p.schemaCombination(keyword, v)
	case "not":
		s, err := p.newSchema(v)
		return func(v bson.RawValue) bool { return !s.follows(v) }, err
	}
	return nil, schemaInvalid("Unknown $jsonSchema keyword: %s", keyword)
}

// schemaTypes reads names of BSON's types, or of JSON's under "type".
func schemaTypes(keyword string, v bson.RawValue) (rule, error) {
	names := []bson.RawValue{v}
	if v.Type == bson.TypeArray {
		names = bsonkit.Values(v)
	}
	if len(names) == 0 {
		return nil, schemaInvalid("$jsonSchema keyword '%s' must name at least one type", keyword)
	}
	types := typeTest{}
	for i, n := range names {
		name, ok := n.StringValueOK()
		switch {
		case !ok:
			return nil, schemaType(keyword, "a string or an array of strings", n)
		case name == "integer":
			return nil, schemaInvalid("$jsonSchema type 'integer' is not currently supported.")
		case bsonkit.Contains(names[:i], n):
			return nil, schemaInvalid("$jsonSchema keyword '%s' has duplicate value: %s", keyword, name)
		}
		if keyword == "type" {
			if name, ok = jsonType(name); !ok {
				return nil, mongoerr.New(mongoerr.BadValue, "Unknown type name alias: %s", string(bsonkit.Text(n)))
			}
		}
		if err := types.addAlias(name); err != nil {
			return nil, err
		}
	}
	return func(v bson.RawValue) bool { return types.pass(v, nil) }, nil
}

// jsonType is BSON's name of a type that JSON Schema knows.
func jsonType(name string) (string, bool) {
	switch name {
	case "boolean":
		return "bool", true
	case "array", "null", "number", "object", "string":
		return name, true
	}
	return "", false
}

func schemaEnum(v bson.RawValue) (rule, error) {
	if v.Type != bson.TypeArray {
		return nil, schemaType("enum", "an array", v)
	}
	var values []bson.RawValue
	for _, value := range bsonkit.Values(v) {
		if value = unordered(value); bsonkit.Contains(values, value) {
			return nil, schemaInvalid("$jsonSchema keyword 'enum' array cannot contain duplicate values.")
		}
		values = append(values, value)
	}
	if values == nil {
		return nil, schemaInvalid("$jsonSchema keyword 'enum' cannot be an empty array")
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
	if bsonkit.IsZero(v) || bsonkit.Compare(v, bsonkit.Int32(0)) < 0 {
		return nil, schemaInvalid("$jsonSchema keyword 'multipleOf' must have a positive value")
	}
	return only(bsonkit.IsNumber, func(v bson.RawValue) bool {
		return bsonkit.IsZero(bsonkit.Decimal(bsonkit.RemainderDecimals(bsonkit.ToDecimal(v), of)))
	}), nil
}

// schemaSize reads a minimum or maximum of what size counts.
func schemaSize(keyword string, v bson.RawValue, applies func(bson.Type) bool, size func(bson.RawValue) int64) (rule, error) {
	n, ok := bsonkit.WholeNumber(v)
	if !ok || n < 0 {
		return nil, schemaInvalid("$jsonSchema keyword '%s' must be a whole number that is not negative", keyword)
	}
	least := strings.HasPrefix(keyword, "min")
	return only(applies, func(v bson.RawValue) bool {
		if least {
			return size(v) >= n
		}
		return size(v) <= n
	}), nil
}

func (p filterParser) schemaPattern(v bson.RawValue) (rule, error) {
	pattern, ok := v.StringValueOK()
	if !ok {
		return nil, schemaType("pattern", "a string", v)
	}
	re, err := p.env.CompileRegex(pattern, "")
	if err != nil {
		return nil, err
	}
	return only(isText, func(v bson.RawValue) bool { return re.Match(bsonkit.Text(v)) }), nil
}
