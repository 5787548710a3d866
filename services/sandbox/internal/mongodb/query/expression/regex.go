package expression

import (
	"errors"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/dlclark/regexp2"

	"changerelay/services/sandbox/internal/mongodb/mongoerr"
)

// Regex is a regular expression in the syntax of PCRE. Those that need no
// backtracking are run in linear time, by the standard library; the others for
// no longer than a match may take.
type Regex struct {
	// linear is nil where the standard library does not know the syntax.
	linear *regexp.Regexp
	// endOfLine tells that $ is in the pattern, which to PCRE is also the place
	// before a line break that ends the text.
	endOfLine    bool
	backtracking func() (*regexp2.Regexp, error)
	// behind is linear for what follows a character, which it matches as well,
	// with whatever lies between the two.
	behind func() (*regexp.Regexp, error)
}

// maxMatchTime bounds a match that backtracks.
const maxMatchTime = 500 * time.Millisecond

// errMatchTime is the error of a match that took too long.
var errMatchTime = mongoerr.New(51156, "Error occurred while executing the regular expression. Result code: -8")

// InvalidPattern is the code of a pattern that is none.
const InvalidPattern mongoerr.Code = 51091

// maxPattern is the size of a pattern in bytes, as the server has it: compiling one takes
// more than linear time, and stack for each parenthesis.
const maxPattern = 32_764

// CompileRegex compiles a regular expression with MongoDB's options i, m, s, x
// and u, which is always on.
func CompileRegex(pattern, options string) (*Regex, error) {
	if len(pattern) > maxPattern {
		return nil, mongoerr.New(InvalidPattern, "Regular expression is invalid: regular expression is too large")
	}
	var flags []rune
	for _, o := range options {
		switch o {
		case 'i', 'm', 's':
			flags = append(flags, o)
		case 'x':
			pattern = stripExtended(pattern)
		case 'u':
		default:
			return nil, mongoerr.New(51108, "invalid flag in regex options: %c", o)
		}
	}
	re := &Regex{endOfLine: strings.Contains(pattern, "$") && !strings.Contains(options, "m")}
	re.backtracking = sync.OnceValues(func() (*regexp2.Regexp, error) { return compileBacktracking(pattern, flags) })
	if flags != nil {
		pattern = "(?" + string(flags) + ")" + pattern
	}
	re.behind = sync.OnceValues(func() (*regexp.Regexp, error) { return regexp.Compile(`\A(?s:.)(?s:.*?)(` + pattern + `)`) })
	var err error
	if re.linear, err = regexp.Compile(pattern); err == nil {
		return re, nil
	}
	re.linear = nil
	if _, err := re.backtracking(); err != nil {
		return nil, mongoerr.New(InvalidPattern, "Regular expression is invalid: %s", err)
	}
	return re, nil
}

func compileBacktracking(pattern string, flags []rune) (*regexp2.Regexp, error) {
	options := regexp2.RegexOptions(regexp2.None)
	for _, o := range flags {
		switch o {
		case 'i':
			options |= regexp2.IgnoreCase
		case 'm':
			options |= regexp2.Multiline
		case 's':
			options |= regexp2.Singleline
		}
	}
	re, err := regexp2.Compile(atomic(pattern), options)
	if err != nil {
		return nil, err
	}
	re.MatchTimeout = maxMatchTime
	return re, nil
}

// atomic writes possessive quantifiers, which the library does not know, as the
// atomic groups that they stand for: a++ is (?>a+).
func atomic(pattern string) string {
	var b strings.Builder
	for i := 0; i < len(pattern); {
		end := atomEnd(pattern, i)
		quantified := quantifierEnd(pattern, end)
		inner := pattern[i:end]
		// A group that is not closed is left for the library to refuse.
		if head := "(" + groupHead(inner); inner[0] == '(' && inner[len(inner)-1] == ')' && len(head) < len(inner) {
			inner = head + atomic(inner[len(head):len(inner)-1]) + ")"
		}
		if quantified > end && quantified < len(pattern) && pattern[quantified] == '+' {
			b.WriteString("(?>" + inner + pattern[end:quantified] + ")")
			i = quantified + 1
			continue
		}
		b.WriteString(inner + pattern[end:quantified])
		i = quantified
	}
	return b.String()
}

