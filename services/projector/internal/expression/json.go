package expression

import (
	"encoding/json"
	"errors"
	"io"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// toJSON writes a value as indented JSON, documents with their fields sorted by name.
func toJSON(e *evaluation, args []any) (any, error) {
	w := &jsonWriter{evaluation: e}
	if err := w.write(args[0], 0); err != nil {
		return nil, err
	}
	return w.text.String(), nil
}

// jsonWriter takes room before it writes.
type jsonWriter struct {
	*evaluation
	text strings.Builder
}

func (w *jsonWriter) put(text string) error {
	if w.text.Len()+len(text) > maxTextSize {
		return errTextTooBig
	}
	// Twice, since it grows.
	if err := w.make(2 * len(text)); err != nil {
		return err
	}
	w.text.WriteString(text)
	return nil
}

func (w *jsonWriter) write(v any, depth int) error {
	if depth > maxDepth {
		return errTooDeep
	}
	switch v := v.(type) {
	case []any:
		return w.all('[', ']', len(v), depth, func(i int) error { return w.write(v[i], depth+1) })
	case bson.Raw, map[string]any:
		entries, err := w.entries(v)
		if err != nil {
			return err
		}
		return w.all('{', '}', len(entries), depth, func(i int) error {
			if err := w.scalar(entries[i].key); err != nil {
				return err
			}
			if err := w.put(": "); err != nil {
				return err
			}
			return w.write(entries[i].value, depth+1)
		})
	case nil, string, bool, int, int32, int64, float64, time.Time, bson.ObjectID, bson.Decimal128:
		return w.scalar(v)
	}
	return errors.New("cannot write " + kind(v) + " as JSON")
}

// all writes the elements between two brackets, each on a line of its own.
func (w *jsonWriter) all(opening, closing byte, n, depth int, each func(i int) error) error {
	if n == 0 {
		return w.put(string([]byte{opening, closing}))
	}
	before := string(opening)
	for i := range n {
		if err := w.put(before + "\n" + strings.Repeat("  ", depth+1)); err != nil {
			return err
		}
		if err := each(i); err != nil {
			return err
		}
		before = ","
	}
	return w.put("\n" + strings.Repeat("  ", depth) + string(closing))
}

func (w *jsonWriter) scalar(v any) error {
	if text, ok := v.(string); ok {
		// Written with escapes, a text may be six times as long.
		if err := w.make(6 * len(text)); err != nil {
			return err
		}
	}
	text, err := json.Marshal(v)
	if err != nil {
		return errors.New("cannot write " + kind(v) + " as JSON")
	}
	return w.put(string(text))
}

// fromJSON reads a value. Whole numbers are whole numbers, others doubles.
func fromJSON(e *evaluation, args []any) (any, error) {
	text, err := textOf(args, 0)
	if err != nil {
		return nil, err
	}
	if err := e.scan(text); err != nil {
		return nil, err
	}
	// No value is made but after one of these.
	values := 1
	for i := range len(text) {
		switch text[i] {
		case '[', '{', ',', ':':
			values++
		}
	}
	if values > maxMade/entrySize {
		return nil, errTooMuchMade
	}
	if err := e.make(len(text) + 2*values*entrySize); err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	var v any
	if err := decoder.Decode(&v); err != nil {
		return nil, errors.New("the text is not JSON")
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("the text is not one JSON value")
	}
	return e.numbered(v, 0)
}

// numbered makes numbers of those in what was read.
func (e *evaluation) numbered(v any, depth int) (_ any, err error) {
	if depth > maxDepth {
		return nil, errTooDeep
	}
	if err := e.spend(1); err != nil {
		return nil, err
	}
	switch v := v.(type) {
	case json.Number:
		if !strings.ContainsAny(v.String(), ".eE") {
			n, err := v.Int64()
			if err != nil {
				return nil, errOverflow
			}
			return int(n), nil
		}
		f, err := v.Float64()
		if err != nil {
			return nil, errNotFinite
		}
		return f, nil
	case []any:
		for i := range v {
			if v[i], err = e.numbered(v[i], depth+1); err != nil {
				return nil, err
			}
		}
	case map[string]any:
		for key := range v {
			if v[key], err = e.numbered(v[key], depth+1); err != nil {
				return nil, err
			}
		}
	}
	return v, nil
}
