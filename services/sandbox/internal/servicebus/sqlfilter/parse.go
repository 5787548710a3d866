package sqlfilter

import (
	"fmt"
	"slices"
	"strings"
)

// Filter is a compiled expression. It is safe for concurrent use.
type Filter struct{ root predicate }

// Compile parses an expression. parameters give the values of @names, with the
// @; the error says what is wrong and where.
func Compile(expression string, parameters map[string]any) (*Filter, error) {
	tokens, err := lex(expression)
	if err != nil {
		return nil, err
	}
	p := &parser{tokens: tokens, parameters: parameters}
	root, err := p.predicate(p.or)
	if err != nil {
		return nil, err
	}
	if p.now().kind != end {
		return nil, p.unexpected("the end")
	}
	return &Filter{root: root}, nil
}

type parser struct {
	tokens     []token
	at         int
	parameters map[string]any
}

func (p *parser) now() token { return p.tokens[p.at] }

func (p *parser) take() token {
	t := p.tokens[p.at]
	if t.kind != end {
		p.at++
	}
	return t
}

func (p *parser) accept(s string) bool {
	if p.now().is(s) {
		p.at++
		return true
	}
	return false
}

func (p *parser) expect(s string) error {
	if !p.accept(s) {
		return p.unexpected("'" + s + "'")
	}
	return nil
}

func (p *parser) unexpected(wanted string) error {
	t := p.now()
	if t.kind == end {
		return fmt.Errorf("the expression ends where %s is expected", wanted)
	}
	return fmt.Errorf("'%s' at position %d where %s is expected", t.text, t.at, wanted)
}

// node is a predicate or an expression: what a parenthesis holds shows only at
// its end, so every rule below returns either and its users ask for theirs.
type node any

func (p *parser) predicate(rule func() (node, error)) (predicate, error) {
	at := p.now()
	n, err := rule()
	if err != nil {
		return nil, err
	}
	if found, ok := n.(predicate); ok {
		return found, nil
	}
	if p.now().kind != end && p.now().is(")") || p.now().kind == end {
		return nil, p.unexpected("a comparison")
	}
	return nil, fmt.Errorf("'%s' at position %d does not begin a condition", at.text, at.at)
}

func (p *parser) expression(rule func() (node, error)) (expression, error) {
	at := p.now()
	n, err := rule()
	if err != nil {
		return nil, err
	}
	if found, ok := n.(expression); ok {
		return found, nil
	}
	return nil, fmt.Errorf("'%s' at position %d does not begin a value", at.text, at.at)
}

func (p *parser) or() (node, error) {
	return p.logic("OR", p.and, func(l, r predicate) predicate { return or{l, r} })
}

func (p *parser) and() (node, error) {
	return p.logic("AND", p.not, func(l, r predicate) predicate { return and{l, r} })
}

func (p *parser) logic(word string, operand func() (node, error), join func(l, r predicate) predicate) (node, error) {
	left, err := operand()
	for err == nil && p.now().is(word) {
		l, ok := left.(predicate)
		if !ok {
			return nil, p.unexpected("a comparison")
		}
		p.take()
		var r predicate
		r, err = p.predicate(operand)
		left = join(l, r)
	}
	return left, err
}

func (p *parser) not() (node, error) {
	if p.accept("NOT") {
		inner, err := p.predicate(p.not)
		return not{inner}, err
	}
	if p.now().is("EXISTS") {
		return p.exists()
	}
	return p.comparison()
}

func (p *parser) exists() (node, error) {
	p.take()
	if err := p.expect("("); err != nil {
		return nil, err
	}
	name, err := p.property()
	if err != nil {
		return nil, err
	}
	return isNull{name, true}, p.expect(")")
}

var comparisons = []string{"=", "<>", "!=", "<=", ">=", "<", ">"}

func (p *parser) comparison() (node, error) {
	n, err := p.sum()
	left, ok := n.(expression)
	if err != nil || !ok {
		return n, err // a condition in parentheses
	}
	for _, op := range comparisons {
		if p.accept(op) {
			right, err := p.expression(p.sum)
			return compare{op, left, right}, err
		}
	}
	if p.accept("IS") {
		negated := p.accept("NOT")
		return isNull{left, negated}, p.expect("NULL")
	}
	negated := p.accept("NOT")
	var found predicate
	switch {
	case p.accept("IN"):
		found, err = p.in(left)
	case p.accept("LIKE"):
		found, err = p.like(left)
	case negated:
		return nil, p.unexpected("IN or LIKE")
	default:
		return left, nil
	}
	if negated {
		found = not{found}
	}
	return found, err
}

