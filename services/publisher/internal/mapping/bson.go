package mapping

import (
	"encoding/binary"
	"errors"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/pkg/contract"
)

// errNotInJSON is data that a reader of Extended JSON would take for something
// else, or not read at all.
var errNotInJSON = errors.New("cannot be written in Extended JSON")

// inJSONOrBSON is data in JSON, or in BSON where only that can be read back.
func inJSONOrBSON(inJSON, inBSON func() ([]byte, error)) (data []byte, contentType string, err error) {
	data, err = inJSON()
	if !errors.Is(err, errNotInJSON) {
		return data, contract.ContentTypeJSON, err
	}
	data, err = inBSON()
	return data, contract.ContentTypeBSON, err
}

// ambiguous tells whether a field's name is kept for types in Extended JSON,
// where a document with it may be read as a value of such a type. Those of a
// DBRef are not: a DBRef is a document in both.
func ambiguous(name []byte) bool {
	if len(name) == 0 || name[0] != '$' {
		return false
	}
	switch string(name) {
	case "$ref", "$id", "$db":
		return false
	}
	return true
}

// appendBSON appends a document without what hidden names; nil names nothing.
func appendBSON(to, document []byte, hidden *rule) ([]byte, error) {
	return appendElements(to, document, func(key []byte) *rule { return hidden.field(key) }, 0)
}

// appendElements appends a document or an array; of gives the rule of an element.
func appendElements(to, document []byte, of func(key []byte) *rule, depth int) ([]byte, error) {
	if depth > maxDepth {
		return nil, errTooDeep
	}
	begin := len(to)
	to = append(to, 0, 0, 0, 0) // the length
	e := walk(document)
	for e.next() {
		hidden := of(e.key)
		if hidden.drops() {
			continue
		}
		at := len(to)
		to = append(append(append(to, byte(e.kind)), e.key...), 0)
		var err error
		switch {
		case hidden.masks():
			to[at] = byte(bson.TypeString)
			to = append(append(binary.LittleEndian.AppendUint32(to, uint32(len(maskedText)+1)), maskedText...), 0)
		case e.kind == bson.TypeEmbeddedDocument:
			to, err = appendElements(to, e.data, func(key []byte) *rule { return hidden.field(key) }, depth+1)
		case e.kind == bson.TypeArray:
			to, err = appendElements(to, e.data, func([]byte) *rule { return hidden }, depth+1)
		default:
			to = append(to, e.data...)
		}
		if err != nil {
			return nil, err
		}
	}
	to = append(to, 0)
	binary.LittleEndian.PutUint32(to[begin:], uint32(len(to)-begin))
	return to, e.err
}

// inBSON is the envelope of a change in BSON, with the fields that it has in JSON.
func (c *change) inBSON(hidden *rule) ([]byte, error) {
	var envelope bson.D
	add := func(name string, kind bson.Type, document []byte, of func(key []byte) *rule) error {
		data, err := appendElements(nil, document, of, 1)
		if err == nil && (kind == bson.TypeEmbeddedDocument || len(data) > emptyLength) {
			envelope = append(envelope, bson.E{Key: name, Value: bson.RawValue{Type: kind, Value: data}})
		}
		return err
	}
	whole := func(key []byte) *rule { return hidden.field(key) }
	if c.document != nil {
		if err := add("document", bson.TypeEmbeddedDocument, c.document, whole); err != nil {
			return nil, err
		}
	}
	if c.description != nil {
		e := walk(c.description)
		for e.next() {
			var err error
			switch {
			case e.kind == bson.TypeEmbeddedDocument && string(e.key) == "updatedFields":
				err = add("changed", bson.TypeEmbeddedDocument, e.data, func(path []byte) *rule { return hidden.underDotted(string(path)) })
			case e.kind == bson.TypeArray && string(e.key) == "removedFields":
				err = add("removed", bson.TypeArray, e.data, hiddenPaths(e.data, hidden, removedPath))
			case e.kind == bson.TypeArray && string(e.key) == "truncatedArrays":
				err = add("truncated", bson.TypeArray, e.data, hiddenPaths(e.data, hidden, truncatedPath))
			}
			if err != nil {
				return nil, err
			}
		}
		if e.err != nil {
			return nil, e.err
		}
	}
	if c.before != nil {
		if err := add("before", bson.TypeEmbeddedDocument, c.before, whole); err != nil {
			return nil, err
		}
	}
	return bson.Marshal(envelope)
}

// emptyLength is the length of an empty array.
const emptyLength = 5

// hiddenPaths drops the elements of an array whose path, which pathOf gives, is
// dropped, and those that have none.
func hiddenPaths(array []byte, hidden *rule, pathOf func(value) (value, bool)) func(key []byte) *rule {
	shown := map[string]bool{}
	for e := walk(array); e.next(); {
		path, ok := pathOf(e.value)
		shown[string(e.key)] = ok && !hidden.underDotted(string(path.text())).drops()
	}
	return func(key []byte) *rule {
		if shown[string(key)] {
			return nil
		}
		return &rule{verdict: dropped}
	}
}
