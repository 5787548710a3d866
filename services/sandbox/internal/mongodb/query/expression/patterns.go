package expression

import (
	"regexp/syntax"

	"changerelay/services/sandbox/internal/mongodb/mongoerr"
)

// Patterns counts what the regular expressions that a statement keeps take: a
// short pattern may stand for a large program, and there may be many.
type Patterns struct{ bytes int }

const (
	// maxPatterns is what a statement may keep, in bytes.
	maxPatterns = 64 << 20
	// sizeOfPattern is what each takes beside its program, sizeOfStep what a step of
	// that takes, and sizeOfRune what an end of a range of characters takes; about.
	sizeOfPattern = 1 << 10
	sizeOfStep    = 64
	sizeOfRune    = 4
)

// CompileRegex is CompileRegex for a statement that keeps it.
func (e Env) CompileRegex(pattern, options string) (*Regex, error) {
	if err := e.ask(); err != nil {
		return nil, err
	}
	if p := e.Patterns; p != nil && len(pattern) <= maxPattern {
		if p.bytes += weight(pattern); p.bytes > maxPatterns {
			return nil, mongoerr.New(mongoerr.ExceededMemoryLimit,
				"The regular expressions of a statement take more than %d bytes together", maxPatterns)
		}
	}
	return CompileRegex(pattern, options)
}

// ask is the error that ends what is under way.
func (e Env) ask() error {
	if e.Interrupted == nil {
		return nil
	}
	return e.Interrupted()
}

// weight is about what a compiled pattern takes, in bytes.
func weight(pattern string) int {
	re, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return sizeOfPattern + sizeOfStep*len(pattern) // no repetition is written out where it backtracks
	}
	steps, runes := weigh(re)
	return sizeOfPattern + sizeOfStep*steps + sizeOfRune*runes
}

// weigh counts the steps of a program, in which repetitions are written out, and
// the ends of the ranges that they look at, which repetitions share.
func weigh(re *syntax.Regexp) (steps, runes int) {
	steps, runes = 1, len(re.Rune)
	if re.Op == syntax.OpLiteral {
		steps = len(re.Rune)
	}
	for _, sub := range re.Sub {
		s, r := weigh(sub)
		steps, runes = steps+s, runes+r
	}
	if re.Op == syntax.OpRepeat {
		steps *= max(re.Min+1, re.Max)
	}
	return steps, runes
}