func (p *parser) in(left expression) (predicate, error) {
	if err := p.expect("("); err != nil {
		return nil, err
	}
	var list []expression
	for {
		e, err := p.expression(p.sum)
		if err != nil {
			return nil, err
		}
		list = append(list, e)
		if !p.accept(",") {
			return in{left, list}, p.expect(")")
		}
	}
}

func (p *parser) like(left expression) (predicate, error) {
	pattern, err := p.expression(p.sum)
	if err != nil {
		return nil, err
	}
	l := like{of: left, pattern: pattern}
	if p.accept("ESCAPE") {
		t := p.take()
		if t.kind != text || len([]rune(t.text)) != 1 {
			return nil, fmt.Errorf("ESCAPE at position %d is not followed by one character in quotes", t.at)
		}
		l.escape = []rune(t.text)[0]
	}
	return l, nil
}

func (p *parser) sum() (node, error) {
	return p.chain(p.product, "+", "-")
}

func (p *parser) product() (node, error) {
	return p.chain(p.unary, "*", "/", "%")
}

func (p *parser) chain(operand func() (node, error), operators ...string) (node, error) {
	left, err := operand()
	for err == nil && p.now().kind == symbol && slices.Contains(operators, p.now().text) {
		l, ok := left.(expression)
		if !ok {
			return nil, p.unexpected("AND, OR or the end")
		}
		op := p.take().text[0]
		var r expression
		r, err = p.expression(operand)
		left = arithmetic{op, l, r}
	}
	return left, err
}

func (p *parser) unary() (node, error) {
	switch {
	case p.accept("-"):
		inner, err := p.expression(p.unary)
		return arithmetic{'-', constant{int64(0)}, inner}, err
	case p.accept("+"):
		return p.expression(p.unary)
	case p.accept("("):
		inner, err := p.or()
		if err != nil {
			return nil, err
		}
		return inner, p.expect(")")
	}
	return p.operand()
}

// reserved words are no names of properties unless quoted.
var reserved = []string{"AND", "OR", "NOT", "IS", "IN", "LIKE", "ESCAPE", "EXISTS", "NULL", "TRUE", "FALSE"}

func (p *parser) operand() (expression, error) {
	t := p.now()
	switch {
	case t.kind == text:
		p.at++
		return constant{t.text}, nil
	case t.kind == numeral:
		p.at++
		return constant{t.value}, nil
	case t.kind == parameter:
		p.at++
		v, ok := p.parameters[t.text]
		if !ok {
			return nil, fmt.Errorf("parameter %s at position %d has no value", t.text, t.at)
		}
		return constant{v}, nil
	case p.accept("NULL"):
		return constant{nil}, nil
	case p.accept("TRUE"):
		return constant{true}, nil
	case p.accept("FALSE"):
		return constant{false}, nil
	}
	return p.property()
}

func (p *parser) property() (expression, error) {
	t := p.take()
	if t.kind == word && slices.ContainsFunc(reserved, t.is) || t.kind != word && t.kind != quotedName {
		p.at = max(0, p.at-1)
		if t.kind == end {
			p.at = len(p.tokens) - 1
		}
		return nil, p.unexpected("a value or property")
	}
	if t.kind == word && p.now().is("(") {
		return nil, fmt.Errorf("the function %s() at position %d is not supported", t.text, t.at)
	}
	if t.kind != word || !p.accept(".") {
		return user(t.text), nil
	}
	name := p.take()
	if name.kind != word && name.kind != quotedName {
		return nil, fmt.Errorf("no name of a property after '%s.' at position %d", t.text, t.at)
	}
	switch strings.ToLower(t.text) {
	case "user":
		return user(name.text), nil
	case "sys":
		return system(name)
	}
	return nil, fmt.Errorf("the scope '%s' at position %d is neither sys nor user", t.text, t.at)
}

func system(name token) (expression, error) {
	for _, known := range SystemProperties {
		if strings.EqualFold(known, name.text) {
			return sys(known), nil
		}
	}
	return nil, fmt.Errorf("the system property '%s' at position %d is not known", name.text, name.at)
}