// groupHead is what stands between the parenthesis of a group and its content.
func groupHead(group string) string {
	if !strings.HasPrefix(group, "(?") {
		return ""
	}
	if strings.HasPrefix(group, "(?<") && !strings.HasPrefix(group, "(?<=") && !strings.HasPrefix(group, "(?<!") {
		return group[1 : 1+strings.IndexByte(group[1:], '>')+1]
	}
	end := 2
	for end < len(group)-1 && strings.IndexByte("=!<>:imsx-", group[end]) >= 0 {
		end++
		if strings.IndexByte("=!>:", group[end-1]) >= 0 {
			break
		}
	}
	return group[1:end]
}

// atomEnd is the place behind the atom that begins at i: a character, an escape,
// a class or a group.
func atomEnd(pattern string, i int) int {
	switch pattern[i] {
	case '\\':
		return min(i+2, len(pattern))
	case '[':
		for j := i + 1; j < len(pattern); j++ {
			switch {
			case pattern[j] == '\\':
				j++
			case pattern[j] == ']' && j > i+1 && pattern[i+1:j] != "^":
				return j + 1
			}
		}
		return len(pattern)
	case '(':
		for j := i + 1; j < len(pattern); {
			if pattern[j] == ')' {
				return j + 1
			}
			j = atomEnd(pattern, j)
		}
		return len(pattern)
	}
	return i + 1
}

// quantifierEnd is the place behind a quantifier at i, or i.
func quantifierEnd(pattern string, i int) int {
	if i >= len(pattern) {
		return i
	}
	switch pattern[i] {
	case '*', '+', '?':
		return i + 1
	case '{':
		if end := strings.IndexByte(pattern[i:], '}'); end > 0 {
			return i + end + 1
		}
	}
	return i
}

// Match reports whether the text has a match. One that takes too long is none,
// as on the server.
func (r *Regex) Match(text []byte) bool {
	if r.isLinear(len(text) > 0 && text[len(text)-1] == '\n') {
		return r.linear.Match(text)
	}
	at, err := r.backtrack(string(text), 1)
	return err == nil && len(at) > 0
}

func (r *Regex) isLinear(endsLine bool) bool { return r.linear != nil && (!r.endOfLine || !endsLine) }

// find gives up to n matches: where each and its groups begin and end, in bytes;
// -1 for a group that took no part.
func (r *Regex) find(s *scope, text string, n int) ([][]int, error) {
	if !r.isLinear(strings.HasSuffix(text, "\n")) {
		return r.backtrack(text, n)
	}
	if _, fixed := r.linear.LiteralPrefix(); fixed || len(text) < longText {
		return r.linear.FindAllStringSubmatchIndex(text, n), nil
	}
	return r.findInLong(s, text, n)
}

func (r *Regex) backtrack(text string, n int) ([][]int, error) {
	re, err := r.backtracking()
	if err != nil {
		return nil, mongoerr.New(51091, "Regular expression is invalid: %s", err)
	}
	runes := []rune(text)
	bytesAt := make([]int, 0, len(runes)+1)
	for at := range text {
		bytesAt = append(bytesAt, at)
	}
	bytesAt = append(bytesAt, len(text))
	deadline := time.Now().Add(maxMatchTime)
	var found [][]int
	match, err := re.FindRunesMatch(runes)
	for ; match != nil && err == nil && len(found) != n; match, err = re.FindNextMatch(match) {
		var at []int
		for _, group := range match.Groups() {
			if len(group.Captures) == 0 {
				at = append(at, -1, -1)
				continue
			}
			at = append(at, bytesAt[group.Index], bytesAt[group.Index+group.Length])
		}
		found = append(found, at)
		if time.Now().After(deadline) {
			return nil, errMatchTime
		}
	}
	if err != nil {
		return nil, errors.Join(errMatchTime, err)
	}
	return found, nil
}

// stripExtended takes away what the x option allows: white space and comments
// outside character classes.
func stripExtended(pattern string) string {
	var b strings.Builder
	class, comment := false, false
	for i := 0; i < len(pattern); i++ {
		c := pattern[i]
		switch {
		case comment:
			comment = c != '\n'
		case c == '\\' && i+1 < len(pattern):
			b.WriteString(pattern[i : i+2])
			i++
		case !class && c == '#':
			comment = true
		case !class && strings.IndexByte(" \t\n\r\v\f", c) >= 0:
		default:
			class = c == '[' || class && c != ']'
			b.WriteByte(c)
		}
	}
	return b.String()
}
