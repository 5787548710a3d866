package projection

import (
	"fmt"
	"maps"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// declared is a projection from a file.
type declared struct {
	name       string
	collection string
	rules      map[string]*rule // by event type
	// key makes the document's key, where keyed; else it is the aggregate's id.
	key   value
	keyed bool
	// version is 0 for a projection that has none.
	version int
	// source is what the file says of it.
	source string
}

var _ Projection = (*declared)(nil)

// rule is what one type of event does to the document.
type rule struct {
	delete   bool
	sections []section
}

// section is one operator with its fields.
type section struct {
	name     string // of the operator, as the file has it
	operator string // as MongoDB names it
	fields   []field
}

type field struct {
	path    string
	operand value
	// last bounds a pushed array; 0 does not.
	last int
}

// Name implements Projection.
func (p *declared) Name() string { return ofVersion(p.name, p.version) }

// Collections implements Projection.
func (p *declared) Collections() []string { return []string{p.place()} }

// place is the collection that is written.
func (p *declared) place() string { return ofVersion(p.collection, p.version) }

// Version implements Versioned.
func (p *declared) Version() (Version, bool) {
	return Version{Projection: p.name, View: p.collection, Number: p.version}, p.version > 0
}

// Keyed tells whether the documents have another key than the aggregate's id.
func (p *declared) Keyed() bool { return p.keyed }

// Types are the event types that the projection follows, sorted.
func (p *declared) Types() []string { return slices.Sorted(maps.Keys(p.rules)) }

// Decide implements Projection.
func (p *declared) Decide(c *Change) ([]Write, error) {
	r, follows := p.rules[c.Type]
	switch {
	case !follows && p.version > 0:
		// How far a version has come must show when it is to be switched to.
		return []Write{{Projection: p.Name(), Keyed: true, Passed: true, Event: &c.Event}}, nil
	case !follows:
		return nil, nil
	}
	w := Write{Projection: p.Name(), Collection: p.place(), ID: c.AggregateID, Event: &c.Event, Delete: r.delete, Keyed: p.keyed}
	if p.keyed {
		key, err := p.documentKey(c)
		if err != nil {
			return nil, fmt.Errorf("key: %w", err)
		}
		w.ID = key
	}
	for _, s := range r.sections {
		operands := make(bson.D, 0, len(s.fields))
		for _, f := range s.fields {
			operand, err := s.operand(f, c)
			if err != nil {
				return nil, fmt.Errorf("%s %q: %w", s.name, f.path, err)
			}
			operands = append(operands, bson.E{Key: f.path, Value: operand})
		}
		w.Update = append(w.Update, bson.E{Key: s.operator, Value: operands})
	}
	return []Write{w}, nil
}

// documentKey is the key of the document that the change is about.
func (p *declared) documentKey(c *Change) (any, error) {
	key, err := p.key.of(c)
	if err != nil {
		return nil, err
	}
	switch key.(type) {
	case string, int, int32, int64, bson.ObjectID:
		return key, nil
	}
	return nil, fmt.Errorf("the value is of type %T, not a string, a whole number or an object id", key)
}

// operand is what stands behind one field of one operator.
func (s section) operand(f field, c *Change) (any, error) {
	v, err := f.operand.of(c)
	if err != nil {
		return nil, err
	}
	if s.operator == "$inc" && !isNumber(v) {
		return nil, fmt.Errorf("the value is of type %T, not a number", v)
	}
	switch s.operator {
	case "$push", "$addToSet":
		// In a form of its own, so that data with fields such as $each stays data.
		operand := bson.D{{Key: "$each", Value: bson.A{v}}}
		if f.last > 0 {
			operand = append(operand, bson.E{Key: "$slice", Value: -f.last})
		}
		return operand, nil
	case "$pullAll":
		return bson.A{v}, nil
	}
	return v, nil
}

func isNumber(v any) bool {
	switch v.(type) {
	case int, int32, int64, float64, bson.Decimal128:
		return true
	}
	return false
}
