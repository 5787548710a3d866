package projection

import (
	"errors"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/projector/internal/expression"
)

// ErrInterrupted means that a decision was stopped from outside: nothing is said
// about the event.
var ErrInterrupted = expression.ErrInterrupted

// look is what expressions see of the change, made once.
func (c *Change) look() map[string]any {
	if c.view == nil {
		event := expression.Event{
			ID: c.ID, Type: c.Type, AggregateID: c.AggregateID,
			Operation: string(c.Operation), Sequence: string(c.Sequence),
		}
		if c.Version.Known {
			event.Version = c.Version.Number
		}
		if !c.Time.IsZero() {
			event.Time = c.Time
		}
		c.view = event.View()
	}
	return c.view
}

// value is an operand of an operator: a literal, or an expression.
type value struct {
	literal any
	program *expression.Program
}

// compile checks and compiles an expression.
func compile(source string, scope expression.Scope) (value, error) {
	program, err := scope.Compile(source)
	return value{program: program}, err
}

// elements are those of a list that an expression has made.
func elements(list any) ([]bson.RawValue, error) {
	kind, encoded, err := bson.MarshalValue(list)
	if err != nil {
		return nil, err
	}
	if kind != bson.TypeArray {
		return nil, fmt.Errorf("the value is of BSON type %s, not a list", kind)
	}
	return bson.RawArray(encoded).Values()
}

// environment is what expressions see.
type environment struct {
	change *Change
	// state is the document as it is before the change; nil where there is none, or
	// where no expression asks for it.
	state bson.Raw
	// item is the element of a forEach; the zero RawValue where there is none.
	item bson.RawValue
	// spent is what all elements of an event share.
	spent *expression.Spent
}

// usesState tells whether the value depends on the document as it is.
func (o value) usesState() bool { return o.program != nil && o.program.UsesState() }

// of is the operand's value for what is seen.
func (o value) of(env environment) (any, error) {
	if o.program == nil {
		return o.literal, nil
	}
	result, err := o.program.Run(env.change.ctx, expression.Input{Data: env.change.Data, Event: env.change.look(), State: env.state, Item: env.item, Spent: env.spent})
	if errors.Is(err, ErrInterrupted) {
		return nil, ErrInterrupted
	}
	return result, err
}

// condition is an expression that is true or false; the zero condition is true.
type condition struct{ value }

// holds tells whether the condition is true for what is seen.
func (w condition) holds(env environment) (bool, error) {
	if w.program == nil {
		return true, nil
	}
	result, err := w.of(env)
	if err != nil {
		return false, fmt.Errorf("when: %w", err)
	}
	holds, ok := result.(bool)
	if !ok {
		return false, fmt.Errorf("when: the value is of type %T, neither true nor false", result)
	}
	return holds, nil
}
