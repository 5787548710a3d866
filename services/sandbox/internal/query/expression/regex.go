package expression

import (
	"regexp"
	"strings"

	"changerelay/services/sandbox/internal/mongoerr"
)

// CompileRegex compiles a regular expression with MongoDB's options i, m, s and
// x. The syntax is Go's: of PCRE it lacks back references and looking around,
// which are refused as invalid.
func CompileRegex(pattern, options string) (*regexp.Regexp, error) {
	var flags []rune
	for _, o := range options {
		switch o {
		case 'i', 'm', 's':
			flags = append(flags, o)
		case 'x':
			pattern = stripExtended(pattern)
		default:
			return nil, mongoerr.New(51108, "invalid flag in regex options: %c", o)
		}
	}
	if flags != nil {
		pattern = "(?" + string(flags) + ")" + pattern
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		return nil, mongoerr.New(51091, "Regular expression is invalid: %s", err)
	}
	return re, nil
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
