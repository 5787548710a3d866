package sqlfilter

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxLength bounds an expression, in characters.
const MaxLength = 1024

type kind int

const (
	end kind = iota
	word
	quotedName // [a b] or "a b"
	text
	numeral
	parameter
	symbol
)

type token struct {
	kind  kind
	text  string // of a name without quotes, of text without escapes
	value any    // of a numeral: int64 or float64
	at    int    // offset in bytes
}

// is tells a keyword or symbol.
func (t token) is(s string) bool {
	return (t.kind == symbol && t.text == s) || (t.kind == word && strings.EqualFold(t.text, s))
}

func lex(source string) ([]token, error) {
	if utf8.RuneCountInString(source) > MaxLength {
		return nil, fmt.Errorf("the expression is longer than %d characters", MaxLength)
	}
	var tokens []token
	for at := 0; ; {
		rest := strings.TrimLeftFunc(source[at:], unicode.IsSpace)
		at = len(source) - len(rest)
		if rest == "" {
			return append(tokens, token{kind: end, at: at}), nil
		}
		t, length, err := next(rest)
		if err != nil {
			return nil, fmt.Errorf("%w at position %d", err, at)
		}
		t.at = at
		tokens = append(tokens, t)
		at += length
	}
}

// next reads the token that rest begins with and its length in bytes.
func next(rest string) (token, int, error) {
	c, _ := utf8.DecodeRuneInString(rest)
	switch {
	case isNameStart(c):
		n := nameLength(rest)
		return token{kind: word, text: rest[:n]}, n, nil
	case c == '@':
		n := nameLength(rest[1:])
		if n == 0 {
			return token{}, 0, fmt.Errorf("a parameter without a name")
		}
		return token{kind: parameter, text: rest[:1+n]}, 1 + n, nil
	case c == '\'':
		return quoted(rest, '\'', text)
	case c == '"':
		return quoted(rest, '"', quotedName)
	case c == '[':
		return quoted(rest, ']', quotedName)
	case c >= '0' && c <= '9', c == '.' && len(rest) > 1 && rest[1] >= '0' && rest[1] <= '9':
		return number(rest)
	}
	for _, s := range []string{"<>", "!=", "<=", ">=", "=", "<", ">", "(", ")", ",", ".", "+", "-", "*", "/", "%"} {
		if strings.HasPrefix(rest, s) {
			return token{kind: symbol, text: s}, len(s), nil
		}
	}
	return token{}, 0, fmt.Errorf("unexpected character %q", c)
}

func isNameStart(c rune) bool { return c == '_' || unicode.IsLetter(c) }

func nameLength(s string) int {
	for i, c := range s {
		if !isNameStart(c) && !unicode.IsDigit(c) && c != '@' && c != '#' && c != '$' {
			return i
		}
	}
	return len(s)
}

// quoted reads up to the closing mark; a doubled one stands for itself.
func quoted(rest string, closing byte, k kind) (token, int, error) {
	var b strings.Builder
	for i := 1; i < len(rest); i++ {
		if rest[i] != closing {
			b.WriteByte(rest[i])
			continue
		}
		if i+1 < len(rest) && rest[i+1] == closing {
			b.WriteByte(closing)
			i++
			continue
		}
		if k == quotedName && b.Len() == 0 {
			return token{}, 0, fmt.Errorf("an empty name")
		}
		return token{kind: k, text: b.String()}, i + 1, nil
	}
	return token{}, 0, fmt.Errorf("%q without its end", rest[0])
}

func number(rest string) (token, int, error) {
	n := 0
	digits := func() {
		for n < len(rest) && rest[n] >= '0' && rest[n] <= '9' {
			n++
		}
	}
	digits()
	whole := true
	if n < len(rest) && rest[n] == '.' {
		whole = false
		n++
		digits()
	}
	if n < len(rest) && (rest[n] == 'e' || rest[n] == 'E') {
		whole = false
		n++
		if n < len(rest) && (rest[n] == '+' || rest[n] == '-') {
			n++
		}
		digits()
	}
	t := token{kind: numeral, text: rest[:n]}
	var err error
	if whole {
		t.value, err = strconv.ParseInt(t.text, 10, 64)
	} else {
		t.value, err = strconv.ParseFloat(t.text, 64)
	}
	if err != nil {
		return token{}, 0, fmt.Errorf("%s is not a number in range", t.text)
	}
	return t, n, nil
}
