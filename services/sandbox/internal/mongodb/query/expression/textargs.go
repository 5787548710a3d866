package expression

import (
	"slices"
	"strings"
	"unicode/utf8"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
)

// documentArguments reads the arguments of an operator that takes them by name.
func (c *compiler) documentArguments(operator string, v bson.RawValue, notDocument, unknown mongoerr.Code, names ...string) (map[string]operand, error) {
	if v.Type != bson.TypeEmbeddedDocument {
		return nil, mongoerr.New(notDocument, "%s only supports an object as an argument, found %s", operator, typeName(v))
	}
	return c.named(v, func(name string) error {
		if slices.Contains(names, name) {
			return nil
		}
		return mongoerr.New(unknown, "%s found an unknown argument: %s", operator, name)
	})
}

func evalNamed(s *scope, fields map[string]operand) (map[string]bson.RawValue, error) {
	values := make(map[string]bson.RawValue, len(fields))
	for name, o := range fields {
		v, err := o.in(s)
		if err != nil {
			return nil, err
		}
		values[name] = v
	}
	return values, nil
}

func operands(fields map[string]operand) []operand {
	var list []operand
	for _, o := range fields {
		list = append(list, o)
	}
	return list
}

// whiteSpace is what $trim takes away when it is not told.
const whiteSpace = "\x00 \t\n\v\f\r\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"

func trimming(left, right bool) builder {
	return func(c *compiler, name string, argument bson.RawValue) (operand, error) {
		fields, err := c.documentArguments(name, argument, 50696, 50694, "input", "chars")
		if err != nil {
			return operand{}, err
		}
		if _, ok := fields["input"]; !ok {
			return operand{}, mongoerr.New(50695, "%s requires an 'input' field", name)
		}
		return c.folded(operands(fields), func(s *scope) (bson.RawValue, error) {
			values, err := evalNamed(s, fields)
			if err != nil {
				return bson.RawValue{}, err
			}
			return trim(s, name, values, left, right)
		}), nil
	}
}

func trim(s *scope, name string, values map[string]bson.RawValue, left, right bool) (bson.RawValue, error) {
	input, chars := values["input"], whiteSpace
	if nullish(input) {
		return bsonkit.Null(), nil
	}
	if input.Type != bson.TypeString {
		return input, mongoerr.New(50699, "%s requires its input to be a string, got %s (of type %s) instead.", name, bsonkit.Describe(input), typeName(input))
	}
	if v, ok := values["chars"]; ok {
		if nullish(v) {
			return bsonkit.Null(), nil
		}
		if v.Type != bson.TypeString {
			return v, mongoerr.New(50700, "%s requires 'chars' to be a string, got %s (of type %s) instead.", name, bsonkit.Describe(v), typeName(v))
		}
		chars = content(v)
	}
	unwanted := map[rune]bool{}
	for _, r := range chars {
		unwanted[r] = true
	}
	text := content(input)
	isUnwanted := func(r rune) bool { return unwanted[r] && s.goesOn(1) }
	if left {
		text = strings.TrimLeftFunc(text, isUnwanted)
	}
	if right {
		text = strings.TrimRightFunc(text, isUnwanted)
	}
	return bsonkit.String(text), nil
}

// replacing is $replaceOne and $replaceAll.
func replacing(times int) builder {
	return func(c *compiler, name string, argument bson.RawValue) (operand, error) {
		fields, err := c.documentArguments(name, argument, 51751, 51750, "input", "find", "replacement")
		if err != nil {
			return operand{}, err
		}
		for i, n := range []string{"input", "find", "replacement"} {
			if _, ok := fields[n]; !ok {
				return operand{}, mongoerr.New(mongoerr.Code(51749-i), "%s requires '%s' to be specified", name, n)
			}
		}
		return c.folded(operands(fields), func(s *scope) (bson.RawValue, error) {
			values, err := evalNamed(s, fields)
			if err != nil {
				return bson.RawValue{}, err
			}
			return replaceText(name, values, times)
		}), nil
	}
}

func replaceText(name string, values map[string]bson.RawValue, times int) (bson.RawValue, error) {
	null := false
	for i, n := range []string{"input", "find", "replacement"} {
		v := values[n]
		if !nullish(v) && v.Type != bson.TypeString {
			return v, mongoerr.New(mongoerr.Code(51746-i), "%s requires that '%s' be a string, found: %s", name, n, bsonkit.Describe(v))
		}
		null = null || nullish(v)
	}
	if null {
		return bsonkit.Null(), nil
	}
	input, find, replacement := content(values["input"]), content(values["find"]), content(values["replacement"])
	n := strings.Count(input, find)
	if times >= 0 {
		n = min(n, times)
	}
	if size := len(input) + n*(len(replacement)-len(find)); size > maxValue {
		return bson.RawValue{}, errTooLarge(size)
	}
	return bsonkit.String(strings.Replace(input, find, replacement, times)), nil
}

