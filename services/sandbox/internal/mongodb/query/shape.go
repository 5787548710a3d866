package query

import (
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
	"changerelay/services/sandbox/internal/mongodb/query/fieldpath"
)

// shape says what becomes of the fields of a document: the tree that
// projections, $addFields and $unset are made of.
type shape struct {
	names  []string // in the order of the specification
	fields map[string]*shapeField
}

type shapeField struct {
	// sub is set for a field that is gone into; else compute for one that gets
	// a new value; else the field is simply named.
	sub     *shape
	compute func(root bson.Raw) (bson.RawValue, error)
}

func newShape() *shape { return &shape{fields: map[string]*shapeField{}} }

// add puts a leaf at a path. Paths must not lie within each other.
func (s *shape) add(path string, leaf *shapeField) error {
	if err := fieldpath.Check(path); err != nil {
		return err
	}
	parts := strings.Split(path, ".")
	for i, part := range parts {
		f, ok := s.fields[part]
		last := i == len(parts)-1
		switch {
		case ok && last:
			return mongoerr.New(31250, "Path collision at %s", path)
		case ok && f.sub == nil:
			return mongoerr.New(31249, "Path collision at %s remaining portion %s", path, strings.Join(parts[i+1:], "."))
		case last:
			s.put(part, leaf)
			return nil
		case !ok:
			f = &shapeField{sub: newShape()}
			s.put(part, f)
		}
		s = f.sub
	}
	return nil
}

func (s *shape) put(name string, f *shapeField) {
	s.names = append(s.names, name)
	s.fields[name] = f
}

// computes reports whether there is a computed field here or below.
func (s *shape) computes() bool {
	for _, f := range s.fields {
		if f.compute != nil || f.sub != nil && f.sub.computes() {
			return true
		}
	}
	return false
}

// exclude leaves the named fields out.
func (s *shape) exclude(doc bson.Raw) bson.Raw {
	b := bsonkit.NewBuilder(make([]byte, 0, len(doc)))
	for it := bsonkit.Iterate(doc); it.Next(); {
		f, named := s.fields[string(it.Key())]
		switch {
		case !named:
			b.Append(string(it.Key()), it.Value())
		case f.sub != nil:
			b.Append(string(it.Key()), f.sub.excludeValue(it.Value()))
		}
	}
	return b.Finish()
}

func (s *shape) excludeValue(v bson.RawValue) bson.RawValue {
	switch v.Type {
	case bson.TypeEmbeddedDocument:
		return bsonkit.Document(s.exclude(v.Value))
	case bson.TypeArray:
		values := bsonkit.Values(v)
		for i := range values {
			values[i] = s.excludeValue(values[i])
		}
		return bsonkit.Array(values)
	}
	return v
}

// include keeps the named fields, in the document's order, and puts the computed
// ones behind them.
func (s *shape) include(doc, root bson.Raw) (bson.Raw, error) {
	b := bsonkit.NewBuilder(make([]byte, 0, len(doc)))
	var done map[string]bool
	for it := bsonkit.Iterate(doc); it.Next(); {
		f, named := s.fields[string(it.Key())]
		switch {
		case !named || f.compute != nil:
			continue
		case f.sub == nil:
			b.Append(string(it.Key()), it.Value())
			continue
		}
		v, err := f.sub.includeValue(it.Value(), root)
		if err != nil {
			return nil, err
		}
		b.Append(string(it.Key()), v)
		if done == nil {
			done = map[string]bool{}
		}
		done[string(it.Key())] = true
	}
	if err := s.appendComputed(b, root, done); err != nil {
		return nil, err
	}
	return b.Finish(), nil
}

// includeValue drops what is no document, unless something is computed there.
func (s *shape) includeValue(v bson.RawValue, root bson.Raw) (bson.RawValue, error) {
	switch v.Type {
	case bson.TypeEmbeddedDocument:
		doc, err := s.include(v.Value, root)
		return bsonkit.Document(doc), err
	case bson.TypeArray:
		return mapElements(v, func(w bson.RawValue) (bson.RawValue, error) { return s.includeValue(w, root) })
	}
	if !s.computes() {
		return bson.RawValue{}, nil
	}
	return s.computed(root)
}

// mapElements leaves out elements that become missing.
func mapElements(array bson.RawValue, f func(bson.RawValue) (bson.RawValue, error)) (bson.RawValue, error) {
	var made []bson.RawValue
	for it := bsonkit.Iterate(array.Value); it.Next(); {
		v, err := f(it.Value())
		if err != nil {
			return v, err
		}
		if v.Type != bsonkit.Missing {
			made = append(made, v)
		}
	}
	return bsonkit.Array(made), nil
}

// overlay keeps the document and puts the computed fields into it, in the place
// of those that are there and behind the others.
func (s *shape) overlay(doc, root bson.Raw) (bson.Raw, error) {
	b := bsonkit.NewBuilder(make([]byte, 0, len(doc)+64))
	done := make(map[string]bool, len(s.names))
	for it := bsonkit.Iterate(doc); it.Next(); {
		f, named := s.fields[string(it.Key())]
		if !named {
			b.Append(string(it.Key()), it.Value())
			continue
		}
		done[string(it.Key())] = true
		v, err := f.overlayValue(it.Value(), root)
		if err != nil {
			return nil, err
		}
		b.Append(string(it.Key()), v)
	}
	if err := s.appendComputed(b, root, done); err != nil {
		return nil, err
	}
	return b.Finish(), nil
}

func (f *shapeField) overlayValue(v bson.RawValue, root bson.Raw) (bson.RawValue, error) {
	switch {
	case f.compute != nil:
		return f.compute(root)
	case v.Type == bson.TypeEmbeddedDocument:
		doc, err := f.sub.overlay(v.Value, root)
		return bsonkit.Document(doc), err
	case v.Type == bson.TypeArray:
		return mapElements(v, func(w bson.RawValue) (bson.RawValue, error) { return f.overlayValue(w, root) })
	}
	return f.sub.computed(root)
}

// computed makes a document of nothing but the computed fields.
func (s *shape) computed(root bson.Raw) (bson.RawValue, error) {
	b := bsonkit.NewBuilder(nil)
	err := s.appendComputed(b, root, nil)
	return bsonkit.Document(b.Finish()), err
}

func (s *shape) appendComputed(b *bsonkit.Builder, root bson.Raw, done map[string]bool) error {
	for _, name := range s.names {
		f := s.fields[name]
		var v bson.RawValue
		var err error
		switch {
		case done[name]:
		case f.compute != nil:
			v, err = f.compute(root)
		case f.sub != nil && f.sub.computes():
			v, err = f.sub.computed(root)
		}
		if err != nil {
			return err
		}
		b.Append(name, v)
	}
	return nil
}
