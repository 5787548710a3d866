package match

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
)

// All is fulfilled where all are; it is nil for none.
func All(filters ...*Filter) *Filter {
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

// In is {path: {$in: values}}, with values that are taken as they are: a
// regular expression equals only itself.
func In(path string, values []bson.RawValue) *Filter {
	m := &membership{values: values}
	for _, v := range values {
		m.null = m.null || v.Type == bson.TypeNull
	}
	root := &pathCondition{path: bsonkit.ParsePath(path), test: m}
	return &Filter{root: root, equalities: appendEqualities(nil, root)}
}
