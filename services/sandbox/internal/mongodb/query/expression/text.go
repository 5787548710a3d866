package expression

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
)

func stringOperator(name string) builder {
	switch name {
	case "$concat":
		return variadic(0, -1, concat)
	case "$toUpper":
		return letterCase('a', 'z')
	case "$toLower":
		return letterCase('A', 'Z')
	case "$strcasecmp":
		return binary(compareFolded)
	case "$strLenBytes":
		return textLength(name, 34473, func(s string) int { return len(s) })
	case "$strLenCP":
		return textLength(name, 34471, utf8.RuneCountInString)
	case "$substr", "$substrBytes":
		return variadic(3, 3, substringBytes)
	case "$substrCP":
		return variadic(3, 3, substringCodePoints)
	case "$split":
		return binaryIn(split)
	case "$indexOfBytes":
		return variadic(2, 4, indexOfBytes)
	case "$indexOfCP":
		return variadic(2, 4, indexOfCodePoints)
	case "$trim":
		return trimming(true, true)
	case "$ltrim":
		return trimming(true, false)
	case "$rtrim":
		return trimming(false, true)
	case "$replaceOne":
		return replacing(1)
	case "$replaceAll":
		return replacing(-1)
	case "$regexMatch", "$regexFind", "$regexFindAll":
		return buildRegex
	}
	return nil
}

func content(v bson.RawValue) string { return string(bsonkit.Text(v)) }

func concat(args []bson.RawValue) (bson.RawValue, error) {
	var b bytes.Buffer
	for _, v := range args {
		if nullish(v) {
			return bsonkit.Null(), nil
		}
		if v.Type != bson.TypeString {
			return v, mongoerr.New(16702, "$concat only supports strings, not %s", typeName(v))
		}
		b.Write(bsonkit.Text(v))
	}
	return bsonkit.String(b.String()), nil
}

// letterCase changes ASCII letters from one case to the other; null is "".
func letterCase(from, to byte) builder {
	return unary(func(v bson.RawValue) (bson.RawValue, error) {
		s, err := coerceText(v)
		return bsonkit.String(withCase(s, from, to)), err
	})
}

func withCase(s string, from, to byte) string {
	b := []byte(s)
	for i, c := range b {
		if c >= from && c <= to {
			b[i] = c ^ 0x20
		}
	}
	return string(b)
}

// coerceText is what the older string operators make of other types.
func coerceText(v bson.RawValue) (string, error) {
	switch v.Type {
	case bson.TypeString, bson.TypeSymbol, bson.TypeJavaScript:
		return content(v), nil
	case bson.TypeInt32, bson.TypeInt64, bson.TypeDouble, bson.TypeDecimal128:
		return numberText(v), nil
	case bson.TypeDateTime:
		return formatDate(v.DateTime(), isoFormat, utc), nil
	case bson.TypeTimestamp:
		t, i := v.Timestamp()
		return timestampText(t, i), nil
	}
	if nullish(v) {
		return "", nil
	}
	return "", mongoerr.New(16007, "can't convert from BSON type %s to String", typeName(v))
}

// compareFolded is $strcasecmp, which knows the letters of ASCII only.
func compareFolded(a, b bson.RawValue) (bson.RawValue, error) {
	x, err := coerceText(a)
	if err != nil {
		return a, err
	}
	y, err := coerceText(b)
	if err != nil {
		return b, err
	}
	return bsonkit.Int32(int32(strings.Compare(withCase(x, 'a', 'z'), withCase(y, 'a', 'z')))), nil
}

func textLength(name string, code mongoerr.Code, length func(string) int) builder {
	return unary(func(v bson.RawValue) (bson.RawValue, error) {
		if v.Type != bson.TypeString {
			return v, mongoerr.New(code, "%s requires a string argument, found: %s", name, typeName(v))
		}
		return bsonkit.Int32(int32(length(content(v)))), nil
	})
}

func substringBytes(args []bson.RawValue) (bson.RawValue, error) {
	s, err := coerceText(args[0])
	if err != nil {
		return args[0], err
	}
	for i, role := range []string{"starting index", "length"} {
		if !bsonkit.IsNumber(args[i+1].Type) || args[i+1].Type == bson.TypeDecimal128 {
			return args[i+1], mongoerr.New(mongoerr.Code(16034+i), "$substrBytes:  %s must be a numeric type (is BSON type %s)", role, typeName(args[i+1]))
		}
	}
	start, _ := bsonkit.Truncated(args[1])
	length, _ := bsonkit.Truncated(args[2])
	if start < 0 {
		return args[1], mongoerr.New(50752, "$substrBytes: starting index must be non-negative (got: %d)", start)
	}
	size := int64(len(s))
	start = min(start, size)
	end := size
	if length >= 0 && length < size-start {
		end = start + length
	}
	if start < size && !utf8.RuneStart(s[start]) {
		return args[0], mongoerr.New(28656, "$substrBytes:  Invalid range, starting index is a UTF-8 continuation byte.")
	}
	if end < size && !utf8.RuneStart(s[end]) {
		return args[0], mongoerr.New(28657, "$substrBytes:  Invalid range, ending index is in the middle of a UTF-8 character.")
	}
	return bsonkit.String(s[start:end]), nil
}

