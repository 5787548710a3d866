package match

import (
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/query/collation"
)

// All is fulfilled where all are; those that are nil always are. It is nil for
// none.
func All(filters ...*Filter) *Filter {
	filters = slices.DeleteFunc(slices.Clone(filters), func(f *Filter) bool { return f == nil })
	switch len(filters) {
	case 0:
		return nil
	case 1:
		return filters[0]
	}
	all := &Filter{}
	var roots allOf
	for _, f := range filters {
		roots = append(roots, f.root)
		all.equalities = append(all.equalities, f.equalities...)
	}
	all.root = roots
	return all
}

// In is {path: {$in: values}} in a collation, nil for none, with values that are
// taken as they are: a regular expression equals only itself.
func In(path string, values []bson.RawValue, by *collation.Collation) *Filter {
	m := &membership{}
	var test predicate = m
	for _, v := range values {
		m.null = m.null || v.Type == bson.TypeNull
		m.values = append(m.values, by.Fold(v))
		if by.Folds(v) {
			test = &collated{by: by, folded: m}
		}
	}
	root := &pathCondition{path: bsonkit.ParsePath(path), test: test}
	return &Filter{root: root, equalities: appendEqualities(nil, root)}
}
