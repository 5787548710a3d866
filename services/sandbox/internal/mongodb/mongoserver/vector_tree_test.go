package mongoserver_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// tree is a JSON value whose objects keep the order of their fields.
type tree struct {
	object []field
	array  []tree
	// scalar is set where object and array are nil.
	scalar any
}

type field struct {
	key   string
	value tree
}

func (t tree) isObject() bool { return t.object != nil }
func (t tree) isArray() bool  { return t.array != nil }

// get finds a field of an object.
func (t tree) get(key string) (tree, bool) {
	for _, f := range t.object {
		if f.key == key {
			return f.value, true
		}
	}
	return tree{}, false
}

// at follows a dotted path; -1 is the last element of an array.
func (t tree) at(path string) (tree, bool) {
	for part := range strings.SplitSeq(path, ".") {
		if t.isObject() {
			next, ok := t.get(part)
			if !ok {
				return tree{}, false
			}
			t = next
			continue
		}
		n, err := strconv.Atoi(part)
		if n < 0 {
			n += len(t.array)
		}
		if err != nil || n < 0 || n >= len(t.array) {
			return tree{}, false
		}
		t = t.array[n]
	}
	return t, true
}

func (t *tree) UnmarshalJSON(data []byte) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	parsed, err := readTree(d)
	*t = parsed
	return err
}

func readTree(d *json.Decoder) (tree, error) {
	token, err := d.Token()
	if err != nil {
		return tree{}, err
	}
	switch token {
	case json.Delim('{'):
		t := tree{object: []field{}}
		for d.More() {
			key, err := d.Token()
			if err != nil {
				return t, err
			}
			value, err := readTree(d)
			if err != nil {
				return t, err
			}
			t.object = append(t.object, field{key.(string), value})
		}
		_, err = d.Token()
		return t, err
	case json.Delim('['):
		t := tree{array: []tree{}}
		for d.More() {
			value, err := readTree(d)
			if err != nil {
				return t, err
			}
			t.array = append(t.array, value)
		}
		_, err = d.Token()
		return t, err
	}
	return tree{scalar: token}, nil
}

func (t tree) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	switch {
	case t.isObject():
		b.WriteByte('{')
		for i, f := range t.object {
			if i > 0 {
				b.WriteByte(',')
			}
			if err := writeJSON(&b, f.key); err != nil {
				return nil, err
			}
			b.WriteByte(':')
			if err := writeJSON(&b, f.value); err != nil {
				return nil, err
			}
		}
		b.WriteByte('}')
	case t.isArray():
		b.WriteByte('[')
		for i, element := range t.array {
			if i > 0 {
				b.WriteByte(',')
			}
			if err := writeJSON(&b, element); err != nil {
				return nil, err
			}
		}
		b.WriteByte(']')
	default:
		err := writeJSON(&b, t.scalar)
		return b.Bytes(), err
	}
	return b.Bytes(), nil
}

func writeJSON(b *bytes.Buffer, v any) error {
	text, err := json.Marshal(v)
	b.Write(text)
	return err
}

func (t tree) String() string {
	text, err := json.Marshal(t)
	if err != nil {
		return err.Error()
	}
	if len(text) > 600 {
		return string(text[:600]) + "…"
	}
	return string(text)
}

// treeOf turns a document into canonical extended JSON.
func treeOf(doc bson.Raw) (tree, error) {
	text, err := bson.MarshalExtJSON(doc, true, false)
	if err != nil {
		return tree{}, err
	}
	var t tree
	err = json.Unmarshal(text, &t)
	return t, err
}

// document turns extended JSON into a document.
func (t tree) document() (bson.Raw, error) {
	text, err := json.Marshal(t)
	if err != nil {
		return nil, err
	}
	var doc bson.D
	if err := bson.UnmarshalExtJSON(text, false, &doc); err != nil {
		return nil, fmt.Errorf("%s: %w", t, err)
	}
	return bson.Marshal(doc)
}

// rewrite replaces values from the inside out.
func (t tree) rewrite(change func(tree) (tree, error)) (tree, error) {
	var err error
	switch {
	case t.isObject():
		out := tree{object: make([]field, len(t.object))}
		for i, f := range t.object {
			if f.value, err = f.value.rewrite(change); err != nil {
				return t, err
			}
			out.object[i] = f
		}
		t = out
	case t.isArray():
		out := tree{array: make([]tree, len(t.array))}
		for i, element := range t.array {
			if out.array[i], err = element.rewrite(change); err != nil {
				return t, err
			}
		}
		t = out
	}
	return change(t)
}
