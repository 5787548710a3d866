package expect

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// FieldOrder says whether the order of a document's fields counts.
type FieldOrder bool

// A message keeps the order of fields; a read document need not.
const (
	InOrder  FieldOrder = true
	AnyOrder FieldOrder = false
)

// Text writes a document so that two have the same text when, and only when,
// they hold the same values of the same types.
func Text(document bson.Raw, order FieldOrder) (string, error) {
	var to strings.Builder
	err := appendDocument(&to, document, order)
	return to.String(), err
}

func appendDocument(to *strings.Builder, document bson.Raw, order FieldOrder) error {
	fields, err := document.Elements()
	if err != nil {
		return fmt.Errorf("read a document: %w", err)
	}
	if order == AnyOrder {
		slices.SortStableFunc(fields, func(a, b bson.RawElement) int { return cmp.Compare(a.Key(), b.Key()) })
	}
	to.WriteByte('{')
	for _, field := range fields {
		to.WriteString(strconv.Quote(field.Key()))
		to.WriteByte(':')
		if err := appendValue(to, field.Value(), order); err != nil {
			return err
		}
		to.WriteByte(',')
	}
	to.WriteByte('}')
	return nil
}

func appendValue(to *strings.Builder, v bson.RawValue, order FieldOrder) error {
	switch v.Type {
	case bson.TypeEmbeddedDocument:
		return appendDocument(to, v.Document(), order)
	case bson.TypeArray:
		values, err := v.Array().Values()
		if err != nil {
			return fmt.Errorf("read an array: %w", err)
		}
		to.WriteByte('[')
		for _, element := range values {
			if err := appendValue(to, element, order); err != nil {
				return err
			}
			to.WriteByte(',')
		}
		to.WriteByte(']')
		return nil
	case bson.TypeString:
		to.WriteString(strconv.Quote(v.StringValue()))
	case bson.TypeInt32, bson.TypeInt64:
		fmt.Fprintf(to, "%s %d", v.Type, v.AsInt64())
	case bson.TypeDouble:
		appendDouble(to, v.Double())
	default:
		// The value's bytes are its identity.
		fmt.Fprintf(to, "%s %s", v.Type, base64.StdEncoding.EncodeToString(v.Value))
	}
	return nil
}

// appendDouble writes every NaN alike.
func appendDouble(to *strings.Builder, f float64) {
	if math.IsNaN(f) {
		to.WriteString("double NaN")
		return
	}
	fmt.Fprintf(to, "double %016x", math.Float64bits(f))
}
