package projection

import (
	"fmt"
	"maps"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/projector/internal/expression"
)

// declared is a projection from a file.
type declared struct {
	frame
	rules map[string]*rule // by event type
	// key makes the document's key, where keyed; else it is the aggregate's id.
	key value
	// keys is the key as the file has it.
	keys string
	// source is what the file says of it, but for onError.
	source string
}

var (
	_ Projection = (*declared)(nil)
	_ Renumbered = (*declared)(nil)
	_ described  = (*declared)(nil)
)

// rule is what one type of event does to the document.
type rule struct {
	// forEach is a list whose elements each change a document; the zero value where
	// the event changes one.
	forEach value
	// when it does not hold, the rule does nothing.
	when     condition
	delete   bool
	sections []section
}

// usesState tells whether what the rule does depends on the document as it is.
func (r *rule) usesState() bool {
	if r.when.usesState() {
		return true
	}
	for _, s := range r.sections {
		for _, f := range s.fields {
			if f.operand.usesState() || f.when.usesState() {
				return true
			}
		}
	}
	return false
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
	// when it does not hold, the field is left as it is.
	when condition
	// each: the operand is a list, whose elements are what is pushed, added or pulled.
	each bool
	// last bounds a pushed array; 0 does not.
	last int
}

// Renumbered implements Renumbered.
func (p *declared) Renumbered(number int) Projection {
	again := *p
	again.version = number
	return &again
}

// Types are the event types that the projection follows, sorted.
func (p *declared) Types() []string { return slices.Sorted(maps.Keys(p.rules)) }

// keyText is the key as the file has it.
func (p *declared) keyText() string { return p.keys }

// says is what the file says of the projection.
func (p *declared) says() string { return p.source }

// Decide implements Projection.
func (p *declared) Decide(c *Change) ([]Write, error) {
	r, follows := p.rules[c.Type]
	if !follows {
		return p.passed(c, nil), nil
	}
	if r.forEach.program != nil {
		return p.forEach(r, c)
	}
	if !r.usesState() {
		w, err := p.write(r, environment{change: c})
		if err != nil {
			return nil, err
		}
		if w.Kept {
			return p.passed(c, &w), nil
		}
		return []Write{w}, nil
	}
	w := p.blank(c)
	w.Complete = func(document bson.Raw) (Write, error) {
		w, err := p.write(r, environment{change: c, state: document})
		if err != nil {
			return Write{}, about(p, c, err)
		}
		return w, nil
	}
	return p.passed(c, &w), nil
}

// maxElements is how many elements of one event may change a document each: they do so
// in one transaction.
const maxElements = 1000

// forEach makes a write for each element of a list. The position that guards them all
// is that of the aggregate, so an event is applied with all of its elements or not at
// all. They share the bounds of one evaluation.
func (p *declared) forEach(r *rule, c *Change) ([]Write, error) {
	env := environment{change: c, spent: &expression.Spent{}}
	list, err := r.forEach.of(env)
	if err != nil {
		return nil, fmt.Errorf("forEach: %w", err)
	}
	items, err := elements(list)
	if err != nil {
		return nil, fmt.Errorf("forEach: %w", err)
	}
	if len(items) > maxElements {
		return nil, fmt.Errorf("forEach: the list has %d elements, and one event may have at most %d", len(items), maxElements)
	}
	var writes []Write
	for i := range items {
		env.item = items[i]
		w, err := p.write(r, env)
		if err != nil {
			return nil, fmt.Errorf("forEach, element %d: %w", i, err)
		}
		if !w.Kept {
			writes = append(writes, w)
		}
	}
	if len(writes) == 0 {
		blank := p.blank(c)
		return p.passed(c, &blank), nil
	}
	return writes, nil
}

// write is what a rule makes of what is seen.
func (p *declared) write(r *rule, env environment) (Write, error) {
	w := p.blank(env.change)
	holds, err := r.when.holds(env)
	if err != nil {
		return Write{}, err
	}
	if !holds {
		w.Kept = true
		return w, nil
	}
	if p.keyed {
		if w.ID, err = p.documentKey(env); err != nil {
			return Write{}, fmt.Errorf("key: %w", err)
		}
	}
	for _, section := range r.sections {
		operands, err := section.operands(env)
		if err != nil {
			return Write{}, err
		}
		if len(operands) > 0 {
			w.Update = append(w.Update, bson.E{Key: section.operator, Value: operands})
		}
	}
	w.Delete = r.delete
	w.Kept = !r.delete && len(w.Update) == 0
	return w, nil
}

// documentKey is the key of the document that the change is about.
func (p *declared) documentKey(env environment) (any, error) {
	key, err := p.key.of(env)
	if err != nil {
		return nil, err
	}
	switch key.(type) {
	case string, int, int32, int64, bson.ObjectID:
		return key, nil
	}
	return nil, fmt.Errorf("the value is of type %T, not a string, a whole number or an object id", key)
}

// operands are what stands behind the operator, of those fields whose conditions hold.
func (o section) operands(env environment) (bson.D, error) {
	operands := make(bson.D, 0, len(o.fields))
	for _, f := range o.fields {
		holds, err := f.when.holds(env)
		var operand any
		if err == nil && holds {
			operand, err = o.operand(f, env)
		}
		if err != nil {
			return nil, fmt.Errorf("%s %q: %w", o.name, f.path, err)
		}
		if holds {
			operands = append(operands, bson.E{Key: f.path, Value: operand})
		}
	}
	return operands, nil
}

// operand is what stands behind one field of the operator.
func (o section) operand(f field, env environment) (any, error) {
	v, err := f.operand.of(env)
	if err != nil {
		return nil, err
	}
	if o.operator == "$inc" && !isNumber(v) {
		return nil, fmt.Errorf("the value is of type %T, not a number", v)
	}
	all := bson.A{v}
	if f.each {
		list, err := elements(v)
		if err != nil {
			return nil, err
		}
		all = make(bson.A, len(list))
		for i := range list {
			all[i] = list[i]
		}
	}
	switch o.operator {
	case "$push", "$addToSet":
		// In a form of its own, so that data with fields such as $each stays data.
		operand := bson.D{{Key: "$each", Value: all}}
		if f.last > 0 {
			operand = append(operand, bson.E{Key: "$slice", Value: -f.last})
		}
		return operand, nil
	case "$pullAll":
		return all, nil
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
