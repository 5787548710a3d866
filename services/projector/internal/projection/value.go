package projection

import (
	"errors"

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
func compile(source string) (value, error) {
	program, err := expression.Compile(source)
	return value{program: program}, err
}

// of is the operand's value for a change.
func (o value) of(c *Change) (any, error) {
	if o.program == nil {
		return o.literal, nil
	}
	result, err := o.program.Run(c.ctx, expression.Input{Data: c.Data, Event: c.look()})
	if errors.Is(err, ErrInterrupted) {
		return nil, ErrInterrupted
	}
	return result, err
}
