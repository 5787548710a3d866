package storage

import (
	"bytes"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/mongoerr"
)

// Specs lists a table's indexes, that on _id first.
func (t *Table) Specs() []IndexSpec {
	specs := make([]IndexSpec, len(t.Indexes))
	for i, ix := range t.Indexes {
		specs[i] = ix.Spec
	}
	return specs
}

// AddListed builds indexes from their shown specifications.
func (t *Table) AddListed(listed []bson.Raw) error {
	for _, doc := range listed {
		spec, err := NewIndexSpec(doc)
		if err != nil {
			return err
		}
		if err := t.AddIndex(spec); err != nil {
			return err
		}
	}
	return nil
}

// Adopt makes the same indexes on a table that has no documents yet.
func (t *Table) Adopt(indexes []*Index) error {
	for _, ix := range indexes {
		if err := t.AddIndex(ix.Spec); err != nil {
			return err
		}
	}
	return nil
}

// Conflicting compares a wanted index with those that are there: the same one
// is present; one of the same name or key that differs is refused.
func (t *Table) Conflicting(spec IndexSpec) (present bool, err error) {
	for _, ix := range t.Indexes {
		sameName := ix.Spec.Name == spec.Name
		sameKey := ix.Spec.sameFields(spec)
		switch {
		case ix.Spec.Name == IDIndexName && sameKey:
			return true, nil
		case sameName && !sameKey:
			return false, mongoerr.New(mongoerr.IndexKeySpecsConflict,
				"An existing index has the same name as the requested index. Requested index: %s, existing index: %s",
				spec.Listed, ix.Spec.Listed)
		case sameKey && !ix.Spec.sameOptions(spec):
			return false, mongoerr.New(mongoerr.IndexOptionsConflict,
				"An equivalent index already exists with the same name but different options. Requested index: %s, existing index: %s",
				spec.Listed, ix.Spec.Listed)
		case sameKey && !sameName:
			return false, mongoerr.New(mongoerr.IndexOptionsConflict,
				"Index with name: %s already exists with a different name", spec.Name)
		case sameKey:
			return true, nil
		}
	}
	return false, nil
}

func (s IndexSpec) sameFields(other IndexSpec) bool { return SameKey(s.Key(), other.Key()) }

func (s IndexSpec) sameOptions(other IndexSpec) bool {
	sameExpiry := (s.ExpireAfter == nil) == (other.ExpireAfter == nil) &&
		(s.ExpireAfter == nil || *s.ExpireAfter == *other.ExpireAfter)
	return sameExpiry && s.Unique == other.Unique && s.Sparse == other.Sparse &&
		bytes.Equal(s.PartialFilter, other.PartialFilter) && bytes.Equal(s.Collation.Spec(), other.Collation.Spec())
}

// EachUniqueKey calls visit with every key of a document in unique indexes.
func (t *Table) EachUniqueKey(doc bson.Raw, visit func(*Index, string) error) error {
	for _, ix := range t.Indexes {
		if !ix.Spec.Unique {
			continue
		}
		keys, _, err := ix.keysOf(0, doc)
		if err != nil {
			return err
		}
		for _, key := range keys {
			if err := visit(ix, key); err != nil {
				return err
			}
		}
	}
	return nil
}

// HasAll tells whether all of these indexes are there, each just so.
func (t *Table) HasAll(specs []IndexSpec) bool {
	return !slices.ContainsFunc(specs, func(spec IndexSpec) bool {
		present, err := t.Conflicting(spec)
		return err != nil || !present
	})
}
