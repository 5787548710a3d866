package storage

import (
	"bytes"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
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
// is present. Refused are one of a name that is taken, and one of a key and a
// collation that another name has.
func (t *Table) Conflicting(spec IndexSpec) (present bool, err error) {
	if ix := t.IndexNamed(spec.Name); ix != nil {
		return sameName(ix.Spec, spec)
	}
	for _, ix := range t.Indexes {
		switch {
		case !ix.Spec.equivalent(spec):
		case ix.Spec.Name == IDIndexName:
			return true, nil
		case !ix.Spec.sameOptions(spec):
			return false, mongoerr.New(mongoerr.IndexOptionsConflict,
				"An equivalent index already exists with a different name and options. Requested index: %s, existing index: %s",
				spec, ix.Spec)
		default:
			return false, mongoerr.New(mongoerr.IndexOptionsConflict, "Index already exists with a different name: %s", ix.Spec.Name)
		}
	}
	return false, nil
}

func sameName(existing, spec IndexSpec) (present bool, err error) {
	switch {
	case existing.Name == IDIndexName && existing.sameFields(spec):
	case !existing.equivalent(spec):
		return false, mongoerr.New(mongoerr.IndexKeySpecsConflict,
			"An existing index has the same name as the requested index. When index names are not specified, they are "+
				"auto generated and can cause conflicts. Please refer to our documentation. Requested index: %s, existing index: %s",
			spec, existing)
	case !existing.sameOptions(spec):
		return false, mongoerr.New(mongoerr.IndexOptionsConflict,
			"An equivalent index already exists with the same name but different options. Requested index: %s, existing index: %s",
			spec, existing)
	}
	return true, nil
}

// String is the index as texts of errors show it.
func (s IndexSpec) String() string { return bsonkit.Describe(bsonkit.Document(s.Listed)) }

// equivalent reports that two indexes cannot be side by side.
func (s IndexSpec) equivalent(other IndexSpec) bool {
	return s.sameFields(other) && bytes.Equal(s.Collation.Spec(), other.Collation.Spec())
}

func (s IndexSpec) sameFields(other IndexSpec) bool { return SameKey(s.Key(), other.Key()) }

func (s IndexSpec) sameOptions(other IndexSpec) bool {
	sameExpiry := (s.ExpireAfter == nil) == (other.ExpireAfter == nil) &&
		(s.ExpireAfter == nil || *s.ExpireAfter == *other.ExpireAfter)
	return sameExpiry && s.Unique == other.Unique && s.Sparse == other.Sparse &&
		bytes.Equal(s.PartialFilter, other.PartialFilter)
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
