package engine

import (
	"bytes"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
	"changerelay/services/sandbox/internal/mongodb/query/modify"
)

// PrepareInsert turns a document as it came from a client into one that can be
// stored: with an _id, in the first place, empty timestamps at the top filled
// in, and in memory of its own. It refuses documents that cannot be stored.
func (e *Engine) PrepareInsert(doc bson.Raw) (bson.Raw, error) {
	stored, emptyTimestamp, err := prepareInsert(doc)
	if emptyTimestamp {
		e.fillTimestamps(stored)
	}
	return stored, err
}

// PrepareReplacement gives the document of an update without operators, with
// empty timestamps at the top filled in.
func (e *Engine) PrepareReplacement(doc bson.Raw) bson.Raw {
	if _, _, emptyTimestamp, err := inspect(doc); err != nil || !emptyTimestamp {
		return doc
	}
	filled := bytes.Clone(doc)
	e.fillTimestamps(filled)
	return filled
}

// prepareInsert is PrepareInsert but for the timestamps.
func prepareInsert(doc bson.Raw) (_ bson.Raw, emptyTimestamp bool, _ error) {
	if len(doc) > bsonkit.MaxDocument {
		return nil, false, mongoerr.New(mongoerr.BadValue,
			"object to insert too large. size in bytes: %d, max size: %d", len(doc), bsonkit.MaxDocument)
	}
	if err := checkDepth(doc, 1); err != nil {
		return nil, false, err
	}
	id, hasID, emptyTimestamp, err := inspect(doc)
	if err != nil {
		return nil, false, err
	}
	if !hasID {
		oid := bson.NewObjectID()
		id = bson.RawValue{Type: bson.TypeObjectID, Value: oid[:]}
	}
	stored := appendWithID(make([]byte, 0, len(doc)+extraForID(hasID, id)), id, doc)
	if len(stored) > bsonkit.MaxDocument {
		return nil, false, mongoerr.New(mongoerr.BadValue,
			"object to insert too large. size in bytes: %d, max size: %d", len(stored), bsonkit.MaxDocument)
	}
	return stored, emptyTimestamp, nil
}

// levelBytes is the least that a document within another takes: its type, the end
// of its name, its length and its end.
const levelBytes = 1 + 1 + 4 + 1

// checkDepth refuses a document at a depth that nests deeper than one may be
// stored.
func checkDepth(doc []byte, depth int) error {
	switch {
	case len(doc) < (modify.MaxStoredDepth+1-depth)*levelBytes:
		return nil
	case depth > modify.MaxStoredDepth:
		return mongoerr.New(mongoerr.Overflow, "cannot insert document because it exceeds %d levels of nesting", modify.MaxStoredDepth)
	}
	for it := bsonkit.Iterate(doc); it.Next(); {
		if v := it.Value(); v.Type == bson.TypeEmbeddedDocument || v.Type == bson.TypeArray {
			if err := checkDepth(v.Value, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

// inspect looks at the top level of a document that is to be inserted.
func inspect(doc bson.Raw) (id bson.RawValue, hasID, emptyTimestamp bool, err error) {
	for it := bsonkit.Iterate(doc); it.Next(); {
		value := it.Value()
		name := it.Key()
		switch {
		case string(name) == "_id":
			if hasID {
				return id, hasID, false, mongoerr.New(mongoerr.BadValue, "can't have multiple _id fields in one document")
			}
			if err := validID(value); err != nil {
				return id, hasID, false, err
			}
			id, hasID = value, true
		case len(name) > 0 && name[0] == '$':
			return id, hasID, false, mongoerr.New(mongoerr.BadValue,
				"Document can't have $ prefixed field names: %s", name)
		case value.Type == bson.TypeTimestamp:
			emptyTimestamp = emptyTimestamp || isZero(value.Value)
		}
	}
	return id, hasID, emptyTimestamp, nil
}

// validID refuses types that an _id cannot have.
func validID(id bson.RawValue) error {
	switch id.Type {
	case bson.TypeArray:
		return mongoerr.New(mongoerr.BadValue, "can't use an array for _id")
	case bson.TypeRegex:
		return mongoerr.New(mongoerr.BadValue, "can't use a regex for _id")
	case bson.TypeUndefined:
		return mongoerr.New(mongoerr.BadValue, "can't use a undefined for _id")
	case bson.TypeEmbeddedDocument:
		for it := bsonkit.Iterate(id.Value); it.Next(); {
			if strings.HasPrefix(string(it.Key()), "$") {
				return mongoerr.New(mongoerr.DollarPrefixedFieldName,
					"The dollar ($) prefixed field '%s' in '_id' is not valid for storage.", it.Key())
			}
		}
	}
	return nil
}

func extraForID(hasID bool, id bson.RawValue) int {
	if hasID {
		return 0
	}
	return len(id.Value) + len("_id") + 2
}

// appendWithID appends the document with its _id in the first place.
func appendWithID(dst []byte, id bson.RawValue, doc bson.Raw) bson.Raw {
	if len(doc) > 9 && string(doc[5:9]) == "_id\x00" {
		return append(dst, doc...)
	}
	dst = append(dst, 0, 0, 0, 0, byte(id.Type), '_', 'i', 'd', 0)
	dst = append(dst, id.Value...)
	for it := bsonkit.Iterate(doc); it.Next(); {
		if string(it.Key()) == "_id" {
			continue
		}
		dst = append(dst, byte(it.Value().Type))
		dst = append(append(dst, it.Key()...), 0)
		dst = append(dst, it.Value().Value...)
	}
	dst = append(dst, 0)
	putLength(dst)
	return dst
}

// putLength writes the length of a document into its first four bytes.
func putLength(doc []byte) {
	n := len(doc)
	doc[0], doc[1], doc[2], doc[3] = byte(n), byte(n>>8), byte(n>>16), byte(n>>24)
}

// fillTimestamps replaces empty timestamps at the top level by the cluster
// time, but for the _id. It takes mu.
func (e *Engine) fillTimestamps(doc bson.Raw) {
	e.mu.Lock()
	now := e.tick()
	e.mu.Unlock()
	for it := bsonkit.Iterate(doc); it.Next(); {
		if v := it.Value(); v.Type == bson.TypeTimestamp && isZero(v.Value) && string(it.Key()) != "_id" {
			for i := range 8 {
				v.Value[i] = byte(now >> (8 * i))
			}
		}
	}
}

func isZero(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}