func buildRegex(c *compiler, name string, argument bson.RawValue) (operand, error) {
	fields, err := c.documentArguments(name, argument, 51103, 31024, "input", "regex", "options")
	if err != nil {
		return operand{}, err
	}
	if _, ok := fields["input"]; !ok {
		return operand{}, mongoerr.New(31022, "%s requires 'input' parameter", name)
	}
	if _, ok := fields["regex"]; !ok {
		return operand{}, mongoerr.New(31023, "%s requires 'regex' parameter", name)
	}
	// The server compiles a constant pattern beforehand, and searches no sooner than
	// there is a document.
	regex, options := fields["regex"], fields["options"]
	if constants([]operand{regex, options}) {
		if err := c.env.ask(); err != nil {
			return operand{}, err
		}
		if _, err := compileRegex(name, regex.value, options.value); err != nil {
			return c.failed(err), nil
		}
	}
	return operand{eval: func(s *scope) (bson.RawValue, error) {
		values, err := evalNamed(s, fields)
		if err != nil {
			return bson.RawValue{}, err
		}
		return searchRegex(s, name, values)
	}}, nil
}

func searchRegex(s *scope, name string, values map[string]bson.RawValue) (bson.RawValue, error) {
	input := values["input"]
	if !nullish(input) && input.Type != bson.TypeString {
		return input, mongoerr.New(51104, "%s needs 'input' to be of type string", name)
	}
	re, err := compileRegex(name, values["regex"], values["options"])
	if err != nil {
		return input, err
	}
	if re == nil || nullish(input) {
		return noRegexMatch(name), nil
	}
	text := content(input)
	switch name {
	case "$regexMatch":
		at, err := re.find(s, text, 1)
		return bsonkit.Boolean(len(at) > 0), err
	case "$regexFind":
		at, err := re.find(s, text, 1)
		if err == nil && len(at) > 0 {
			return regexMatch(text, at[0], utf8.RuneCountInString(text[:at[0][0]])), nil
		}
		return bsonkit.Null(), err
	}
	return allMatches(s, re, text)
}

// leastMatch is the size of an empty match in a result, the name in the array
// left out.
const leastMatch = len("\x04....\x02match\x00....\x00\x10idx\x00....\x04captures\x00....\x00\x00")

// maxMatches is how many matches of one text there may be: more make a result
// that is too large, however short each of them is.
const maxMatches = maxValue / leastMatch

func allMatches(s *scope, re *Regex, text string) (bson.RawValue, error) {
	all, err := re.find(s, text, maxMatches+1)
	if err == nil && len(all) > maxMatches {
		err = mongoerr.New(51151, "$regexFindAll: the size of buffer to store output exceeded the %dMB limit", maxValue>>20)
	}
	if err != nil {
		return bson.RawValue{}, err
	}
	var found []bson.RawValue
	counted, index := 0, 0
	for _, at := range all {
		if !s.goesOn(1) {
			break
		}
		index += utf8.RuneCountInString(text[counted:at[0]])
		counted = at[0]
		found = append(found, regexMatch(text, at, index))
	}
	return bsonkit.Array(found), nil
}

func noRegexMatch(name string) bson.RawValue {
	switch name {
	case "$regexMatch":
		return bsonkit.Boolean(false)
	case "$regexFindAll":
		return bsonkit.Array(nil)
	}
	return bsonkit.Null()
}

// compileRegex is nil for a regex that is null.
func compileRegex(name string, v, options bson.RawValue) (*Regex, error) {
	var pattern, flags string
	switch {
	case nullish(v):
		return nil, nil
	case v.Type == bson.TypeString:
		pattern = content(v)
	case v.Type == bson.TypeRegex:
		pattern, flags = v.Regex()
	default:
		return nil, mongoerr.New(51105, "%s needs 'regex' to be of type string or regex", name)
	}
	if !nullish(options) {
		switch {
		case options.Type != bson.TypeString:
			return nil, mongoerr.New(51106, "%s needs 'options' to be of type string", name)
		case flags != "":
			return nil, mongoerr.New(51107, "%s found regex option(s) specified in both 'regex' and 'option' fields", name)
		}
		flags = content(options)
	}
	switch {
	case strings.ContainsRune(pattern, 0):
		return nil, mongoerr.New(51109, "%s: regular expression cannot contain an embedded null byte", name)
	case strings.ContainsRune(flags, 0):
		return nil, mongoerr.New(51110, "%s: regular expression options cannot contain an embedded null byte", name)
	}
	re, err := CompileRegex(pattern, flags)
	if mongoerr.Is(err, InvalidPattern) {
		return nil, mongoerr.New(51111, "Invalid Regex in %s: %s", name, err)
	}
	return re, err
}

// regexMatch describes a match that begins at the index-th code point.
func regexMatch(text string, at []int, index int) bson.RawValue {
	captures := []bson.RawValue{}
	for i := 2; i < len(at); i += 2 {
		if at[i] < 0 {
			captures = append(captures, bsonkit.Null())
			continue
		}
		captures = append(captures, bsonkit.String(text[at[i]:at[i+1]]))
	}
	b := bsonkit.NewBuilder(nil)
	b.Append("match", bsonkit.String(text[at[0]:at[1]]))
	b.Append("idx", bsonkit.Int32(int32(index)))
	b.Append("captures", bsonkit.Array(captures))
	return bsonkit.Document(b.Finish())
}
