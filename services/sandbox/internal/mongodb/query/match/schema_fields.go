package match

import (
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
	"changerelay/services/sandbox/internal/mongodb/query/expression"
)

func schemaRequired(v bson.RawValue) (rule, error) {
	if v.Type != bson.TypeArray {
		return nil, schemaType("required", "an array", v)
	}
	names, err := schemaNames("required", v)
	return required(names), err
}

// schemaNames reads an array of names of fields.
func schemaNames(keyword string, v bson.RawValue) ([]string, error) {
	var names []string
	for _, n := range bsonkit.Values(v) {
		name, ok := n.StringValueOK()
		switch {
		case !ok:
			return nil, schemaType(keyword, "an array of strings", n)
		case slices.Contains(names, name):
			return nil, schemaInvalid("$jsonSchema keyword '%s' array cannot contain duplicate values", keyword)
		}
		names = append(names, name)
	}
	if names == nil {
		return nil, schemaInvalid("$jsonSchema keyword '%s' cannot be an empty array", keyword)
	}
	return names, nil
}

// schemasByName reads a document of schemas.
func (p filterParser) schemasByName(keyword string, v bson.RawValue) (map[string]schema, error) {
	if v.Type != bson.TypeEmbeddedDocument {
		return nil, schemaType(keyword, "an object", v)
	}
	named := map[string]schema{}
	for it := bsonkit.Iterate(v.Value); it.Next(); {
		s, err := p.newSchema(it.Value())
		if err != nil {
			return nil, err
		}
		named[string(it.Key())] = s
	}
	return named, nil
}

// schemaAllowed reads what is said of fields by patterns, and of those that
// neither a pattern nor "properties" names.
func (p filterParser) schemaAllowed(siblings bson.Raw) (rule, error) {
	var a allowed
	if byPattern, ok := bsonkit.Get(siblings, "patternProperties"); ok {
		schemas, err := p.schemasByName("patternProperties", byPattern)
		if err != nil {
			return nil, err
		}
		for pattern, s := range schemas {
			re, err := p.env.CompileRegex(pattern, "")
			if mongoerr.Is(err, expression.InvalidPattern) {
				err = schemaInvalid("Invalid regular expression: %s", pattern)
			}
			if err != nil {
				return nil, err
			}
			a.patterns = append(a.patterns, patternSchema{re, s})
		}
	}
	if others, ok := bsonkit.Get(siblings, "additionalProperties"); ok {
		var err error
		if a.others, err = p.schemaOrFlag("additionalProperties", others); err != nil {
			return nil, err
		}
	}
	if named, ok := bsonkit.Get(siblings, "properties"); ok {
		a.named = named.Value
	}
	return only(isDocument, a.follows), nil
}

// schemaDependencies reads what the presence of a field demands: a schema, or
// more fields.
func (p filterParser) schemaDependencies(v bson.RawValue) (rule, error) {
	if v.Type != bson.TypeEmbeddedDocument {
		return nil, schemaType("dependencies", "an object", v)
	}
	var all schema
	for it := bsonkit.Iterate(v.Value); it.Next(); {
		var demand schema
		var err error
		switch it.Value().Type {
		case bson.TypeEmbeddedDocument:
			demand, err = p.newSchema(it.Value())
		case bson.TypeArray:
			var names []string
			names, err = schemaNames("dependencies", it.Value())
			demand = schema{required(names)}
		default:
			err = schemaType("dependencies", "an object of objects and arrays", it.Value())
		}
		if err != nil {
			return nil, err
		}
		all = append(all, dependency(string(it.Key()), demand))
	}
	return all.follows, nil
}

// schemaOrFlag reads a schema, true for one that all values follow, or false
// for one that none does.
func (p filterParser) schemaOrFlag(keyword string, v bson.RawValue) (schema, error) {
	switch v.Type {
	case bson.TypeEmbeddedDocument:
		return p.newSchema(v)
	case bson.TypeBoolean:
		if bsonkit.Truthy(v) {
			return nil, nil
		}
		return schema{func(bson.RawValue) bool { return false }}, nil
	}
	return nil, schemaType(keyword, "an object or a boolean", v)
}

func (p filterParser) schemaItems(v bson.RawValue, siblings bson.Raw) (rule, error) {
	if v.Type == bson.TypeEmbeddedDocument {
		s, err := p.newSchema(v)
		return items(nil, s), err
	}
	first, err := p.schemaList("items", v)
	if err != nil {
		return nil, err
	}
	var rest schema
	if additional, ok := bsonkit.Get(siblings, "additionalItems"); ok {
		rest, err = p.schemaOrFlag("additionalItems", additional)
	}
	return items(first, rest), err
}

func (p filterParser) schemaCombination(keyword string, v bson.RawValue) (rule, error) {
	all, err := p.schemaList(keyword, v)
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

func (p filterParser) schemaList(keyword string, v bson.RawValue) ([]schema, error) {
	if v.Type != bson.TypeArray {
		return nil, schemaType(keyword, "an array", v)
	}
	var all []schema
	for _, e := range bsonkit.Values(v) {
		s, err := p.newSchema(e)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}
