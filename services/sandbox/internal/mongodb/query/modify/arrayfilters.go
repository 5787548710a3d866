package modify

import (
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
	"changerelay/services/sandbox/internal/mongodb/query/match"
)

// compileArrayFilters reads arrayFilters. Each is a filter on documents that
// have an element under the filter's name.
func compileArrayFilters(o Options) (map[string]*match.Filter, error) {
	filters := map[string]*match.Filter{}
	for _, spec := range o.ArrayFilters {
		compiled, err := match.Compile(spec, o.Env)
		if err != nil {
			return nil, err
		}
		name, err := arrayFilterName(spec, "")
		if err != nil {
			return nil, err
		}
		if name == "" {
			return nil, mongoerr.New(mongoerr.FailedToParse, "Cannot use an expression without a top-level field name in arrayFilters")
		}
		if !isArrayFilterName(name) {
			return nil, mongoerr.New(mongoerr.BadValue,
				"Error parsing array filter: The top-level field name must be an alphanumeric string beginning with a lowercase letter, found '%s'", name)
		}
		if filters[name] != nil {
			return nil, mongoerr.New(mongoerr.FailedToParse, "Found multiple array filters with the same top-level field name %s", name)
		}
		filters[name] = compiled
	}
	return filters, nil
}

// arrayFilterName is the one name under which all conditions of a filter stand.
func arrayFilterName(spec bson.Raw, name string) (string, error) {
	for it := bsonkit.Iterate(spec); it.Next(); {
		key := string(it.Key())
		if !strings.HasPrefix(key, "$") {
			first, _, _ := strings.Cut(key, ".")
			if name != "" && first != name {
				return "", mongoerr.New(mongoerr.FailedToParse,
					"Error parsing array filter: Expected a single top-level field name, found '%s' and '%s'", name, first)
			}
			name = first
			continue
		}
		for parts := bsonkit.Iterate(it.Value().Value); it.Value().Type == bson.TypeArray && parts.Next(); {
			var err error
			if name, err = arrayFilterName(parts.Value().Value, name); err != nil {
				return "", err
			}
		}
	}
	return name, nil
}

func isArrayFilterName(name string) bool {
	for i := range len(name) {
		c := name[i]
		lower, other := c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !lower && (i == 0 || !other) {
			return false
		}
	}
	return true
}

// matchesElement reports whether an array's element passes the filter of that
// name.
func (u *operatorUpdate) matchesElement(name string, element bson.RawValue) (bool, error) {
	if name == "" {
		return true, nil
	}
	b := bsonkit.NewBuilder(nil)
	b.Append(name, element)
	return u.filters[name].Match(b.Finish())
}
