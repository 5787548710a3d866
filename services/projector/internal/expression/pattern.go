package expression

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"regexp/syntax"
	"unicode/utf8"
)

// Bounds of the patterns of matches: their text, and how many instructions they
// are made into. Matching takes at most one look at each instruction for each
// character, of which instructionsPerStep are a step.
const (
	maxPattern          = 1000
	maxInstructions     = 10_000
	bytesPerInstruction = 64
	instructionsPerStep = 16
)

// pattern is a regular expression with what a character costs.
type pattern struct {
	expression *regexp.Regexp
	steps      int
}

func newPattern(text string) (*pattern, error) {
	if len(text) > maxPattern {
		return nil, fmt.Errorf("a pattern has more than %d bytes", maxPattern)
	}
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, errors.New("matches takes a regular expression, and this is none: " + err.Error())
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return nil, fmt.Errorf("a pattern: %w", err)
	}
	if len(program.Inst) > maxInstructions {
		return nil, fmt.Errorf("a pattern is made into more than %d instructions", maxInstructions)
	}
	compiled, err := regexp.Compile(text)
	if err != nil {
		return nil, fmt.Errorf("a pattern: %w", err)
	}
	return &pattern{compiled, 1 + len(program.Inst)/instructionsPerStep}, nil
}

// matches tells whether a text matches a pattern.
func (e *evaluation) matches(text, of string) (bool, error) {
	p := e.program.patterns[of]
	if p == nil {
		p = e.patterns[of]
	}
	if p == nil {
		if err := e.make(maxInstructions * bytesPerInstruction); err != nil {
			return false, err
		}
		var err error
		if p, err = newPattern(of); err != nil {
			return false, err
		}
		if e.patterns == nil {
			e.patterns = map[string]*pattern{}
		}
		e.patterns[of] = p
	}
	r := &charged{evaluation: e, rest: text, steps: p.steps}
	matched := p.expression.MatchReader(r)
	return matched && r.err == nil, r.err
}

// charged reads a text and takes the steps of matching it, as it goes.
type charged struct {
	*evaluation
	rest  string
	steps int
	err   error
}

// ReadRune implements io.RuneReader.
func (c *charged) ReadRune() (rune, int, error) {
	if c.rest == "" || c.err != nil {
		return 0, 0, io.EOF
	}
	if c.err = c.spend(c.steps); c.err != nil {
		return 0, 0, io.EOF
	}
	r, size := utf8.DecodeRuneInString(c.rest)
	c.rest = c.rest[size:]
	return r, size, nil
}
