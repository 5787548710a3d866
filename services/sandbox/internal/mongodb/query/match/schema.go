package match

import (
	"maps"
	"slices"
	"unicode/utf8"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
)

// schema is $jsonSchema: rules that a value must follow. A rule that is for
// values of one type lets others pass.
type schema []rule

type rule func(v bson.RawValue) bool

func (s schema) follows(v bson.RawValue) bool {
	for _, r := range s {
		if !r(v) {
			return false
		}
	}
	return true
}

// schemaCondition is a $jsonSchema for whole documents.
type schemaCondition struct{ schema }

func (c schemaCondition) match(doc bson.Raw, _ *int) (bool, error) {
	return c.follows(bsonkit.Document(doc)), nil
}

// only makes a rule for values of some types.
func only(applies func(t bson.Type) bool, r rule) rule {
	return func(v bson.RawValue) bool { return !applies(v.Type) || r(v) }
}

func isText(t bson.Type) bool     { return t == bson.TypeString }
func isArray(t bson.Type) bool    { return t == bson.TypeArray }
func isDocument(t bson.Type) bool { return t == bson.TypeEmbeddedDocument }

func required(names []string) rule {
	return only(isDocument, func(v bson.RawValue) bool {
		for _, name := range names {
			if _, ok := bsonkit.Get(v.Value, name); !ok {
				return false
			}
		}
		return true
	})
}

// properties checks fields by their names.
func properties(named map[string]schema) rule {
	return only(isDocument, func(v bson.RawValue) bool {
		for it := bsonkit.Iterate(v.Value); it.Next(); {
			if !named[string(it.Key())].follows(it.Value()) {
				return false
			}
		}
		return true
	})
}

// allowed checks fields by patterns of their names, and those that no pattern
// matches and that are not named by one more schema.
type allowed struct {
	patterns []patternSchema
	named    bson.Raw // its fields' names count
	others   schema
}

type patternSchema struct {
	pattern interface{ Match(text []byte) bool }
	schema  schema
}

func (a allowed) follows(v bson.RawValue) bool {
	for it := bsonkit.Iterate(v.Value); it.Next(); {
		named := has(a.named, string(it.Key()))
		for _, p := range a.patterns {
			if !p.pattern.Match(it.Key()) {
				continue
			}
			if named = true; !p.schema.follows(it.Value()) {
				return false
			}
		}
		if !named && !a.others.follows(it.Value()) {
			return false
		}
	}
	return true
}

// dependency checks documents that have the named field.
func dependency(name string, demand schema) rule {
	return only(isDocument, func(v bson.RawValue) bool { return !has(v.Value, name) || demand.follows(v) })
}

// items checks the elements of an array: the first by a list of schemas, the
// rest by one.
func items(first []schema, rest schema) rule {
	return only(isArray, func(v bson.RawValue) bool {
		i := 0
		for it := bsonkit.Iterate(v.Value); it.Next(); i++ {
			s := rest
			if i < len(first) {
				s = first[i]
			}
			if !s.follows(it.Value()) {
				return false
			}
		}
		return true
	})
}

func uniqueItems(v bson.RawValue) bool {
	seen := map[string]bool{}
	for it := bsonkit.Iterate(v.Value); it.Next(); {
		key := string(bsonkit.AppendKey(nil, unordered(it.Value())))
		if seen[key] {
			return false
		}
		seen[key] = true
	}
	return true
}

// count is how many elements or fields a value has.
func count(v bson.RawValue) int64 {
	n := int64(0)
	for it := bsonkit.Iterate(v.Value); it.Next(); {
		n++
	}
	return n
}

func characters(v bson.RawValue) int64 { return int64(utf8.RuneCount(bsonkit.Text(v))) }

// combination is allOf, anyOf and oneOf: how many of the schemas must hold.
func combination(all []schema, least, most int) rule {
	return func(v bson.RawValue) bool {
		n := 0
		for _, s := range all {
			if s.follows(v) {
				n++
			}
		}
		return n >= least && n <= most
	}
}

// oneOfValues wants unordered values.
func oneOfValues(values []bson.RawValue) rule {
	return func(v bson.RawValue) bool { return bsonkit.Contains(values, unordered(v)) }
}

// unordered brings the fields of documents in the order of their names: schemas
// compare without regard to it.
func unordered(v bson.RawValue) bson.RawValue {
	switch v.Type {
	case bson.TypeArray:
		values := bsonkit.Values(v)
		for i := range values {
			values[i] = unordered(values[i])
		}
		return bsonkit.Array(values)
	case bson.TypeEmbeddedDocument:
		fields := map[string]bson.RawValue{}
		for it := bsonkit.Iterate(v.Value); it.Next(); {
			fields[string(it.Key())] = unordered(it.Value())
		}
		b := bsonkit.NewBuilder(nil)
		for _, name := range slices.Sorted(maps.Keys(fields)) {
			b.Append(name, fields[name])
		}
		return bsonkit.Document(b.Finish())
	}
	return v
}
