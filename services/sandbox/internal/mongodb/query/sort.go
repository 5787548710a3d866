package query

import (
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

// Compare orders two documents; a nil Sort finds all equal. A field that is an
// array counts with its least element in an ascending sort and with its
// greatest in a descending one.
func (s *Sort) Compare(a, b bson.Raw) int {
	if s == nil {
		return 0
	}
	for i, f := range s.fields {
		c := bsonkit.Compare(s.value(i, a), s.value(i, b))
		if c != 0 && f.Descending {
			return -c
		}
		if c != 0 {
			return c
		}
	}
	return 0
}

// AppendKey appends a key for the document: bytes.Compare of keys is Compare of
// documents. Sorting many documents by key reads each only once.
func (s *Sort) AppendKey(dst []byte, doc bson.Raw) []byte {
	if s == nil {
		return dst
	}
	for i, f := range s.fields {
		if f.Descending {
			dst = bsonkit.AppendKeyDesc(dst, s.value(i, doc))
		} else {
			dst = bsonkit.AppendKey(dst, s.value(i, doc))
		}
	}
	return dst
}

func (s *Sort) value(i int, doc bson.Raw) bson.RawValue {
	if v, ok := s.paths[i].Single(doc); ok {
		return s.collation.Fold(v)
	}
	values, _ := bsonkit.AppendIndexValues(nil, doc, s.paths[i])
	best := s.collation.Fold(values[0])
	for _, v := range values[1:] {
		v = s.collation.Fold(v)
		if c := bsonkit.Compare(v, best); c != 0 && (c > 0) == s.fields[i].Descending {
			best = v
		}
	}
	return best
}
