package query

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
	"changerelay/services/sandbox/internal/mongodb/query/expression"
	"changerelay/services/sandbox/internal/mongodb/query/match"
)

// Projection is a compiled projection of find or findAndModify, or a $project
// stage. A nil Projection shows everything.
type Projection struct {
	shape     *shape
	inclusive bool
	slices    []slicing
	// positional is the path of the operator $, and filter finds its element.
	positional []string
	filter     *match.Filter
}

// slicing is a $slice of find.
type slicing struct {
	parts []string
	at    []int64 // [n] or [skip, n], see expression.Slice
}

// Positional reports that the operator $ is in it.
func (p *Projection) Positional() bool { return p != nil && p.positional != nil }

// CompileProjection reads a projection. The filter is needed by the positional
// operator and may be nil. It returns nil for an empty projection.
func CompileProjection(spec bson.Raw, f *match.Filter, env expression.Env) (*Projection, error) {
	p := projectionParser{env: env, find: true, made: &Projection{shape: newShape(), filter: f}}
	if err := p.read(spec); err != nil {
		return nil, err
	}
	if p.empty {
		return nil, nil
	}
	return p.made, nil
}

// Apply returns what the projection shows of the document.
func (p *Projection) Apply(doc bson.Raw) (bson.Raw, error) {
	if p == nil {
		return doc, nil
	}
	shown := doc
	var err error
	if p.inclusive {
		shown, err = p.shape.include(doc, doc)
	} else if len(p.shape.names) > 0 {
		shown = p.shape.exclude(doc)
	}
	if err != nil {
		return nil, err
	}
	for _, s := range p.slices {
		shown, err = rewrite(shown, s.parts, func(v bson.RawValue) (bson.RawValue, error) {
			return bsonkit.Array(expression.Slice(bsonkit.Values(v), s.at)), nil
		})
		if err != nil {
			return nil, err
		}
	}
	if p.positional != nil {
		at := p.filter.Position(doc)
		return rewrite(shown, p.positional, func(v bson.RawValue) (bson.RawValue, error) { return onlyElement(v, at) })
	}
	return shown, nil
}

func onlyElement(array bson.RawValue, at int) (bson.RawValue, error) {
	if at < 0 {
		return array, mongoerr.New(51246, "positional operator '.$' couldn't find a matching element in the array")
	}
	values := bsonkit.Values(array)
	if at >= len(values) {
		return array, mongoerr.New(51247, "positional operator '.$' element mismatch")
	}
	return bsonkit.Array(values[at : at+1]), nil
}

// rewrite replaces the arrays at a path, also within the elements of arrays on
// the way to it.
func rewrite(doc bson.Raw, parts []string, f func(array bson.RawValue) (bson.RawValue, error)) (bson.Raw, error) {
	b := bsonkit.NewBuilder(make([]byte, 0, len(doc)))
	for it := bsonkit.Iterate(doc); it.Next(); {
		v := it.Value()
		if string(it.Key()) == parts[0] {
			var err error
			if v, err = rewriteValue(v, parts[1:], f); err != nil {
				return nil, err
			}
		}
		b.Append(string(it.Key()), v)
	}
	return b.Finish(), nil
}

func rewriteValue(v bson.RawValue, parts []string, f func(bson.RawValue) (bson.RawValue, error)) (bson.RawValue, error) {
	switch {
	case len(parts) == 0 && v.Type == bson.TypeArray:
		return f(v)
	case len(parts) == 0:
		return v, nil
	case v.Type == bson.TypeEmbeddedDocument:
		doc, err := rewrite(v.Value, parts, f)
		return bsonkit.Document(doc), err
	case v.Type == bson.TypeArray:
		return mapElements(v, func(w bson.RawValue) (bson.RawValue, error) {
			if w.Type != bson.TypeEmbeddedDocument {
				return w, nil
			}
			return rewriteValue(w, parts, f)
		})
	}
	return v, nil
}
