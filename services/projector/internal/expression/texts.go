package expression

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// toText is the text of a value that has one way to be written. Of a list or a
// document there is toJSON.
func toText(e *evaluation, args []any) (any, error) {
	switch v := args[0].(type) {
	case string:
		return v, nil
	case bool, int, int32, int64, float64, time.Time, time.Duration, time.Month, time.Weekday, *time.Location, bson.Decimal128, bson.ObjectID:
		text := fmt.Sprint(v)
		return text, e.text(len(text))
	}
	return nil, fmt.Errorf("cannot make a text of %s: toJSON can of lists and documents", kind(args[0]))
}

func length(e *evaluation, args []any) (any, error) {
	switch v := args[0].(type) {
	case string:
		return utf8.RuneCountInString(v), e.scan(v)
	case []any:
		return len(v), nil
	case map[string]any:
		return len(v), nil
	case bson.Raw:
		entries, err := e.entries(v)
		return len(entries), err
	}
	return nil, fmt.Errorf("%s has no length", kind(args[0]))
}

func trim(e *evaluation, args []any) (any, error) {
	texts, err := textsOf(args)
	if err != nil {
		return nil, err
	}
	if err := e.scan(texts[0]); err != nil {
		return nil, err
	}
	if len(texts) == 1 {
		return strings.TrimSpace(texts[0]), nil
	}
	if len(texts[1]) > maxPattern {
		return nil, fmt.Errorf("takes at most %d bytes of characters to trim", maxPattern)
	}
	// Each character of the text may be looked for in all of the other.
	if err := e.spend(len(texts[0]) / bytesPerStep * (1 + len(texts[1])/bytesPerStep)); err != nil {
		return nil, err
	}
	return strings.Trim(texts[0], texts[1]), nil
}

// affix are a text and what it may begin or end with; a space where that is left out.
func (e *evaluation) affix(args []any) (text, affix string, err error) {
	texts, err := textsOf(args)
	if err != nil {
		return "", "", err
	}
	texts = append(texts, " ")
	return texts[0], texts[1], e.scan(texts[1])
}

func trimPrefix(e *evaluation, args []any) (any, error) {
	text, prefix, err := e.affix(args)
	return strings.TrimPrefix(text, prefix), err
}

func trimSuffix(e *evaluation, args []any) (any, error) {
	text, suffix, err := e.affix(args)
	return strings.TrimSuffix(text, suffix), err
}

func hasPrefix(e *evaluation, args []any) (any, error) {
	text, prefix, err := e.affix(args)
	return strings.HasPrefix(text, prefix), err
}

func hasSuffix(e *evaluation, args []any) (any, error) {
	text, suffix, err := e.affix(args)
	return strings.HasSuffix(text, suffix), err
}

func upper(e *evaluation, args []any) (any, error) { return e.mapped(args, strings.ToUpper) }
func lower(e *evaluation, args []any) (any, error) { return e.mapped(args, strings.ToLower) }

// mapped is a text with its characters replaced, each by one that may take
// three times the bytes.
func (e *evaluation) mapped(args []any, by func(string) string) (any, error) {
	text, err := textOf(args, 0)
	if err != nil {
		return nil, err
	}
	if err := e.make(3 * len(text)); err != nil {
		return nil, err
	}
	return by(text), nil
}

func split(e *evaluation, args []any) (any, error)      { return e.parts(args, strings.SplitN) }
func splitAfter(e *evaluation, args []any) (any, error) { return e.parts(args, strings.SplitAfterN) }

