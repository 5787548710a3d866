package storage

import (
	"encoding/binary"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/tidwall/btree"
	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
	"changerelay/services/sandbox/internal/mongodb/query/collation"
)

// IDIndexName is the name of the index that every collection has.
const IDIndexName = "_id_"

// IndexSpec says what an index is over.
type IndexSpec struct {
	Name   string
	Fields []IndexField
	Unique bool
	Sparse bool
	// Partial selects the documents that are in the index; nil means all.
	Partial Predicate
	// PartialFilter is the expression that Partial was made of.
	PartialFilter bson.Raw
	// ExpireAfter is the age in seconds, by the value of the indexed date, at
	// which a document is deleted; nil means never.
	ExpireAfter *int32
	// Collation is how the text of the keys compares. Such an index guards
	// uniqueness; statements do not read through it.
	Collation *collation.Collation
	// Hidden indexes are kept up to date and not read through.
	Hidden bool
	// Inert indexes are listed only, they hold no keys: text, wildcard, hashed
	// and geospatial.
	Inert bool
	// hashed tells those of the inert ones that take no arrays.
	hashed bool
	// Listed is the specification as listIndexes shows it.
	Listed bson.Raw
}

// IndexField is one field of an index.
type IndexField struct {
	Path       string
	Descending bool
}

// Predicate decides whether a document is selected.
type Predicate func(bson.Raw) (bool, error)

// KeyPattern is the index's key as users write it, e.g. {a: 1, b: -1}.
func (s IndexSpec) KeyPattern() bson.D {
	pattern := make(bson.D, len(s.Fields))
	for i, f := range s.Fields {
		pattern[i] = bson.E{Key: f.Path, Value: int32(1)}
		if f.Descending {
			pattern[i].Value = int32(-1)
		}
	}
	return pattern
}

// IDIndex is the index that every collection has.
func IDIndex() IndexSpec { return idIndexSpec() }

func idIndexSpec() IndexSpec {
	listed, err := bson.Marshal(bson.D{
		{Key: "v", Value: int32(2)},
		{Key: "key", Value: bson.D{{Key: "_id", Value: int32(1)}}},
		{Key: "name", Value: IDIndexName},
	})
	if err != nil {
		panic(err) // a constant document always marshals
	}
	spec, err := NewIndexSpec(listed)
	if err != nil {
		panic(err) // there is no filter to be wrong
	}
	return spec
}

// Index is an ordered map from keys to record ids. The key of a unique index
// is made of the field values; other indexes append the record id, so that
// equal values stand side by side in natural order.
type Index struct {
	Spec IndexSpec
	Keys *btree.Map[string, int64]
	// multikey tells that some document has, or had, an array at an indexed
	// path, and with it several keys.
	multikey bool
	// Uses counts the statements that have read through the index or one of its
	// snapshots.
	Uses *atomic.Int64
}

func newIndex(spec IndexSpec) *Index {
	return &Index{Spec: spec, Keys: new(btree.Map[string, int64]), Uses: new(atomic.Int64)}
}

func (ix *Index) snapshot() *Index {
	return &Index{Spec: ix.Spec, Keys: ix.Keys.IsoCopy(), multikey: ix.multikey, Uses: ix.Uses}
}

// add puts a document's keys into the index. It changes nothing when it returns
// an error.
func (ix *Index) add(id int64, doc bson.Raw) error {
	keys, multikey, err := ix.keysOf(id, doc)
	if err != nil {
		return err
	}
	for i, key := range keys {
		if holder, taken := ix.Keys.Set(key, id); taken && holder != id {
			ix.Keys.Set(key, holder)
			for _, done := range keys[:i] {
				ix.Keys.Delete(done)
			}
			return ix.duplicate(doc, key)
		}
	}
	ix.multikey = ix.multikey || multikey
	return nil
}

func (ix *Index) remove(id int64, doc bson.Raw) {
	// A document in the index has given its keys before: it can again.
	keys, _, _ := ix.keysOf(id, doc)
	for _, key := range keys {
		ix.Keys.Delete(key)
	}
}

