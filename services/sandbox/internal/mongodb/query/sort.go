package query

import (
	"bytes"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
	"changerelay/services/sandbox/internal/mongodb/query/collation"
	"changerelay/services/sandbox/internal/mongodb/query/fieldpath"
)

// Sort is a compiled sort specification.
type Sort struct {
	fields    []SortField
	paths     []bsonkit.Path
	collation *collation.Collation
}

// SortField is one field of a sort.
type SortField struct {
	Path       string
	Descending bool
}

// CompileSort reads a sort specification. It returns nil for an empty one.
func CompileSort(spec bson.Raw) (*Sort, error) {
	s := &Sort{}
	for it := bsonkit.Iterate(spec); it.Next(); {
		field, err := sortField(string(it.Key()), it.Value())
		if err != nil {
			return nil, err
		}
		s.fields = append(s.fields, field)
		s.paths = append(s.paths, bsonkit.ParsePath(field.Path))
	}
	if len(s.fields) == 0 {
		return nil, nil
	}
	return s, nil
}

// sortByMeta refuses a sort by metadata: none of it is there.
func sortByMeta(v bson.RawValue) error {
	it := bsonkit.Iterate(v.Value)
	if !it.Next() || string(it.Key()) != "$meta" {
		return mongoerr.New(17312, "$meta is the only expression supported by $sort right now")
	}
	of := it.Value()
	if it.Next() {
		return mongoerr.New(mongoerr.FailedToParse, "Cannot have additional keys in a $meta sort specification")
	}
	switch name, _ := of.StringValueOK(); name {
	case "textScore":
		return mongoerr.New(40218, "query requires text score metadata, but it is not available")
	case "randVal":
		return mongoerr.New(mongoerr.NotImplemented, "a sort by $meta: \"randVal\" is not supported")
	case "searchScore":
		return mongoerr.New(31218, "$meta sort by 'searchScore' metadata is not supported")
	case "searchHighlights":
		return mongoerr.New(31219, "$meta sort by 'searchHighlights' metadata is not supported")
	}
	return mongoerr.New(31138, "Illegal $meta sort: $meta: %s", bsonkit.Describe(of))
}

func sortField(path string, v bson.RawValue) (SortField, error) {
	if err := fieldpath.Check(path); err != nil {
		return SortField{}, err
	}
	if v.Type == bson.TypeEmbeddedDocument {
		return SortField{}, sortByMeta(v)
	}
	if !bsonkit.IsNumber(v.Type) {
		return SortField{}, mongoerr.New(15974, "Illegal key in $sort specification: %s: %s", path, bsonkit.Describe(v))
	}
	direction, _ := bsonkit.WholeNumber(v)
	if direction != 1 && direction != -1 {
		return SortField{}, mongoerr.New(15975, "$sort key ordering must be 1 (for ascending) or -1 (for descending)")
	}
	return SortField{Path: path, Descending: direction < 0}, nil
}

// In is the same sort in the order of a collation.
func (s *Sort) In(c *collation.Collation) *Sort {
	if s == nil || c.IsSimple() {
		return s
	}
	return &Sort{fields: s.fields, paths: s.paths, collation: c}
}

// Collated tells a sort in another order than that of indexes.
func (s *Sort) Collated() bool { return s != nil && s.collation != nil }

// Fields are the fields in order of weight.
func (s *Sort) Fields() []SortField {
	if s == nil {
		return nil
	}
	return s.fields
}

// AppendKey appends a key for the document: bytes.Compare of keys gives the
// order of the documents. A document with arrays at fields of the sort has a
// compound key for each element, and counts with the first of them in the order
// of the sort. Fields within different arrays have none: that is an error.
func (s *Sort) AppendKey(dst []byte, doc bson.Raw) ([]byte, error) {
	if s == nil {
		return dst, nil
	}
	start := len(dst)
	for i, path := range s.paths {
		v, single := path.Single(doc)
		if !single {
			return s.appendLeast(dst[:start], doc)
		}
		dst = s.appendValue(dst, i, v)
	}
	return dst, nil
}

// appendLeast is AppendKey for a document with arrays.
func (s *Sort) appendLeast(dst []byte, doc bson.Raw) ([]byte, error) {
	paths := make([]string, len(s.fields))
	for i, f := range s.fields {
		paths[i] = f.Path
	}
	var least, key []byte
	_, parallel := bsonkit.CompoundKeys(doc, paths, func(values []bson.RawValue) {
		key = key[:0]
		for i, v := range values {
			key = s.appendValue(key, i, v)
		}
		if least == nil || bytes.Compare(key, least) < 0 {
			least, key = key, least
		}
	})
	if parallel {
		return nil, mongoerr.New(mongoerr.BadValue, "cannot sort with keys that are parallel arrays")
	}
	return append(dst, least...), nil
}

func (s *Sort) appendValue(dst []byte, i int, v bson.RawValue) []byte {
	v = s.collation.Fold(v)
	if s.fields[i].Descending {
		return bsonkit.AppendKeyDesc(dst, v)
	}
	return bsonkit.AppendKey(dst, v)
}

// CompareWhole orders two elements of an array by their fields as $push does: an
// array is a value like another, entered only by an index in a path.
func (s *Sort) CompareWhole(a, b bson.Raw) int {
	for _, f := range s.fields {
		c := s.collation.Compare(lookupWhole(a, f.Path), lookupWhole(b, f.Path))
		if c != 0 && f.Descending {
			return -c
		}
		if c != 0 {
			return c
		}
	}
	return 0
}

func lookupWhole(doc bson.Raw, path string) bson.RawValue {
	at := bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: doc}
	for part := range strings.SplitSeq(path, ".") {
		if at.Type != bson.TypeEmbeddedDocument && at.Type != bson.TypeArray {
			return bson.RawValue{}
		}
		at, _ = bsonkit.Get(at.Value, part)
	}
	return at
}