func (e *evaluation) parts(args []any, by func(text, separator string, n int) []string) (any, error) {
	texts, err := textsOf(args[:2])
	if err != nil {
		return nil, err
	}
	limit := int64(-1)
	if len(args) == 3 {
		if limit, err = wholeOf(args, 2); err != nil {
			return nil, err
		}
	}
	if err := e.scan(texts...); err != nil {
		return nil, err
	}
	most := strings.Count(texts[0], texts[1]) + 1
	if limit >= 0 {
		most = int(min(limit, int64(most)))
	}
	// Twice: they are texts first, and then values.
	if err := errors.Join(e.list(most), e.list(most)); err != nil {
		return nil, err
	}
	parts := by(texts[0], texts[1], int(max(limit, -1)))
	list := make([]any, len(parts))
	for i := range parts {
		list[i] = parts[i]
	}
	return list, nil
}

func replace(e *evaluation, args []any) (any, error) {
	texts, err := textsOf(args[:3])
	if err != nil {
		return nil, err
	}
	text, old, by := texts[0], texts[1], texts[2]
	limit := int64(-1)
	if len(args) == 4 {
		if limit, err = wholeOf(args, 3); err != nil {
			return nil, err
		}
	}
	if err := e.scan(text, old); err != nil {
		return nil, err
	}
	times := int64(strings.Count(text, old))
	if limit >= 0 {
		times = min(times, limit)
	}
	if times > 0 {
		if err := e.text(len(text) + int(times)*max(0, len(by)-len(old))); err != nil {
			return nil, err
		}
	}
	return strings.Replace(text, old, by, int(times)), nil
}

func repeat(e *evaluation, args []any) (any, error) {
	text, err := textOf(args, 0)
	if err != nil {
		return nil, err
	}
	n, err := wholeOf(args, 1)
	switch {
	case err != nil:
		return nil, err
	case n < 0:
		return nil, errors.New("cannot repeat less than 0 times")
	case len(text) == 0:
		return "", nil
	case n > int64(maxTextSize/len(text)):
		return nil, errTextTooBig
	}
	if err := e.text(len(text) * int(n)); err != nil {
		return nil, err
	}
	return strings.Repeat(text, int(n)), nil
}

func join(e *evaluation, args []any) (any, error) {
	list, err := listOf(args, 0)
	if err != nil {
		return nil, err
	}
	separator := ""
	if len(args) == 2 {
		if separator, err = textOf(args, 1); err != nil {
			return nil, err
		}
	}
	if err := e.list(len(list)); err != nil {
		return nil, err
	}
	parts, size := make([]string, len(list)), 0
	for i := range list {
		part, ok := list[i].(string)
		if !ok {
			return nil, fmt.Errorf("cannot join a list with %s", kind(list[i]))
		}
		if size += len(part) + len(separator); size > maxTextSize+len(separator) {
			return nil, errTextTooBig
		}
		parts[i] = part
	}
	if err := e.text(max(0, size-len(separator))); err != nil {
		return nil, err
	}
	return strings.Join(parts, separator), nil
}

func indexOf(e *evaluation, args []any) (any, error)     { return e.find(args, strings.Index) }
func lastIndexOf(e *evaluation, args []any) (any, error) { return e.find(args, strings.LastIndex) }

func (e *evaluation) find(args []any, by func(text, part string) int) (any, error) {
	texts, err := textsOf(args)
	if err != nil {
		return nil, err
	}
	if err := e.scan(texts...); err != nil {
		return nil, err
	}
	return by(texts[0], texts[1]), nil
}

func toBase64(e *evaluation, args []any) (any, error) {
	text, err := textOf(args, 0)
	if err != nil {
		return nil, err
	}
	if err := e.text(base64.StdEncoding.EncodedLen(len(text))); err != nil {
		return nil, err
	}
	return base64.StdEncoding.EncodeToString([]byte(text)), nil
}

func fromBase64(e *evaluation, args []any) (any, error) {
	text, err := textOf(args, 0)
	if err != nil {
		return nil, err
	}
	if err := e.text(base64.StdEncoding.DecodedLen(len(text))); err != nil {
		return nil, err
	}
	decoded, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, errors.New("the text is not base64")
	}
	return string(decoded), nil
}