func substringCodePoints(args []bson.RawValue) (bson.RawValue, error) {
	s, err := coerceText(args[0])
	if err != nil {
		return args[0], err
	}
	var at [2]int64
	for i, role := range []string{"starting index", "length"} {
		n, ok := bsonkit.WholeNumber(args[i+1])
		switch {
		case !bsonkit.IsNumber(args[i+1].Type):
			return args[i+1], mongoerr.New(mongoerr.Code(34450+2*i), "$substrCP: %s must be a numeric type (is BSON type %s)", role, typeName(args[i+1]))
		case !ok:
			return args[i+1], mongoerr.New(mongoerr.Code(34451+2*i), "$substrCP: %s cannot be represented as a 32-bit integral value", role)
		case n < 0:
			return args[i+1], mongoerr.New(mongoerr.Code(34455-i), "$substrCP: %s must be a nonnegative integer.", role)
		}
		at[i] = n
	}
	runes := []rune(s)
	start := min(at[0], int64(len(runes)))
	end := start + min(at[1], int64(len(runes))-start)
	return bsonkit.String(string(runes[start:end])), nil
}

func split(s *scope, a, b bson.RawValue) (bson.RawValue, error) {
	switch {
	case nullish(a) || nullish(b):
		return bsonkit.Null(), nil
	case a.Type != bson.TypeString:
		return a, mongoerr.New(40085, "$split requires an expression that evaluates to a string as a first argument, found: %s", typeName(a))
	case b.Type != bson.TypeString:
		return b, mongoerr.New(40086, "$split requires an expression that evaluates to a string as a second argument, found: %s", typeName(b))
	case content(b) == "":
		return b, mongoerr.New(40087, "$split requires a non-empty separator")
	}
	// Each part takes a place in an array.
	if size := len(content(a)) + 12*strings.Count(content(a), content(b)); size > maxValue {
		return a, errTooLarge(size)
	}
	var parts []bson.RawValue
	for part := range strings.SplitSeq(content(a), content(b)) {
		if !s.goesOn(1) {
			break
		}
		parts = append(parts, bsonkit.String(part))
	}
	return bsonkit.Array(parts), nil
}

func indexOfBytes(args []bson.RawValue) (bson.RawValue, error) {
	return indexOf("$indexOfBytes", args, func(s string) int { return len(s) }, func(s string, i int) int { return i })
}

func indexOfCodePoints(args []bson.RawValue) (bson.RawValue, error) {
	return indexOf("$indexOfCP", args, utf8.RuneCountInString, func(s string, n int) int {
		for i := range s {
			if n == 0 {
				return i
			}
			n--
		}
		return len(s)
	})
}

// indexOf searches args[1] in args[0], from args[2] to args[3]. offset turns an
// index in the operator's unit into one in bytes.
func indexOf(name string, args []bson.RawValue, count func(string) int, offset func(string, int) int) (bson.RawValue, error) {
	if nullish(args[0]) {
		return bsonkit.Null(), nil
	}
	codes := []mongoerr.Code{40091, 40092}
	if name == "$indexOfCP" {
		codes = []mongoerr.Code{40093, 40094}
	}
	for i, code := range codes {
		if args[i].Type != bson.TypeString {
			return args[i], mongoerr.New(code, "%s requires a string argument, found: %s", name, typeName(args[i]))
		}
	}
	s := content(args[0])
	limits := [2]int64{0, int64(count(s))}
	for i, v := range args[2:] {
		n, ok := bsonkit.WholeNumber(v)
		if !ok {
			return v, mongoerr.New(40096, "%s requires an integral index, found a value of type: %s", name, typeName(v))
		}
		if n < 0 {
			return v, mongoerr.New(40097, "%s requires a nonnegative index, found: %d", name, n)
		}
		limits[i] = min(n, int64(count(s)))
	}
	if limits[0] > limits[1] {
		return bsonkit.Int32(-1), nil
	}
	start, end := offset(s, int(limits[0])), offset(s, int(limits[1]))
	i := strings.Index(s[start:end], content(args[1]))
	if i < 0 {
		return bsonkit.Int32(-1), nil
	}
	return bsonkit.Int32(int32(count(s[:start+i]))), nil
}
