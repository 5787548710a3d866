package match

import (
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
	"changerelay/services/sandbox/internal/mongodb/query/expression"
)

// regex matches texts, and regular expressions that are written the same.
type regex struct {
	pattern, options string
	compiled         *expression.Regex
}

func regexOf(v bson.RawValue) (pattern, options string) {
	pattern, options, _ = v.RegexOK()
	return pattern, options
}

func (p filterParser) regex(pattern, options string) (*regex, error) {
	compiled, err := p.env.CompileRegex(pattern, options)
	if err != nil {
		return nil, err
	}
	return &regex{pattern: pattern, options: options, compiled: compiled}, nil
}

// regexOperator reads {$regex: …, $options: …}.
func (p filterParser) regexOperator(v bson.RawValue, siblings bson.Raw) (*regex, error) {
	var pattern, options string
	switch v.Type {
	case bson.TypeString:
		pattern = v.StringValue()
	case bson.TypeRegex:
		pattern, options = regexOf(v)
	default:
		return nil, mongoerr.New(mongoerr.BadValue, "$regex has to be a string")
	}
	if o, ok := bsonkit.Get(siblings, "$options"); ok {
		if o.Type != bson.TypeString {
			return nil, mongoerr.New(mongoerr.BadValue, "$options has to be a string")
		}
		if options != "" {
			// The code tells which of the two came first.
			code := mongoerr.Code(51075)
			if it := bsonkit.Iterate(siblings); it.Next() && string(it.Key()) == "$options" {
				code = 51074
			}
			return nil, mongoerr.New(code, "options set in both $regex and $options")
		}
		options = o.StringValue()
	}
	switch {
	case strings.ContainsRune(pattern, 0):
		return nil, mongoerr.New(mongoerr.BadValue, "Regular expression cannot contain an embedded null byte")
	case strings.ContainsRune(options, 0):
		return nil, mongoerr.New(mongoerr.BadValue, "Regular expression options string cannot contain an embedded null byte")
	}
	return p.regex(pattern, options)
}

func (r *regex) pass(v bson.RawValue, _ *int) bool {
	switch v.Type {
	case bson.TypeString, bson.TypeSymbol:
		return r.compiled.Match(bsonkit.Text(v))
	case bson.TypeRegex:
		pattern, options := regexOf(v)
		return pattern == r.pattern && options == r.options
	}
	return false
}

// prefix is a text that everything matched begins with, if the pattern says so.
func (r *regex) prefix() (string, bool) {
	if r.options != "" || !strings.HasPrefix(r.pattern, "^") || strings.Contains(r.pattern, "|") {
		return "", false
	}
	rest := r.pattern[1:]
	end := strings.IndexAny(rest, `\.+*?()[]{}^$`)
	if end < 0 {
		return rest, rest != ""
	}
	// A quantifier makes the character before it optional.
	if end > 0 && strings.IndexByte("*?{", rest[end]) >= 0 {
		end--
	}
	return rest[:end], end > 0
}