// move exchanges the keys of one version of a document for those of another.
// It changes nothing when it returns an error.
func (ix *Index) move(id int64, before, after bson.Raw) error {
	if ix.unchanged(before, after) {
		return nil
	}
	ix.remove(id, before)
	if err := ix.add(id, after); err != nil {
		_ = ix.add(id, before) // its keys are free: they were just taken out
		return err
	}
	return nil
}

// unchanged reports cheaply that both versions have the same keys; it may miss
// that they do.
func (ix *Index) unchanged(before, after bson.Raw) bool {
	if ix.Spec.Partial != nil {
		return false
	}
	for _, f := range ix.Spec.Fields {
		a, _ := bsonkit.Lookup(before, f.Path)
		b, _ := bsonkit.Lookup(after, f.Path)
		if a.Type != b.Type || !slices.Equal(a.Value, b.Value) {
			return false
		}
		if a.Type == bsonkit.Missing && !isTopLevel(f.Path) {
			return false // it may lie inside an array, where Lookup does not go
		}
	}
	return true
}

// keysOf gives the keys under which a document stands in the index, each once
// and in order.
func (ix *Index) keysOf(id int64, doc bson.Raw) (keys []string, multikey bool, err error) {
	if ix.Spec.Inert {
		return nil, false, ix.Spec.unhashable(doc)
	}
	if ix.Spec.Partial != nil {
		if in, err := ix.Spec.Partial(doc); err != nil || !in {
			return nil, false, err
		}
	}
	var buffer [128]byte
	multikey, err = eachKey(ix.Spec.Fields, doc, func(values []bson.RawValue) {
		if ix.Spec.Sparse && allMissing(values) {
			return
		}
		keys = append(keys, string(ix.appendKey(buffer[:0], id, values)))
	})
	slices.Sort(keys)
	return slices.Compact(keys), multikey, err
}

// unhashable refuses a document with an array on a path of a hashed index.
func (s IndexSpec) unhashable(doc bson.Raw) error {
	if !s.hashed {
		return nil
	}
	for _, field := range s.Fields {
		if throughArray(doc, field.Path) {
			return mongoerr.New(16766, "hashed indexes do not currently support array values. Found array at path: %s", field.Path)
		}
	}
	return nil
}

// throughArray reports that a path meets an array, at its end or on its way.
func throughArray(doc bson.Raw, path string) bool {
	for {
		part, rest, more := strings.Cut(path, ".")
		v, _ := bsonkit.Get(doc, part)
		if v.Type == bson.TypeArray || !more || v.Type != bson.TypeEmbeddedDocument {
			return v.Type == bson.TypeArray
		}
		doc, path = v.Value, rest
	}
}

func (ix *Index) appendKey(dst []byte, id int64, values []bson.RawValue) []byte {
	for i, f := range ix.Spec.Fields {
		dst = f.appendKey(dst, ix.Spec.Collation.Fold(values[i]))
	}
	if !ix.Spec.Unique {
		dst = binary.BigEndian.AppendUint64(dst, uint64(id))
	}
	return dst
}

func (f IndexField) appendKey(dst []byte, v bson.RawValue) []byte {
	if f.Descending {
		return bsonkit.AppendKeyDesc(dst, v)
	}
	return bsonkit.AppendKey(dst, v)
}

func allMissing(values []bson.RawValue) bool {
	for _, v := range values {
		if v.Type != bsonkit.Missing {
			return false
		}
	}
	return true
}

// duplicate makes the error of a document whose key is taken.
func (ix *Index) duplicate(doc bson.Raw, key string) error {
	value := bson.D{}
	_, _ = eachKey(ix.Spec.Fields, doc, func(values []bson.RawValue) {
		if len(value) > 0 || string(ix.appendKey(nil, 0, values)) != key {
			return
		}
		for i, f := range ix.Spec.Fields {
			v := any(values[i])
			if values[i].Type == bsonkit.Missing {
				v = nil
			}
			value = append(value, bson.E{Key: f.Path, Value: v})
		}
	})
	return mongoerr.New(mongoerr.DuplicateKey, "index: %s dup key: %s", ix.Spec.Name, bsonkit.DescribeFields(value)).
		WithExtra("keyPattern", ix.Spec.KeyPattern()).WithExtra("keyValue", value)
}
