package expression

import (
	"io"
	"unicode/utf8"
)

// longText is from how many bytes on a search looks at whether to go on: it takes
// its text rune by rune then, which costs more than to have it as a whole.
const longText = 64 << 10

// runes reads a text, to its end or to where the evaluation ends.
type runes struct {
	rest  string
	scope *scope
}

func (t *runes) ReadRune() (rune, int, error) {
	if t.rest == "" || !t.scope.goesOn(1) {
		return 0, 0, io.EOF
	}
	r, size := utf8.DecodeRuneInString(t.rest)
	t.rest = t.rest[size:]
	return r, size, nil
}

// findInLong finds what FindAllStringSubmatchIndex of the standard library does.
func (r *Regex) findInLong(s *scope, text string, n int) ([][]int, error) {
	if _, err := r.behind(); err != nil {
		return r.backtrack(text, n) // bounded in time, too
	}
	var found [][]int
	lastEnd := -1
	for from := 0; from <= len(text) && len(found) < n && s.stopped == nil; {
		at := r.nextInLong(s, text, from)
		if at == nil {
			break
		}
		// There is no empty match right behind a match.
		if at[1] > at[0] || at[0] != lastEnd {
			found = append(found, at)
		}
		lastEnd = at[1]
		if from < at[1] {
			from = at[1]
			continue
		}
		_, size := utf8.DecodeRuneInString(text[from:])
		from += max(size, 1)
	}
	return found, nil
}

// nextInLong is the first match that begins at from or later. What stands before
// that place decides whether it is a word's or a line's beginning.
func (r *Regex) nextInLong(s *scope, text string, from int) []int {
	if from == 0 {
		return r.linear.FindReaderSubmatchIndex(&runes{text, s})
	}
	_, size := utf8.DecodeLastRuneInString(text[:from])
	behind, _ := r.behind()
	at := behind.FindReaderSubmatchIndex(&runes{text[from-size:], s})
	if at == nil {
		return nil
	}
	at = at[2:]
	for i := range at {
		if at[i] >= 0 {
			at[i] += from - size
		}
	}
	return at
}
