package expression

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/builtin"
	"github.com/expr-lang/expr/file"
	"go.mongodb.org/mongo-driver/v2/bson"
)

// Program is a checked expression. Many goroutines may run it at once.
type Program struct {
	root     ast.Node
	patterns map[string]*pattern
	names    map[string]bool
}

// UsesState tells whether the program looks at the document as it is.
func (p *Program) UsesState() bool { return p.names["state"] }

// UsesItem tells whether the program looks at one element of a list.
func (p *Program) UsesItem() bool { return p.names["item"] }

// Event is what expressions see of an event besides its data. Version and Time
// are nil where they are not known.
type Event struct {
	ID          string `expr:"id"`
	Type        string `expr:"type"`
	AggregateID string `expr:"aggregateId"`
	Version     any    `expr:"version"` // int64
	Time        any    `expr:"time"`    // time.Time
	Operation   string `expr:"operation"`
	Sequence    string `expr:"sequence"`
}

// environment is what the names of an expression are checked against.
type environment struct {
	Data  any   `expr:"data"`
	Event Event `expr:"event"`
	State any   `expr:"state"`
}

// ofElement are the names where one element of a list is looked at.
type ofElement struct {
	Data  any   `expr:"data"`
	Event Event `expr:"event"`
	State any   `expr:"state"`
	Item  any   `expr:"item"`
}

// Scope says where an expression stands, which decides what it may use.
type Scope struct {
	// Item has it see one element of a list.
	Item bool
	// Condition has its value be true or false. One whose value is of another type is
	// refused, where that shows.
	Condition bool
}

// Compile is Scope.Compile in the zero Scope.
func Compile(source string) (*Program, error) { return Scope{}.Compile(source) }

// Compile checks an expression: its syntax, its names and types, and that
// everything in it is of this package's language.
func (s Scope) Compile(source string) (*Program, error) {
	options := []expr.Option{expr.Env(environment{}), expr.Optimize(false)}
	if s.Item {
		options[0] = expr.Env(ofElement{})
	}
	if s.Condition {
		options = append(options, expr.AsBool())
	}
	for _, f := range builtin.Builtins {
		if _, known := functions[f.Name]; !known && !isPredicate(f.Name) {
			options = append(options, expr.DisableBuiltin(f.Name))
		}
	}
	compiled, err := expr.Compile(source, options...)
	if e, ok := errors.AsType[*file.Error](err); ok {
		return nil, fmt.Errorf("expression %q, column %d: %s", source, e.Column+1, e.Message)
	}
	if err != nil {
		return nil, fmt.Errorf("expression %q: %w", source, err)
	}
	p := &Program{root: compiled.Node(), patterns: map[string]*pattern{}, names: map[string]bool{}}
	checked := &check{program: p}
	ast.Walk(&p.root, checked)
	if checked.problem != nil {
		return nil, fmt.Errorf("expression %q, column %d: %w", source, checked.column+1, checked.problem)
	}
	return p, nil
}

// check is the visitor that finds what is not of the language.
type check struct {
	program *Program
	problem error // the first
	column  int
}

// Visit implements ast.Visitor.
func (c *check) Visit(node *ast.Node) {
	if c.problem != nil {
		return
	}
	if c.problem = c.of(*node); c.problem != nil {
		c.column = (*node).Location().From
	}
}

func (c *check) of(node ast.Node) error {
	unknown := fmt.Errorf("%s is not of this language", shown(node))
	switch n := node.(type) {
	case *ast.NilNode, *ast.BoolNode, *ast.IntegerNode, *ast.FloatNode, *ast.StringNode,
		*ast.MemberNode, *ast.ChainNode, *ast.SliceNode, *ast.UnaryNode, *ast.ConditionalNode,
		*ast.VariableDeclaratorNode, *ast.SequenceNode, *ast.ArrayNode, *ast.MapNode, *ast.PairNode,
		*ast.PredicateNode, *ast.PointerNode:
		return nil
	case *ast.IdentifierNode:
		if n.Value == "$env" {
			return unknown
		}
		c.program.names[n.Value] = true
		return nil
	case *ast.CallNode:
		if member, ok := n.Callee.(*ast.MemberNode); ok {
			if _, ok := member.Property.(*ast.StringNode); ok {
				return nil
			}
		}
	case *ast.BuiltinNode:
		if f, ok := functions[n.Name]; ok && len(n.Arguments) >= f.least && len(n.Arguments) <= f.most || isPredicate(n.Name) {
			return nil
		}
	case *ast.BinaryNode:
		return c.binary(n)
	}
	return unknown
}

func (c *check) binary(n *ast.BinaryNode) error {
	switch n.Operator {
	case "??", "and", "&&", "or", "||", "==", "!=", "+", "-", "*", "/", "%", "**", "^", "..",
		"<", "<=", ">", ">=", "in", "contains", "startsWith", "endsWith":
		return nil
	case "matches":
		text, ok := n.Right.(*ast.StringNode)
		if !ok {
			return nil
		}
		p, err := newPattern(text.Value)
		c.program.patterns[text.Value] = p
		return err
	}
	return fmt.Errorf("operator %q is not of this language", n.Operator)
}

// Input is what a program sees of a change.
type Input struct {
	// Data is the zero RawValue where there is none.
	Data  bson.RawValue
	Event map[string]any
	// State is the document as it is; nil where there is none.
	State bson.Raw
	// Item is the element that is looked at; the zero RawValue where there is none.
	Item bson.RawValue
	// Spent is what evaluations took with which this one shares its bounds; nil for
	// bounds of its own.
	Spent *Spent
	// Clock is what time is measured by; nil for time.Now. It bounds the
	// evaluation, and decides nothing.
	Clock func() time.Time
}

// View is an event's fields by their names.
func (e *Event) View() map[string]any {
	view := map[string]any{
		"id": e.ID, "type": e.Type, "aggregateId": e.AggregateID, "operation": e.Operation, "sequence": e.Sequence,
	}
	if e.Version != nil {
		view["version"] = e.Version
	}
	if e.Time != nil {
		view["time"] = e.Time
	}
	return view
}

// Run evaluates the program, and returns the value as it is stored in BSON. The
// error is ErrInterrupted where ctx has ended. Any other error is the same in each
// replay, except that of taking too long.
func (p *Program) Run(ctx context.Context, in Input) (result any, err error) {
	// A fault of this package must not end the process for one event's data.
	defer func() {
		if fault := recover(); fault != nil {
			result, err = nil, fmt.Errorf("cannot be evaluated, by a fault of the projector: %v", fault)
		}
	}()
	clock := in.Clock
	if clock == nil {
		clock = time.Now
	}
	e := &evaluation{
		budget: newBudget(ctx, clock, in.Spent), program: p, event: in.Event, state: in.State,
	}
	if !in.Data.IsZero() {
		data, err := e.see(in.Data)
		if err != nil {
			return nil, err
		}
		e.data, e.hasData = data, true
	}
	if !in.Item.IsZero() {
		item, err := e.see(in.Item)
		if err != nil {
			return nil, err
		}
		e.element, e.hasElement = item, true
	}
	result, err = e.need(p.root)
	if err != nil {
		return nil, err
	}
	return e.store(result, 0)
}
